// Measures programs on several CPU devices: the cost of an exchange and a kernel in a replay, and
// an all-reduce of 64 MiB next to the minimum traffic that it needs. Prints a table; asserts
// nothing.
//
// usage: bench_multi_device [DEVICES]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "compiler/graph/text.h"
#include "drivers/cpu/driver.h"
#include "server/clock/clock.h"
#include "server/runtime/cache/program_compiler.h"
#include "server/runtime/run/run.h"

namespace kiln::runtime {
namespace {

template <typename T>
T ValueOrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

class TextSource : public GraphSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  const std::string& key() const override { return text_; }
  const std::vector<Variable>& variables() const override { return none_; }
  absl::StatusOr<graph::Graph> Build(const Bindings&, const Grow&, ops::FormSizes*) const override {
    return graph::Parse(text_);
  }

 private:
  const std::string text_;
  const std::vector<Variable> none_;
};

class Bench {
 public:
  explicit Bench(int devices) {
    std::string why_none;
    drivers::cpu::CpuDriver driver({.devices = devices, .threads_per_device = 1});
    for (auto& device : ValueOrExit(driver.Enumerate(&why_none))) {
      const std::string name = device->info().name;
      devices_.push_back(std::make_unique<ManagedDevice>(std::move(device), 0,
                                                         metrics_.ForDevice(name), SystemClock()));
      flows_.push_back(devices_.back()->dispatcher().AddFlow("ann", 1));
      accounts_.push_back(std::make_shared<buffers::Account>());
    }
  }

  std::shared_ptr<const BoundProgram> Compile(const std::string& text) {
    ProgramCompiler::Options options;
    options.compile = compiler::Compile;
    options.metrics = &metrics_;
    options.clock = SystemClock();
    ProgramCompiler compiler(options);
    ProgramRequest request{
        std::make_shared<TextSource>(text), {}, devices_[0].get(), "bench", Payer(nullptr)};
    request.first_call = std::make_shared<FirstCall>(options.clock.steady, "wait_for_thread");
    for (const auto& device : devices_) request.members.push_back(device.get());
    return Bound(ValueOrExit(compiler.Compile(request, ValueOrExit(request.Build()), "digest")));
  }

  ValuePointer Zeros(const BoundProgram& bound) {
    const auto& type = bound.signature.inputs[0];
    const auto& placement = bound.signature.input_placements[0];
    std::vector<ValuePointer> parts;
    for (const auto& device : devices_) {
      const auto part = std::make_shared<const buffers::TensorType>(
          buffers::TensorType{type->dtype, buffers::PartOf(*placement, type->shape, 0).memory});
      parts.push_back(ValueOrExit(device->pool()->Allocate(part, nullptr)));
      std::memset(parts.back()->buffer()->host_pointer(), 0, part->bytes());
    }
    auto value = buffers::Value::Sharded(type, placement, std::move(parts));
    value->Resolve(absl::OkStatus());
    return value;
  }

  // Returns the seconds of a run: the median of `count` runs after a warm-up run.
  double Measure(const std::shared_ptr<const BoundProgram>& bound, const ValuePointer& input,
                 int count) {
    std::vector<double> seconds;
    for (int i = 0; i <= count; ++i) {
      const absl::Time start = absl::Now();
      absl::Notification ended;
      absl::Status status;
      auto run = ValueOrExit(
          Run::Create("bench", bound, {input}, accounts_, &order_,
                      [&](const absl::Status& result, absl::Span<const Run::DeviceTime>) {
                        status = result;
                        ended.Notify();
                      }));
      const auto work = run->MakeWork();
      for (size_t place = 0; place < work.size(); ++place)
        devices_[place]->dispatcher().Enqueue(flows_[place], work[place]);
      run.reset();
      ended.WaitForNotification();
      if (!status.ok()) ValueOrExit<int>(status);
      if (i > 0) seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
    }
    std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
    return seconds[count / 2];
  }

