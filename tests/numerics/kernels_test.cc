// Compiled kernels against the naive interpreter: shapes, masks, dtypes, ops, schedules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/executable_code.h"
#include "compiler/codegen/sample_kernels.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/bounds.h"
#include "compiler/kernel/interpret.h"
#include "compiler/search/heuristic.h"
#include "drivers/cpu/host.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Op;
using ops::HostTensor;

const drivers::Target& HostTarget(int threads = 2) {
  static const drivers::Target* target = new drivers::Target(*drivers::cpu::DetectTarget(2));
  static drivers::Target other = *target;
  other.compute_units = threads;
  return threads == 2 ? *target : other;
}

// Small numbers of both signs, now and then a special one.
HostTensor RandomTensor(DType dtype, int64_t elements, int seed, bool specials) {
  HostTensor tensor = HostTensor::Zeros(dtype, {elements});
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-4, 4);
  const double special[] = {0.0, -0.0, std::nan(""), INFINITY, -INFINITY, 1e30, -1e-40, 3e9, -7.5};
  for (int64_t i = 0; i < elements; ++i) {
    if (ir::IsFloat(dtype)) {
      tensor.SetFloat(i, specials && random() % 8 == 0 ? special[random() % 9] : uniform(random));
    } else if (dtype == DType::kBool) {
      tensor.SetInt(i, random() % 2);
    } else {
      const auto wild = static_cast<int64_t>((uint64_t{random()} << 32) ^ random());
      tensor.SetInt(i,
                    specials && random() % 4 == 0 ? wild : static_cast<int64_t>(random() % 13) - 6);
    }
  }
  return tensor;
}

std::vector<HostTensor> Globals(const kernel::Kernel& kernel, bool specials) {
  std::vector<HostTensor> globals;
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.memory != kernel::Memory::kGlobal) continue;
    globals.push_back(RandomTensor(buffer.dtype, buffer.elements,
                                   static_cast<int>(globals.size()) + 1,
                                   specials && buffer.access == kernel::Access::kRead));
  }
  return globals;
}

// GuardedMemory begins at a multiple of 64 bytes: so many behind a tensor are no guarded page.
size_t Slack(const HostTensor& tensor) { return (64 - tensor.bytes.size() % 64) % 64; }
constexpr uint8_t kUntouched = 0xa5;

// Runs tasks one by one, between pages that must not be touched, in reverse order, each with fresh
// scratch full of ones: they must not depend on each other.
absl::Status RunCompiled(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                         const drivers::Target& target, std::vector<HostTensor>* globals) {
  auto image = CompileKernel(kernel, schedule, target);
  if (!image.ok()) return image.status();
  const ExecutableCode code(*image);
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  std::vector<void*> arguments;
  for (HostTensor& tensor : *globals) {
    memory.push_back(std::make_unique<GuardedMemory>(tensor.bytes.size()));
    std::memcpy(memory.back()->data(), tensor.bytes.data(), tensor.bytes.size());
    std::memset(static_cast<char*>(memory.back()->data()) + tensor.bytes.size(), kUntouched,
                Slack(tensor));
    arguments.push_back(memory.back()->data());
  }
  const GuardedMemory scratch(image->scratch_bytes);
  const int64_t step = std::max<int64_t>(1, image->grid_size / 50);
  for (int64_t end = image->grid_size; end > 0; end -= std::min(end, step)) {
    std::memset(scratch.data(), 0xff, static_cast<size_t>(image->scratch_bytes));
    code.Run(arguments.data(), std::max<int64_t>(0, end - step), end, scratch.data());
  }
  for (size_t i = 0; i < globals->size(); ++i) {
    HostTensor& tensor = (*globals)[i];
    std::memcpy(tensor.bytes.data(), arguments[i], tensor.bytes.size());
    const auto* behind = static_cast<const uint8_t*>(arguments[i]) + tensor.bytes.size();
    if (std::any_of(behind, behind + Slack(tensor),
                    [](uint8_t byte) { return byte != kUntouched; }))
      return absl::InternalError(StrCat("wrote behind argument ", i));
  }
  return absl::OkStatus();
}

