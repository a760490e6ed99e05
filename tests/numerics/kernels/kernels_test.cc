// Compares compiled kernels with the naive interpreter: rows, views, masks, gathers, scatters,
// locals.
#include <gtest/gtest.h>

#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/bounds.h"
#include "tests/numerics/kernels/kernel_check.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Op;

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

// Rows of every width and number, far more positions than rows, and rows that do not exist: memory
// around the buffers must not be accessed, and each element gets its values in order.
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

// Each lane writes to a different row.
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

}  // namespace
}  // namespace kiln::codegen
