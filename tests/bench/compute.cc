// Measures kernels through the compiler and the CPU driver, each next to its peer. One line of JSON
// a row.
//
//   bench_compute matmul M N K THREADS    fp32, against OpenBLAS where that is installed
//   bench_compute blas M N K THREADS      OpenBLAS alone, to find its best kernels
//   bench_compute stream THREADS          memory-bound kernels on 64 MiB, against a copy
//   bench_compute replay KERNELS THREADS  KERNELS small kernels in one list; THREADS may instead be
//                                         a driver (OpenDevice in program.h)
//   bench_compute op OP THREADS [FEATURES] sort, topk or gather, against PyTorch: does as many as a
//                                         line of standard input says and prints
//                                         {"seconds": [...]}, as tests/bench/op_step.py does.
//                                         FEATURES: those of the processor, "avx2" for example
// With BENCH_QUICK=1 in the environment: a smoke test, whose numbers mean nothing.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "kiln/ops.h"
#include "tests/bench/measure.h"
#include "tests/bench/peers.h"
#include "tests/bench/program.h"

namespace kiln::bench {
namespace {

bool IsQuick() { return std::getenv("BENCH_QUICK") != nullptr; }
Effort CurrentEffort() { return IsQuick() ? QuickEffort() : Effort{}; }

struct Product {
  int m, n, k;
  double flops() const { return 2.0 * m * n * k; }
};

absl::StatusOr<Graph> MatmulGraph(const Product& p) {
  GraphBuilder builder;
  Value a = builder.Input(DType::kFloat32, {p.m, p.k});
  Value b = builder.Input(DType::kFloat32, {p.k, p.n});
  builder.Output(ops::Matmul(a, b));
  return builder.Build();
}

Work BlasWork(const OpenBlas& blas, const Product& p, const float* a, const float* b, float* c) {
  return [=](int times) {
    for (int i = 0; i < times; ++i) {
      // OpenBLAS has a separate routine for a single row; the faster one counts.
      if (p.m == 1) {
        blas.MultiplyRow(p.n, p.k, a, b, c);
      } else {
        blas.Multiply(p.m, p.n, p.k, a, b, c);
      }
    }
    return absl::OkStatus();
  };
}

// A wrong product must not be reported as fast.
absl::Status Compare(const std::vector<float>& expected, const float* actual, int k) {
  for (size_t i = 0; i < expected.size(); ++i) {
    // Inputs are at most 1, so the error of a sum of k products grows with k at worst.
    if (std::abs(expected[i] - actual[i]) > 1e-5f * static_cast<float>(k)) {
      return absl::InternalError(
          absl::StrCat("element ", i, " is ", actual[i], " and should be ", expected[i]));
    }
  }
  return absl::OkStatus();
}

std::string MatmulName(const Product& p, int threads) {
  return absl::StrCat("matmul ", p.m, "x", p.n, "x", p.k, ", ", threads,
                      threads == 1 ? " core" : " cores");
}

// Without OpenBLAS, checks the first and the last row by plain sums.
absl::Status MatmulAlone(const Product& p, int threads, Program& program) {
  if (absl::Status status = program.Run(1); !status.ok()) return status;
  for (const int row : {0, p.m - 1}) {
    std::vector<float> expected(p.n);
    for (int k = 0; k < p.k; ++k) {
      const float a = program.input(0)[static_cast<int64_t>(row) * p.k + k];
      for (int n = 0; n < p.n; ++n) {
        expected[n] += a * program.input(1)[static_cast<int64_t>(k) * p.n + n];
      }
    }
    const float* actual = program.output(0) + static_cast<int64_t>(row) * p.n;
    if (absl::Status status = Compare(expected, actual, p.k); !status.ok()) return status;
  }
  auto alone = Interleave([&](int times) { return program.Run(times); }, nullptr, CurrentEffort());
  if (!alone.ok()) return alone.status();
  Print({.name = MatmulName(p, threads),
         .unit = "GFLOP/s",
         .value = p.flops() / alone->seconds / 1e9});
  return absl::OkStatus();
}

absl::Status Matmul(const Product& p, int threads) {
  auto device = OpenCpu(threads);
  if (!device.ok()) return device.status();
  auto program = Program::Make(**device, MatmulGraph(p));
  if (!program.ok()) return program.status();
  auto blas = OpenBlas::Load(threads);
  if (absl::IsNotFound(blas.status())) return MatmulAlone(p, threads, **program);
  if (!blas.ok()) return blas.status();
  std::vector<float> expected(static_cast<size_t>(p.m) * p.n);
  Work peer = BlasWork(*blas, p, (*program)->input(0), (*program)->input(1), expected.data());
  if (absl::Status status = peer(1); !status.ok()) return status;
  if (absl::Status status = (*program)->Run(1); !status.ok()) return status;
  if (absl::Status status = Compare(expected, (*program)->output(0), p.k); !status.ok())
    return status;
  auto pair = Interleave([&](int times) { return (*program)->Run(times); }, peer, CurrentEffort());
  if (!pair.ok()) return pair.status();
  Print({.name = MatmulName(p, threads),
         .unit = "GFLOP/s",
         .value = p.flops() / pair->seconds / 1e9,
         .peer = absl::StrCat("OpenBLAS ", blas->core()),
         .peer_value = p.flops() / pair->peer_seconds / 1e9});
  return absl::OkStatus();
}

absl::Status Blas(const Product& p, int threads) {
  auto blas = OpenBlas::Load(threads);
  if (!blas.ok()) return blas.status();
  std::vector<float> a(static_cast<size_t>(p.m) * p.k, 1), b(static_cast<size_t>(p.k) * p.n, 1);
  std::vector<float> c(static_cast<size_t>(p.m) * p.n);
  auto pair = Interleave(BlasWork(*blas, p, a.data(), b.data(), c.data()), nullptr,
                         {.rounds = 5, .seconds = 0.02});
  if (!pair.ok()) return pair.status();
  Print({.name = blas->core(), .unit = "GFLOP/s", .value = p.flops() / pair->seconds / 1e9});
  return absl::OkStatus();
}

struct StreamCase {
  const char* name;
  std::function<Value(Value)> build;
};

Value Chain(Value x) {
  Value y = ops::Relu(x * 1.5 + 0.25);
  y = y * y - x;
  y = (y + 2) * 0.5;
  return y + x * x;
}

Value LayerNorm(Value x) {
  Value centred = x - ops::Mean(x, {.axes = {-1}, .keepdims = true});
  Value variance = ops::Mean(centred * centred, {.axes = {-1}, .keepdims = true});
  return centred / ops::Sqrt(variance + 1e-5);
}

absl::Status Stream(int threads) {
  const int64_t rows = IsQuick() ? 256 : 16384;
  const int64_t columns = 1024;
  const int64_t bytes = rows * columns * 4;
  const StreamCase cases[] = {{"chain of 10 elementwise ops", Chain},
                              {"softmax", [](Value x) { return ops::Softmax(x); }},
                              {"layer norm", LayerNorm}};
  auto device = OpenCpu(threads);
  if (!device.ok()) return device.status();
  ParallelCopy copy(bytes, threads);
  for (const StreamCase& one : cases) {
    GraphBuilder builder;
    builder.Output(one.build(builder.Input(DType::kFloat32, {rows, columns})));
    auto program = Program::Make(**device, builder.Build());
    if (!program.ok()) return program.status();
    auto pair = Interleave([&](int times) { return (*program)->Run(times); },
                           [&](int times) { return copy.Run(times); }, CurrentEffort());
    if (!pair.ok()) return pair.status();
    Print({.name = absl::StrCat(one.name, ", ", bytes >> 20, " MiB, ", (*program)->kernels(),
                                (*program)->kernels() == 1 ? " kernel" : " kernels"),
           .unit = "GB/s",
           // Each byte is read once and written once, also by the copy.
           .value = 2e-9 * static_cast<double>(bytes) / pair->seconds,
           .peer = "copy",
           .peer_value = 2e-9 * static_cast<double>(bytes) / pair->peer_seconds});
  }
  return absl::OkStatus();
}

// `kernels` small kernels in one list, with other buffers each time, as a run has new results.
absl::Status Replay(absl::StatusOr<std::unique_ptr<drivers::Device>> device, int kernels) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {256});
  builder.Output(x + 1);
  if (!device.ok()) return device.status();
  auto program = Program::Make(**device, builder.Build(), kernels);
  if (!program.ok()) return program.status();
  if ((*program)->kernels() != 1) return absl::InternalError("an addition should be one kernel");
  for (const bool swaps : {false, true}) {
    // One replay at a time, including its wake-ups.
    auto one_by_one = [&](int times) {
      for (int i = 0; i < times; ++i) {
        absl::Status status = swaps ? (*program)->SwapBuffers() : absl::OkStatus();
        if (status.ok()) status = (*program)->Run(1);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    };
    auto pair = Interleave(one_by_one, nullptr, CurrentEffort());
    if (!pair.ok()) return pair.status();
    Print({.name = absl::StrCat("replay of ", kernels, " small kernels",
                                swaps ? " with other buffers" : "", ", a kernel"),
           .unit = "us",
           .value = pair->seconds / kernels * 1e6});
  }
  return absl::OkStatus();
}

constexpr int64_t kSorted = 1 << 20;
constexpr int64_t kRows = 64, kVocabulary = 50257, kChosen = 50;
constexpr int64_t kTableRows = 50257, kWidth = 768, kGathered = 8192;

struct OpCase {
  const char* name;
  std::function<void(GraphBuilder&)> build;
};

// As op_step.py's: sorting gives values and positions there.
const OpCase kOpCases[] = {
    {"sort",
     [](GraphBuilder& builder) {
       Value x = builder.Input(DType::kFloat32, {kSorted});
       builder.Output(ops::Sort(x));
       builder.Output(ops::Argsort(x));
     }},
    {"topk",
     [](GraphBuilder& builder) {
       Value x = builder.Input(DType::kFloat32, {kRows, kVocabulary});
       builder.Output(ops::Topk(x, kChosen));
       builder.Output(ops::TopkIndices(x, kChosen));
     }},
    {"gather",
     [](GraphBuilder& builder) {
       Value table = builder.Input(DType::kFloat32, {kTableRows, kWidth});
       builder.Output(ops::Gather(table, builder.Input(DType::kInt64, {kGathered})));
     }},
};

// Positions that are neither adjacent nor repeated: their stride and the number of rows have no
// common divisor.
void FillPositions(float* input) {
  std::vector<int64_t> positions(kGathered);
  for (int64_t i = 0; i < kGathered; ++i) positions[i] = i * 7919 % kTableRows;
  std::memcpy(input, positions.data(), positions.size() * sizeof(int64_t));
}

// A wrong result must not be reported as fast.
absl::Status CheckOp(absl::string_view name, const Program& program) {
  const float* x = program.input(0);
  const float* result = program.output(0);
  bool right = true;
  if (name == "gather") {
    for (int64_t i = 0; i < kGathered; ++i) {
      const float* row = x + i * 7919 % kTableRows * kWidth;
      right &= std::equal(row, row + kWidth, result + i * kWidth);
    }
  } else {
    const bool sorts = name == "sort";
    const int64_t rows = sorts ? 1 : kRows, length = sorts ? kSorted : kVocabulary;
    const int64_t count = sorts ? kSorted : kChosen;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<float> expected(x + row * length, x + (row + 1) * length);
      std::sort(expected.begin(), expected.end());
      if (!sorts) std::reverse(expected.begin(), expected.end());
      right &= std::equal(expected.begin(), expected.begin() + count, result + row * count);
    }
  }
  return right ? absl::OkStatus() : absl::InternalError(absl::StrCat(name, " is wrong"));
}