// Empty if the tensors agree.
std::string Difference(const HostTensor& want, const HostTensor& got, double tolerance) {
  for (int64_t i = 0; i < want.size(); ++i) {
    if (!ir::IsFloat(want.dtype)) {
      if (want.Int(i) != got.Int(i)) {
        return StrCat("element ", i, ": ", want.Int(i), " expected, is ", got.Int(i));
      }
      continue;
    }
    const double x = want.Float(i), y = got.Float(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    if (!(std::abs(x - y) <= tolerance * (1 + std::abs(x)))) {
      return StrCat("element ", i, ": ", x, " expected, is ", y);
    }
  }
  return "";
}

void ExpectMatches(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                   const drivers::Target& target, double tolerance, bool specials,
                   const std::string& what) {
  std::vector<HostTensor> want = Globals(kernel, specials);
  std::vector<HostTensor> got = want;
  std::vector<HostTensor*> pointers;
  for (HostTensor& tensor : want) pointers.push_back(&tensor);
  absl::Status interpreted = kernel::Interpret(kernel, pointers);
  ASSERT_TRUE(interpreted.ok()) << what << ": " << interpreted;
  absl::Status compiled = RunCompiled(kernel, schedule, target, &got);
  ASSERT_TRUE(compiled.ok()) << what << ": " << compiled << "\n" << schedule::Print(schedule);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(Difference(want[i], got[i], tolerance), "") << what << ", buffer " << i << "\n"
                                                          << schedule::Print(schedule);
  }
}

void ExpectAllMatch(const kernel::Kernel& kernel, double tolerance, const std::string& what,
                    bool specials = false) {
  ExpectMatches(kernel, {}, HostTarget(), tolerance, specials, what + " unscheduled");
  ExpectMatches(kernel, search::Choose(kernel, HostTarget()), HostTarget(), tolerance, specials,
                what);
}