 private:
  metrics::Metrics metrics_{"bench"};
  fairness::SubmissionOrder order_;
  std::vector<std::unique_ptr<ManagedDevice>> devices_;
  std::vector<fairness::FairQueue::FlowId> flows_;
  std::vector<std::shared_ptr<buffers::Account>> accounts_;
};

// `steps` times: x += the sum of x over all devices' rows.
std::string Steps(int devices, int steps) {
  const int rows = 2 * devices;
  std::string text = absl::StrCat("mesh data=", devices, "\ninput 0 float32[", rows,
                                  ",16] spec=[1,0,0]\n%0 = input float32[", rows, ",16] index=0\n");
  int value = 0;
  for (int step = 0; step < steps; ++step) {
    absl::StrAppend(&text, "%", value + 1, " = reduce_sum float32[1,16] %", value, " axes=[0]\n");
    absl::StrAppend(&text, "%", value + 2, " = expand float32[", rows, ",16] %", value + 1, "\n");
    absl::StrAppend(&text, "%", value + 3, " = add float32[", rows, ",16] %", value, " %",
                    value + 2, "\n");
    value += 3;
  }
  return absl::StrCat(text, "output %", value, " spec=[1,0,0]\n");
}

std::string AllReduce(int devices, int64_t elements) {
  return absl::StrCat("mesh data=", devices, "\ninput 0 float32[", devices, ",", elements,
                      "] spec=[1,0,0]\n%0 = input float32[", devices, ",", elements,
                      "] index=0\n%1 = reduce_sum float32[1,", elements, "] %0 axes=[0]\n",
                      "output %1\n");
}

// The minimum traffic of an all-reduce: each device's part is read once, and its result written
// once. Measured as plain copies by as many threads as can run at once, each with its own memory.
class LeastTraffic {
 public:
  LeastTraffic(int devices, int64_t bytes)
      : from_(devices, std::vector<char>(bytes, 1)), to_(devices, std::vector<char>(bytes, 2)) {}

  double Seconds() {
    const int devices = static_cast<int>(from_.size());
    const int threads = std::clamp<int>(std::thread::hardware_concurrency(), 1, devices);
    const absl::Time start = absl::Now();
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([this, thread, threads, devices] {
        for (int i = thread; i < devices; i += threads)
          std::memcpy(to_[i].data(), from_[i].data(), from_[i].size());
      });
    }
    for (std::thread& thread : running) thread.join();
    return absl::ToDoubleSeconds(absl::Now() - start);
  }

 private:
  std::vector<std::vector<char>> from_, to_;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Alternates the two, so that load on the machine affects both equally.
void MeasureAllReduce(Bench& bench, int devices) {
  constexpr int64_t kBytes = 64 << 20;
  constexpr int kRounds = 9;
  const auto bound = bench.Compile(AllReduce(devices, kBytes / 4));
  const ValuePointer input = bench.Zeros(*bound);
  LeastTraffic least(devices, kBytes);
  std::vector<double> seconds, copy_seconds, shares;
  for (int round = 0; round < kRounds; ++round) {
    copy_seconds.push_back(least.Seconds());
    seconds.push_back(bench.Measure(bound, input, 1));
    shares.push_back(copy_seconds.back() / seconds.back());
  }
  std::printf(
      "all-reduce of 64 MiB on %d devices: %.1f ms; copying each device's 64 MiB once: %.1f ms, "
      "%.2f of it; devices read %.0f MiB of each other\n",
      devices, 1e3 * Median(seconds), 1e3 * Median(copy_seconds), Median(shares),
      static_cast<double>(bound->program->sharded().exchanged_bytes()) / (1 << 20));
}

void Main(int devices) {
  Bench bench(devices);
  for (const int steps : {1, 10, 50, 300}) {
    const auto bound = bench.Compile(Steps(devices, steps));
    const auto& compiled = bound->program->compiled();
    const double seconds = bench.Measure(bound, bench.Zeros(*bound), 200);
    std::printf("%d devices, %zu kernels and %zu exchanges each: %.1f us a run, %.2f us a kernel\n",
                devices, compiled.calls.size(), compiled.exchanges.size(), 1e6 * seconds,
                1e6 * seconds / static_cast<double>(compiled.calls.size()));
  }
  MeasureAllReduce(bench, devices);
}

}  // namespace
}  // namespace kiln::runtime

int main(int argc, char** argv) {
  kiln::runtime::Main(argc > 1 ? std::max(std::atoi(argv[1]), 1) : 4);
  return 0;
}