// Runs as often as each line of standard input says.
absl::Status RunOnRequest(Program& program) {
  for (int steps = 0; std::scanf("%d", &steps) == 1;) {
    std::vector<std::string> seconds;
    for (int i = 0; i < steps; ++i) {
      const absl::Time begin = absl::Now();
      if (absl::Status status = program.Run(1); !status.ok()) return status;
      seconds.push_back(absl::StrCat(absl::ToDoubleSeconds(absl::Now() - begin)));
    }
    std::printf("{\"seconds\": [%s]}\n", absl::StrJoin(seconds, ", ").c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

absl::Status OpSteps(absl::string_view name, int threads, const std::string& features) {
  for (const OpCase& one : kOpCases) {
    if (one.name != name) continue;
    auto device = OpenCpu(threads, features);
    if (!device.ok()) return device.status();
    GraphBuilder builder;
    one.build(builder);
    auto program = Program::Make(**device, builder.Build());
    if (!program.ok()) return program.status();
    if (name == "gather") FillPositions((*program)->input(1));
    if (absl::Status status = (*program)->Run(1); !status.ok()) return status;
    if (absl::Status status = CheckOp(name, **program); !status.ok()) return status;
    return RunOnRequest(**program);
  }
  return absl::InvalidArgumentError(absl::StrCat("no op named ", name));
}

absl::Status Dispatch(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  auto number = [&](int position) { return std::atoi(arguments[position]); };
  if ((what == "matmul" || what == "blas") && count == 6) {
    const Product product{.m = number(2), .n = number(3), .k = number(4)};
    return what == "matmul" ? Matmul(product, number(5)) : Blas(product, number(5));
  }
  if (what == "stream" && count == 3) return Stream(number(2));
  if (what == "replay" && count == 4) {
    const int threads = number(3);
    return Replay(threads > 0 ? OpenCpu(threads) : OpenDevice(arguments[3]), number(2));
  }
  if (what == "op" && (count == 4 || count == 5)) {
    return OpSteps(arguments[2], number(3), count == 5 ? arguments[4] : "");
  }
  return absl::InvalidArgumentError(
      "usage: bench_compute matmul|blas M N K THREADS, stream THREADS, replay KERNELS "
      "THREADS|DRIVER, or op sort|topk|gather THREADS [FEATURES]");
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  absl::Status status = kiln::bench::Dispatch(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_compute: %s\n", status.ToString().c_str());
  return 1;
}