class KernelsTest : public testing::Test {
 protected:
  ir::Context context_;
};

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
  small.private_cache_bytes = 16 << 10;
  for (int threads : {1, 3}) {
    small.compute_units = threads;
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
      ExpectMatches(kernel, search::Choose(kernel, small), small, 1e-3, false, kernel.name);
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

TEST_F(KernelsTest, RowKernels) {
  for (int64_t rows : {1, 3, 100, 513}) {
    for (int64_t columns : {1, 10, 77, 256}) {
      const std::string what = StrCat(rows, " rows of ", columns);
      ExpectAllMatch(SoftmaxKernel(context_, rows, columns), 2e-4, "softmax " + what);
      ExpectAllMatch(LayerNormKernel(context_, rows, columns), 2e-4, "layer norm " + what);
    }
  }
}

TEST_F(KernelsTest, Chains) {
  for (int64_t elements : {0, 1, 15, 16, 17, 1000, 70001}) {
    ExpectAllMatch(ChainKernel(context_, elements), 1e-6, StrCat("chain ", elements));
  }
}

// Every unary and binary op on every dtype that it takes.
constexpr DType kDTypes[] = {DType::kBool,   DType::kInt8,    DType::kInt16,  DType::kInt32,
                             DType::kInt64,  DType::kUInt8,   DType::kUInt16, DType::kUInt32,
                             DType::kUInt64, DType::kFloat32, DType::kFloat64};

bool Takes(Op op, DType dtype) {
  const bool is_float = ir::IsFloat(dtype), is_bool = dtype == DType::kBool;
  switch (op) {
    case Op::kReciprocal:
    case Op::kSqrt:
    case Op::kExp2:
    case Op::kLog2:
    case Op::kSin:
    case Op::kTrunc:
    case Op::kDiv:
    case Op::kPow:
      return is_float;
    case Op::kNot:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return !is_float;
    case Op::kIDiv:
    case Op::kMod:
    case Op::kShl:
    case Op::kShr:
      return !is_float && !is_bool;
    case Op::kNeg:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
      return !is_bool;
    default:
      return true;
  }
}

TEST_F(KernelsTest, EveryOpOnEveryDType) {
  const Op ops[] = {Op::kNeg, Op::kReciprocal, Op::kSqrt,  Op::kExp2,  Op::kLog2,
                    Op::kSin, Op::kTrunc,      Op::kNot,   Op::kAdd,   Op::kSub,
                    Op::kMul, Op::kDiv,        Op::kIDiv,  Op::kMod,   Op::kMax,
                    Op::kMin, Op::kPow,        Op::kCmpLt, Op::kCmpEq, Op::kCmpNe,
                    Op::kAnd, Op::kOr,         Op::kXor,   Op::kShl,   Op::kShr};
  for (Op op : ops) {
    for (DType dtype : kDTypes) {
      if (!Takes(op, dtype)) continue;
      KernelWriter w(context_);
      const bool unary = op <= Op::kNot;
      const bool compares = op >= Op::kCmpLt && op <= Op::kCmpNe;
      const int64_t n = 333;
      const int a = w.In(n, dtype), b = w.In(n, dtype);
      const int c = w.Out(n, compares ? DType::kBool : dtype);
      auto i = w.Range(n);
      w.Stage({i});
      auto x = w.Load(a, i), y = w.Load(b, i);
      w.Store(c, i, unary ? x.Unary(op) : x.Binary(op, y));
      ExpectAllMatch(w.kernel, 3e-6, StrCat(ir::Name(op), " of ", ir::Name(dtype)), true);
    }
  }
}

TEST_F(KernelsTest, EveryCast) {
  for (DType from : kDTypes) {
    for (DType to : kDTypes) {
      KernelWriter w(context_);
      const int64_t n = 200;
      const int a = w.In(n, from), b = w.Out(n, to);
      auto i = w.Range(n);
      w.Stage({i});
      w.Store(b, i, w.Load(a, i).Cast(to));
      ExpectAllMatch(w.kernel, 1e-6, StrCat("cast ", ir::Name(from), " to ", ir::Name(to)), true);
    }
  }
}

// The last vector of a row has one lane, whose store must not reach into the next row.
TEST_F(KernelsTest, CastsToNarrowElementsStoreOneLane) {
  for (const char* dtype : {"int8", "uint8", "int16", "uint16"}) {
    auto kernel = kernel::ParseKernel(
        StrCat("buffer b0 int32[51] read\nbuffer b1 ", dtype, "[51] write\n", "grid r0:17\n",
               "stage r1:3\n  b1[r1*17 + r0] = ", dtype, "(b0[r1*17 + r0])\n"),
        context_);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    auto schedule = schedule::Parse("split 0 16\nbind 3 vector\norder 0 2 3 1\n");
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ExpectMatches(*kernel, *schedule, HostTarget(), 0, false, dtype);
  }
}

TEST_F(KernelsTest, EveryReductionOverEveryAxis) {
  for (DType dtype : kDTypes) {
    for (ir::ReduceKind kind :
         {ir::ReduceKind::kSum, ir::ReduceKind::kProd, ir::ReduceKind::kMax}) {
      for (bool inner : {true, false}) {
        KernelWriter w(context_);
        const int64_t m = 37, n = 75;
        const int a = w.In(m * n, dtype);
        const int b = w.Out(inner ? m : n, dtype);
        auto i = w.Range(m), j = w.Range(n);
        auto value = w.Load(a, i * n + j);
        if (inner) {
          w.Stage({i}, {j});
          w.Store(b, i, w.Reduce(kind, value, {j}));
        } else {
          w.Stage({j}, {i});
          w.Store(b, j, w.Reduce(kind, value, {i}));
        }
        if (dtype == DType::kBool && kind != ir::ReduceKind::kMax) continue;
        ExpectAllMatch(w.kernel, 1e-3,
                       StrCat("reduction ", static_cast<int>(kind), " of ", ir::Name(dtype)));
      }
    }
  }
}

TEST_F(KernelsTest, ReductionsOverOuterAndInnerAxesTogether) {
  for (int64_t batch : {1, 3, 9}) {
    for (int64_t pixels : {1, 5, 64, 100}) {
      KernelWriter w(context_);
      const int64_t channels = 19;
      const int x = w.In(batch * channels * pixels), y = w.Out(channels), z = w.Out(channels);
      auto c = w.Range(channels), n = w.Range(batch), p = w.Range(pixels);
      w.Stage({c}, {n, p});
      auto value = w.Load(x, (n * channels + c) * pixels + p);
      w.Store(y, c, w.Sum(value, {n, p}));
      w.Store(z, c, w.Sum(value * value, {n, p}) * w.Float(0.5));
      ExpectAllMatch(w.kernel, 2e-4, StrCat("channels of ", batch, " by ", pixels));
    }
  }
}

TEST_F(KernelsTest, ViewsAndMasks) {
  for (int64_t n : {1, 9, 40, 257}) {
    KernelWriter w(context_);
    const int a = w.In(n * n), b = w.In(n);
    const int flipped = w.Out(n * n), transposed = w.Out(n * n), padded = w.Out((n + 5) * n);
    const int strided = w.Out(n), divided = w.Out(n * n), masked = w.Out(n);
    auto i = w.Range(n), j = w.Range(n);
    w.Stage({i, j});
    w.Store(flipped, i * n + j, w.Load(a, i * n + (w.Int(n - 1) - j)));
    auto k = w.Range(n), l = w.Range(n);
    w.Stage({k, l});
    w.Store(transposed, k * n + l, w.Load(a, l * n + k));
    auto p = w.Range(n), q = w.Range(n + 5);
    w.Stage({p, q});
    auto inside = (w.Int(1) < q) & (q < n + 2);
    w.Store(padded, p * (n + 5) + q, w.LoadIf(a, p * n + q - 2, inside));
    auto r = w.Range(n);
    w.Stage({r});
    w.Store(strided, r, w.Load(a, r * n));
    auto s = w.Range(n * n);
    w.Stage({s});
    w.Store(divided, s,
            w.Load(a, s) +
                w.Load(b, s.Binary(Op::kIDiv, w.Int(n))) * w.Load(b, s.Binary(Op::kMod, w.Int(n))));
    auto t = w.Range(n);
    w.Stage({t});
    w.StoreIf(masked, t, w.Load(b, t), t < n / 2);
    ExpectAllMatch(w.kernel, 2e-4, StrCat("views of ", n));
  }
}

// Odd schedules for an odd matmul: every combination of ragged ends, orders and bindings must
// compute the same.
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
  for (const char* text : schedules) {
    const auto schedule = schedule::Parse(text);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    for (const auto& s : {std::array<int64_t, 3>{23, 37, 29}, {24, 64, 32}, {5, 9, 3}, {1, 1, 1}}) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        const kernel::Kernel kernel =
            MatmulKernel(context_, s[0], s[1], s[2], transposes & 1, transposes & 2);
        ExpectMatches(kernel, *schedule, HostTarget(), 2e-4, false,
                      StrCat(s[0], " ", s[1], " ", s[2], " ", transposes));
      }
    }
  }
}

