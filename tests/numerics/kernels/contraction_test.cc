// Compares compiled kernels with the naive interpreter: matmuls, convolutions and their schedules.
#include <gtest/gtest.h>

#include <array>

#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/ir/str_cat.h"
#include "compiler/search/heuristics/heuristic.h"
#include "tests/numerics/kernels/kernel_check.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Op;

TEST_F(KernelsTest, Matmuls) {
  const int64_t shapes[][3] = {{1, 1, 1},    {64, 64, 64},  {65, 33, 19},   {7, 130, 5},
                               {13, 16, 64}, {100, 100, 7}, {12, 200, 100}, {1, 300, 200},
                               {300, 1, 50}, {31, 47, 530}, {600, 70, 20},  {8, 128, 96}};
  for (const auto& s : shapes) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      ExpectAllMatch(MatmulKernel(context_, s[0], s[1], s[2], transposes & 1, transposes & 2), 2e-4,
                     StrCat("matmul ", s[0], " ", s[1], " ", s[2], " ", transposes));
    }
  }
}

TEST_F(KernelsTest, SumsLongerThanTheCache) {
  drivers::Target small = HostTarget();
  small.limits.private_cache_bytes = 16 << 10;
  const ConvolutionShape shape = {5, 24, 20, 9, 3, 1}, plain = {5, 24, 20, 9, 3};
  const kernel::Kernel kernels[] = {MatmulKernel(context_, 40, 70, 300),
                                    MatmulKernel(context_, 600, 33, 520),
                                    MatmulKernel(context_, 3, 700, 900),
                                    MatmulKernel(context_, 700, 5, 301),
                                    MatmulKernel(context_, 9, 700, 400, 0, 1),
                                    ConvolutionKernel(context_, shape),
                                    ConvolutionInputGradientKernel(context_, plain),
                                    ConvolutionWeightGradientKernel(context_, plain)};
  for (const kernel::Kernel& kernel : kernels) {
    const auto interpreted = InterpretKernel(kernel);
    for (int threads : {1, 3}) {
      small.limits.compute_units = threads;
      ExpectMatches(kernel, search::Choose(kernel, small), small, interpreted, 1e-3, kernel.name);
    }
  }
}

TEST_F(KernelsTest, Convolutions) {
  const ConvolutionShape shapes[] = {{2, 3, 20, 9, 3},    {1, 1, 32, 12, 5},  {3, 8, 16, 8, 3},
                                     {2, 5, 7, 6, 3},     {2, 4, 33, 7, 2},   {1, 16, 64, 6, 3},
                                     {2, 3, 16, 9, 3, 1}, {1, 2, 40, 8, 5, 2}};
  for (const ConvolutionShape& s : shapes) {
    const std::string what = StrCat(s.batch, "x", s.in_channels, "->", s.out_channels, " ", s.size,
                                    " by ", s.window, " padding ", s.padding);
    ExpectAllMatch(ConvolutionKernel(context_, s), 2e-4, "convolution " + what);
    if (s.padding > 0) continue;
    ExpectAllMatch(ConvolutionInputGradientKernel(context_, s), 2e-4, "input gradient " + what);
    ExpectAllMatch(ConvolutionWeightGradientKernel(context_, s), 2e-3, "weight gradient " + what);
  }
}

// Unusual schedules for a matmul with odd sizes: every combination of ragged ends, orders and
// bindings must give the same result.
TEST_F(KernelsTest, RaggedSchedules) {
  const char* schedules[] = {
      "split 0 7\nsplit 3 3\nbind 5 task\norder 0 5 6 4 1 2",
      "split 0 7\nsplit 3 2\nbind 4 unroll\norder 0 5 6 1 4 2",
      "split 1 16\nsplit 3 2\nbind 5 task\nbind 4 vector\norder 0 5 6 0 4 2",
      "split 1 16\nsplit 3 2\nbind 4 vector\nsplit 0 4\nbind 8 unroll\norder 0 5 6 7 2 8 4",
      "split 0 10\nbind 3 task\nsplit 4 4\nbind 6 unroll\norder 0 3 5 1 2 6",
      "split 0 12\nbind 3 task\nsplit 4 4\nbind 6 unroll\nsplit 1 32\nbind 7 task\nsplit 8 "
      "16\nbind 9 unroll\n"
      "bind 10 vector\norder 0 3 7 5 2 6 9 10\nstage 0 1 -1 16 2 1",
      "split 2 8\nsplit 4 2\nbind 6 unroll\npartial 6\norder 0 0 1 3 5 6",
      "split 2 16\nbind 4 vector\norder 0 0 1 3 4",
      "split 2 5\nsplit 1 16\nbind 6 vector\norder 0 3 5 0 4 6\nstage 0 1 3 16 2 1\nstage 0 0 5 16 "
      "0 2",
      "order 0 2 1 0",
      "bind 0 unroll\norder 0 2 1 0",
  };
  for (const auto& s : {std::array<int64_t, 3>{23, 37, 29}, {24, 64, 32}, {5, 9, 3}, {1, 1, 1}}) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      const kernel::Kernel kernel =
          MatmulKernel(context_, s[0], s[1], s[2], transposes & 1, transposes & 2);
      const auto interpreted = InterpretKernel(kernel);
      for (const char* text : schedules) {
        const auto schedule = schedule::Parse(text);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        ExpectMatches(kernel, *schedule, HostTarget(), interpreted, 2e-4,
                      StrCat(s[0], " ", s[1], " ", s[2], " ", transposes));
      }
    }
  }
}

TEST_F(KernelsTest, Float64Matmul) {
  KernelWriter w(context_);
  const int64_t m = 50, n = 37, k = 41;
  const int a = w.In(m * k, DType::kFloat64), b = w.In(k * n, DType::kFloat64);
  const int c = w.Out(m * n, DType::kFloat64);
  auto i = w.Range(m), j = w.Range(n), p = w.Range(k);
  w.Stage({i, j}, {p});
  w.Store(c, i * n + j, w.Sum(w.Load(a, i * k + p) * w.Load(b, p * n + j), {p}));
  ExpectAllMatch(w.kernel, 1e-12, "float64 matmul");
}

TEST_F(KernelsTest, FusedContractions) {
  // relu(x * scale) times weights, then a bias and another relu.
  KernelWriter w(context_);
  const int64_t m = 70, n = 45, k = 33;
  const int x = w.In(m * k), scale = w.In(k), weight = w.In(k * n), bias = w.In(n);
  const int y = w.Out(m * n);
  auto i = w.Range(m), j = w.Range(n), p = w.Range(k);
  w.Stage({i, j}, {p});
  auto left = (w.Load(x, i * k + p) * w.Load(scale, p)).Binary(Op::kMax, w.Float(0));
  auto sum = w.Sum(left * w.Load(weight, p * n + j), {p});
  w.Store(y, i * n + j, (sum + w.Load(bias, j)).Binary(Op::kMax, w.Float(0)));
  ExpectAllMatch(w.kernel, 2e-4, "fused");
}

}  // namespace
}  // namespace kiln::codegen
