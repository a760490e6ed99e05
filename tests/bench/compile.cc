// Measures where the time of a cold compile goes, and what its result is:
//
//   bench_compile GRAPH [--workers] [--steps N] [--top N] [--dump FOLDER] [--threads N]
//                 [--features WORDS]
//   bench_compile layers       one row a size: equal layers, 1,000 to 16,000 nodes
//
// GRAPH holds a kiln.v1.Graph's bytes, as a client sends them. Prints seconds by pass, the numbers
// of kernels and calls, memory, the kernels that took the longest to compile and, after N steps, to
// run. With --workers two processes compile the kernels, as in kilnd. --threads: of the device (2).
// --features: of the processor, as the CPU driver takes them ("avx2"). FOLDER gets the partition
// and each kernel's loops, schedule and machine code, so that the results of two compilers can be
// compared.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/graph/wire/wire.h"
#include "compiler/workers/pool.h"
#include "compiler/workers/worker.h"
#include "kiln/ops.h"
#include "kiln/v1/graph.pb.h"
#include "tests/bench/measure.h"
#include "tests/bench/program.h"

namespace kiln::bench {
namespace {

struct Command {
  std::string file;
  int steps = 0;
  size_t top = 12;
  bool workers = false;
  int threads = 2;
  std::string features;
  std::string dump;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double PeakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void PrintCompiled(const compiler::CompiledProgram& program, size_t top) {
  for (const compiler::PassReport& pass : program.passes) {
    std::printf("%-18s %8.3f s\n", pass.pass.c_str(), pass.seconds);
  }
  int64_t arena = 0, outside = 0, code = 0;
  for (const compiler::Slot& slot : program.slots) {
    (slot.kind == compiler::Slot::Kind::kArena ? arena : outside) += slot.bytes;
  }
  for (const compiler::CompiledKernel& kernel : program.kernels) {
    code += static_cast<int64_t>(kernel.image.code.size());
  }
  std::printf(
      "%zu kernels, %zu calls, %.2f MB code, arena %.1f MB (%.1f without reuse), other slots %.1f "
      "MB\n",
      program.kernels.size(), program.calls.size(), code / 1e6, arena / 1e6,
      program.arena_bytes_without_reuse / 1e6, outside / 1e6);
  std::vector<const compiler::CompiledKernel*> slowest;
  for (const compiler::CompiledKernel& kernel : program.kernels) slowest.push_back(&kernel);
  std::sort(slowest.begin(), slowest.end(),
            [](const auto* a, const auto* b) { return a->compile_seconds > b->compile_seconds; });
  std::printf("compile ms   code KiB\n");
  for (size_t i = 0; i < std::min(top, slowest.size()); ++i) {
    std::printf("%9.1f %9.1f   %s\n", slowest[i]->compile_seconds * 1e3,
                static_cast<double>(slowest[i]->image.code.size()) / 1024,
                slowest[i]->image.name.c_str());
  }
}

absl::Status Dump(const compiler::CompiledProgram& program, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  std::ofstream(folder + "/partition.txt") << program.partition_text;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const compiler::CompiledKernel& kernel = program.kernels[i];
    const std::string file = folder + "/kernel" + std::to_string(i);
    std::ofstream(file + ".code", std::ios::binary) << kernel.image.code;
    std::ofstream text(file + ".txt");
    text << kernel.image.name << "\n" << kernel.ir << "\n" << kernel.schedule << "\n";
    if (!text.flush()) return absl::UnavailableError("cannot write " + file + ".txt");
  }
  return absl::OkStatus();
}

// Makes inputs as small as weights are: a softmax over large scores would be full of denormal
// numbers.
void ShrinkInputs(Program& program) {
  for (const compiler::Slot& slot : program.compiled().slots) {
    if (slot.kind != compiler::Slot::Kind::kInput) continue;
    float* data = program.input(slot.index);
    for (int64_t i = 0; i < slot.bytes / 4; ++i) data[i] *= 0.05F;
  }
}

absl::Status PrintSteps(Program& program, const Command& command) {
  const compiler::CompiledProgram& compiled = program.compiled();
  ShrinkInputs(program);
  // Takes the best of all steps for each call separately: a disturbance in a step does not affect
  // all of its calls.
  std::vector<double> best(compiled.calls.size(), 1e9);
  for (int step = 0; step < command.steps; ++step) {
    auto seconds = program.RunTimed();
    if (!seconds.ok()) return seconds.status();
    for (size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], (*seconds)[i]);
  }
  struct Sum {
    int kernel = 0, calls = 0;
    double seconds = 0;
  };
  std::vector<Sum> sums(compiled.kernels.size());
  for (size_t i = 0; i < best.size(); ++i) {
    Sum& sum = sums[compiled.calls[i].kernel];
    sum.kernel = compiled.calls[i].kernel;
    sum.seconds += best[i];
    ++sum.calls;
  }
  std::sort(sums.begin(), sums.end(),
            [](const Sum& a, const Sum& b) { return a.seconds > b.seconds; });
  std::printf("a step: %.1f ms\n   ms  calls  GFLOP/s    GB/s  kernel\n",
              std::accumulate(best.begin(), best.end(), 0.0) * 1e3);
  for (size_t i = 0; i < std::min(command.top, sums.size()); ++i) {
    const compiler::CompiledKernel& kernel = compiled.kernels[sums[i].kernel];
    const double scale = sums[i].calls / sums[i].seconds / 1e9;
    std::printf("%7.2f %4d %8.1f %7.1f  %3d %s\n", sums[i].seconds * 1e3, sums[i].calls,
                static_cast<double>(kernel.image.flops) * scale,
                static_cast<double>(kernel.image.bytes) * scale, sums[i].kernel,
                kernel.image.name.c_str());
  }
  return absl::OkStatus();
}

// Starts as many workers as there are compiling threads, and gives them time to become ready, as a
// daemon's workers are when a client connects.
std::unique_ptr<workers::Pool> StartWorkers() {
  workers::Pool::Options options;
  options.command = workers::WorkerCommand(0);
  options.spares = 2;
  options.now = std::chrono::steady_clock::now;
  auto pool = std::make_unique<workers::Pool>(std::move(options));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return pool;
}

absl::Status Compile(const Command& command) {
  std::ifstream stream(command.file, std::ios::binary);
  if (!stream) return absl::NotFoundError("cannot read " + command.file);
  v1::Graph proto;
  if (!proto.ParseFromIstream(&stream)) {
    return absl::InvalidArgumentError(command.file + " holds no kiln.v1.Graph");
  }
  auto device = OpenCpu(command.threads, command.features);
  if (!device.ok()) return device.status();
  const double begin = Now();
  auto graph = graph::FromProto(proto, {});
  if (!graph.ok()) return graph.status();
  std::printf("%-16s %8.3f s, %zu nodes\n", "wire", Now() - begin, graph->context->size());
  std::unique_ptr<workers::Pool> workers;
  if (command.workers) workers = StartWorkers();
  const double cpu = CpuSeconds();
  const double start = Now();
  auto program = Program::Make(**device, *graph, 1, workers.get());
  if (!program.ok()) return program.status();
  std::printf("all %.3f s, CPU %.3f s, peak %.1f MiB\n", Now() - start, CpuSeconds() - cpu,
              PeakMebibytes());
  PrintCompiled((*program)->compiled(), command.top);
  if (!command.dump.empty()) {
    absl::Status dumped = Dump((*program)->compiled(), command.dump);
    if (!dumped.ok()) return dumped;
  }
  return command.steps > 0 ? PrintSteps(**program, command) : absl::OkStatus();
}

// Returns a residual network of equal layers and the gradients of its loss, as a client sends it.
absl::StatusOr<Graph> Layers(int count) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {64, 64});
  std::vector<Value> weights;
  for (int i = 0; i < count; ++i) {
    weights.push_back(builder.Input(DType::kFloat32, {64, 64}));
    Value centred = x - ops::Mean(x, {.axes = {-1}, .keepdims = true});
    x = x + ops::Relu(ops::Matmul(centred, weights.back()));
  }
  Value loss = ops::Mean(x * x);
  for (const Value& weight : weights) {
    builder.Update(weight, weight - ops::Gradient(loss, weight) * 0.01);
  }
  builder.Output(loss);
  return builder.Build();
}