TEST_F(KernelsTest, Transposes) {
  const int64_t shapes[][2] = {{16, 16}, {64, 48}, {100, 300}, {333, 77}, {17, 1000}, {500, 3}};
  for (const auto& s : shapes) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kBool}) {
      KernelWriter w(context_);
      const int x = w.In(s[0] * s[1], dtype), y = w.Out(s[0] * s[1], dtype);
      auto i = w.Range(s[1]), j = w.Range(s[0]);
      w.Stage({i, j});
      w.Store(y, i * s[0] + j, w.Load(x, j * s[1] + i));
      ExpectAllMatch(w.kernel, 0, StrCat("transpose ", s[0], " ", s[1]));
    }
  }
}

TEST_F(KernelsTest, GathersOutOfRangeReadZero) {
  KernelWriter w(context_);
  const int64_t n = 100, rows = 7, width = 33;
  const int table = w.In(rows * width), index = w.In(n, DType::kInt32), out = w.Out(n * width);
  auto i = w.Range(n), j = w.Range(width);
  w.Stage({i, j});
  auto row = w.Load(index, i).Cast(DType::kInt64);
  w.Store(out, i * width + j, w.LoadIf(table, row * width + j, (w.Int(-1) < row) & (row < rows)));
  ExpectAllMatch(w.kernel, 0, "gather");
}

// Rows of every width and number, far more positions than rows, and rows that are not there: what
// lies around the buffers must not be touched, and each element gets its values in order.
TEST_F(KernelsTest, Scatters) {
  for (const int64_t width : {1, 3, 16, 33, 600}) {
    for (const bool combines : {true, false}) {
      KernelWriter w(context_);
      const int64_t positions = 70, rows = 7;
      const int values = w.In(positions * width), index = w.In(positions, DType::kInt32);
      const int out = w.Buffer(rows * width, kernel::Access::kUpdate);
      auto i = w.Range(width), p = w.Range(positions);
      w.Scatter({i}, {p});
      auto row = w.Load(index, p).Cast(DType::kInt64);
      auto place = row * width + i, valid = (w.Int(-1) < row) & (row < rows);
      auto value = w.Load(values, p * width + i);
      w.StoreIf(out, place, combines ? w.LoadIf(out, place, valid) + value : value, valid);
      ASSERT_EQ(kernel::Verify(w.kernel), absl::OkStatus());
      ASSERT_EQ(kernel::VerifyBounds(w.kernel, context_), absl::OkStatus());
      ExpectAllMatch(w.kernel, 0, StrCat("scatter ", width));
    }
  }
}