absl::Status CompileLayers() {
  auto device = OpenCpu(2);
  if (!device.ok()) return device.status();
  for (const int layers : {40, 160, 640}) {
    auto proto = Layers(layers);
    if (!proto.ok()) return proto.status();
    const double begin = Now();
    auto graph = graph::FromProto(proto->proto(), {});
    if (!graph.ok()) return graph.status();
    compiler::Options options;
    options.threads = 2;
    auto compiled = compiler::Compile(*graph, (*device)->info().target, options);
    if (!compiled.ok()) return compiled.status();
    const double seconds = Now() - begin;
    const std::string name = "compile " + std::to_string(layers) +
                             " equal layers with gradients, " +
                             std::to_string(graph->context->size()) + " nodes";
    Print({.name = name, .unit = "ms", .value = seconds * 1e3});
    Print({.name = name + ", distinct kernels",
           .unit = "kernels",
           .value = static_cast<double>(compiled->kernels.size())});
  }
  return absl::OkStatus();
}

absl::Status Dispatch(int count, char** arguments) {
  if (count == 2 && std::string(arguments[1]) == "layers") return CompileLayers();
  Command command;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--workers") {
      command.workers = true;
    } else if (word == "--steps" && i + 1 < count) {
      command.steps = std::atoi(arguments[++i]);
    } else if (word == "--top" && i + 1 < count) {
      command.top = static_cast<size_t>(std::atoi(arguments[++i]));
    } else if (word == "--threads" && i + 1 < count) {
      command.threads = std::max(std::atoi(arguments[++i]), 1);
    } else if (word == "--features" && i + 1 < count) {
      command.features = arguments[++i];
    } else if (word == "--dump" && i + 1 < count) {
      command.dump = arguments[++i];
    } else {
      command.file = word;
    }
  }
  if (command.file.empty())
    return absl::InvalidArgumentError(
        "usage: bench_compile GRAPH [--workers] [--steps N] [--top N] [--dump FOLDER] "
        "[--threads N] [--features WORDS]");
  return Compile(command);
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  if (kiln::workers::IsWorker(argc, argv))
    return kiln::workers::RunWorker(argc, argv, kiln::compiler::CompileJob);
  absl::Status status = kiln::bench::Dispatch(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_compile: %s\n", status.ToString().c_str());
  return 1;
}