// Every lane goes to a row of its own.
TEST_F(KernelsTest, ScattersElements) {
  for (const int64_t width : {5, 64}) {
    KernelWriter w(context_);
    const int64_t positions = 40, rows = 9;
    const int values = w.In(positions * width, DType::kInt16);
    const int index = w.In(positions * width, DType::kInt8);
    const int out = w.Buffer(rows * width, kernel::Access::kUpdate, DType::kInt16);
    auto i = w.Range(width), p = w.Range(positions);
    w.Scatter({i}, {p});
    auto row = w.Load(index, p * width + i).Cast(DType::kInt64);
    auto place = row * width + i, valid = (w.Int(-1) < row) & (row < rows);
    w.StoreIf(out, place, w.LoadIf(out, place, valid) + w.Load(values, p * width + i), valid);
    ExpectAllMatch(w.kernel, 0, StrCat("scatter_elements ", width));
  }
}

TEST_F(KernelsTest, PoolingWindows) {
  for (int64_t size : {4, 10, 24}) {
    KernelWriter w(context_);
    const int64_t images = 6, out = size / 2;
    const int x = w.In(images * size * size), y = w.Out(images * out * out);
    auto n = w.Range(images), h = w.Range(out), v = w.Range(out), p = w.Range(2), q = w.Range(2);
    w.Stage({n, h, v}, {p, q});
    w.Store(y, (n * out + h) * out + v,
            w.Reduce(ir::ReduceKind::kMax,
                     w.Load(x, n * (size * size) + (h * 2 + p) * size + (v * 2 + q)), {p, q}));
    ExpectAllMatch(w.kernel, 0, StrCat("pool ", size));
  }
}

TEST_F(KernelsTest, LocalsOfManyElements) {
  KernelWriter w(context_);
  const int64_t rows = 50, columns = 40;
  const int x = w.In(rows * columns), y = w.Out(rows * columns);
  const int kept = w.Local(columns), sum = w.Local(1);
  auto r = w.Range(rows), zero = w.Int(0);
  w.Grid({r});
  auto c = w.Range(columns);
  w.Stage({c});
  w.Store(kept, c, w.Load(x, r * columns + c) * w.Float(2));
  auto d = w.Range(columns);
  w.Stage({}, {d});
  w.Store(sum, zero, w.Sum(w.Load(kept, d), {d}));
  auto e = w.Range(columns);
  w.Stage({e});
  w.Store(y, r * columns + e, w.Load(kept, e) + w.Load(sum, zero));
  ExpectAllMatch(w.kernel, 2e-4, "locals");
}

TEST_F(KernelsTest, GridOverColumns) {
  for (int64_t columns : {1, 16, 50, 2000}) {
    KernelWriter w(context_);
    const int64_t rows = 12;
    const int x = w.In(rows * columns), y = w.Out(rows * columns), most = w.Local(1);
    auto c = w.Range(columns), zero = w.Int(0);
    w.Grid({c});
    auto r = w.Range(rows);
    w.Stage({}, {r});
    w.Store(most, zero, w.Reduce(ir::ReduceKind::kMax, w.Load(x, r * columns + c), {r}));
    auto s = w.Range(rows);
    w.Stage({s});
    w.Store(y, s * columns + c, w.Load(x, s * columns + c) - w.Load(most, zero));
    ExpectAllMatch(w.kernel, 0, StrCat("columns ", columns));
  }
}

TEST_F(KernelsTest, EmptySumsGiveTheirIdentity) {
  KernelWriter w(context_);
  const int x = w.In(0), y = w.Out(20);
  auto i = w.Range(20), j = w.Range(0);
  w.Stage({i}, {j});
  w.Store(y, i, w.Sum(w.Load(x, i * 0 + j), {j}));
  ExpectAllMatch(w.kernel, 0, "empty sum");
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
  // relu(x * scale) against weights, then a bias and another relu.
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

// The graph widens it before.
TEST_F(KernelsTest, ArithmeticOfShortFloatsIsRefused) {
  KernelWriter w(context_);
  const int x = w.In(4, DType::kFloat16), y = w.Out(4, DType::kFloat16);
  auto i = w.Range(4);
  w.Stage({i});
  w.Store(y, i, w.Load(x, i) + w.Load(x, i));
  const absl::Status status = CheckSupported(w.kernel, HostTarget());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("float16"));
}

}  // namespace
}  // namespace kiln::codegen
