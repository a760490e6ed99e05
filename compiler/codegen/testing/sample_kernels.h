// Hand-written kernels, for tests and measurements of the back end.
#ifndef KILN_COMPILER_CODEGEN_TESTING_SAMPLE_KERNELS_H_
#define KILN_COMPILER_CODEGEN_TESTING_SAMPLE_KERNELS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/ir/node.h"
#include "compiler/kernel/kernel.h"

namespace kiln::codegen {

// Builds kernels: expressions by operators, buffers and ranges by number.
class KernelWriter {
 public:
  struct Expression {
    KernelWriter* writer = nullptr;
    const ir::Node* node = nullptr;
    Expression Binary(ir::Op op, Expression other) const {
      const bool compares = op == ir::Op::kCmpLt || op == ir::Op::kCmpEq || op == ir::Op::kCmpNe;
      return writer->Make(op, compares ? ir::DType::kBool : node->dtype(), {node, other.node});
    }
    Expression Unary(ir::Op op) const { return writer->Make(op, node->dtype(), {node}); }
    Expression Cast(ir::DType dtype) const { return writer->Make(ir::Op::kCast, dtype, {node}); }
    Expression operator+(Expression b) const { return Binary(ir::Op::kAdd, b); }
    Expression operator-(Expression b) const { return Binary(ir::Op::kSub, b); }
    Expression operator*(Expression b) const { return Binary(ir::Op::kMul, b); }
    Expression operator/(Expression b) const { return Binary(ir::Op::kDiv, b); }
    Expression operator<(Expression b) const { return Binary(ir::Op::kCmpLt, b); }
    Expression operator&(Expression b) const { return Binary(ir::Op::kAnd, b); }
    Expression operator+(int64_t b) const { return *this + writer->Int(b); }
    Expression operator*(int64_t b) const { return *this * writer->Int(b); }
    Expression operator-(int64_t b) const { return *this - writer->Int(b); }
    Expression operator<(int64_t b) const { return *this < writer->Int(b); }
  };

  explicit KernelWriter(ir::Context& context) : context_(context) {}

  Expression Make(ir::Op op, ir::DType dtype, std::vector<const ir::Node*> operands,
                  ir::Attribute attribute = {}) {
    return {this, context_.Get(op, dtype, {}, std::move(operands), std::move(attribute))};
  }
  Expression Int(int64_t value) { return Number(ir::DType::kInt64, static_cast<double>(value)); }
  Expression Number(ir::DType dtype, double value) {
    return Make(ir::Op::kConst, dtype, {},
                ir::IsFloat(dtype) ? ir::ConstValue::Float(value)
                                   : ir::ConstValue::Int(static_cast<int64_t>(value)));
  }
  Expression Float(double value) { return Number(ir::DType::kFloat32, value); }
  Expression Range(int64_t extent) {
    return Make(ir::Op::kRange, ir::DType::kInt64, {}, ir::RangeAttr{next_range_++, extent});
  }
  int Buffer(int64_t elements, kernel::Access access, ir::DType dtype = ir::DType::kFloat32) {
    kernel.buffers.push_back({dtype, elements, kernel::Memory::kGlobal, access});
    return static_cast<int>(kernel.buffers.size()) - 1;
  }
  int In(int64_t elements, ir::DType dtype = ir::DType::kFloat32) {
    return Buffer(elements, kernel::Access::kRead, dtype);
  }
  int Out(int64_t elements, ir::DType dtype = ir::DType::kFloat32) {
    return Buffer(elements, kernel::Access::kWrite, dtype);
  }
  int Local(int64_t elements, ir::DType dtype = ir::DType::kFloat32) {
    kernel.buffers.push_back({dtype, elements, kernel::Memory::kLocal, kernel::Access::kWrite});
    return static_cast<int>(kernel.buffers.size()) - 1;
  }
  Expression Load(int buffer, Expression index) {
    return Make(ir::Op::kLoad, kernel.buffers[buffer].dtype, {index.node}, ir::IntAttr{buffer});
  }
  Expression LoadIf(int buffer, Expression index, Expression valid) {
    return Make(ir::Op::kLoad, kernel.buffers[buffer].dtype, {index.node, valid.node},
                ir::IntAttr{buffer});
  }
  Expression Where(Expression condition, Expression a, Expression b) {
    return Make(ir::Op::kWhere, a.node->dtype(), {condition.node, a.node, b.node});
  }
  Expression Reduce(ir::ReduceKind kind, Expression value, const std::vector<Expression>& ranges) {
    std::vector<const ir::Node*> operands = {value.node};
    for (Expression range : ranges) operands.push_back(range.node);
    return Make(ir::Op::kReduce, value.node->dtype(), std::move(operands), ir::ReduceAttr{kind});
  }
  Expression Sum(Expression value, const std::vector<Expression>& ranges) {
    return Reduce(ir::ReduceKind::kSum, value, ranges);
  }
  void Grid(const std::vector<Expression>& ranges) { kernel.grid = Nodes(ranges); }
  // Begins a scatter's only stage.
  void Scatter(const std::vector<Expression>& ranges, const std::vector<Expression>& ordered) {
    kernel.stages.push_back({Nodes(ranges), {}, {}, Nodes(ordered)});
  }
  // Begins a stage.
  void Stage(const std::vector<Expression>& ranges, const std::vector<Expression>& reduce = {}) {
    kernel.stages.push_back({Nodes(ranges), Nodes(reduce), {}});
  }
  void Store(int buffer, Expression index, Expression value) {
    kernel.stages.back().stores.push_back({buffer, index.node, value.node, nullptr});
  }
  void StoreIf(int buffer, Expression index, Expression value, Expression valid) {
    kernel.stages.back().stores.push_back({buffer, index.node, value.node, valid.node});
  }

  kernel::Kernel kernel;

 private:
  static std::vector<const ir::Node*> Nodes(const std::vector<Expression>& expressions) {
    std::vector<const ir::Node*> nodes;
    for (Expression expression : expressions) nodes.push_back(expression.node);
    return nodes;
  }

  ir::Context& context_;
  int64_t next_range_ = 0;
};

// out[m, n] = Σ a[m, k] * b[k, n]; the operands may be transposed in memory.
inline kernel::Kernel MatmulKernel(ir::Context& context, int64_t m, int64_t n, int64_t k,
                                   bool transpose_a = false, bool transpose_b = false) {
  KernelWriter w(context);
  const int a = w.In(m * k), b = w.In(k * n), c = w.Out(m * n);
  auto i = w.Range(m), j = w.Range(n), p = w.Range(k);
  w.Stage({i, j}, {p});
  auto x = w.Load(a, transpose_a ? p * m + i : i * k + p);
  auto y = w.Load(b, transpose_b ? j * k + p : p * n + j);
  w.Store(c, i * n + j, w.Sum(x * y, {p}));
  w.kernel.name = "matmul";
  return w.kernel;
}

struct ConvolutionShape {
  int64_t batch, in_channels, out_channels, size, window;
  int64_t padding = 0;
  int64_t stride = 1;
  int64_t out_size() const { return (size + 2 * padding - window) / stride + 1; }
};

// Returns the condition 0 <= x < size.
inline KernelWriter::Expression Within(KernelWriter& w, KernelWriter::Expression x, int64_t size) {
  return (w.Int(-1) < x) & (x < size);
}

// x[n, c, h * stride + i - padding, v * stride + j - padding]; 0 in the border.
inline KernelWriter::Expression Pixel(KernelWriter& w, const ConvolutionShape& s, int x,
                                      KernelWriter::Expression n, KernelWriter::Expression c,
                                      KernelWriter::Expression h, KernelWriter::Expression i,
                                      KernelWriter::Expression v, KernelWriter::Expression j) {
  auto row = h * s.stride + i - s.padding, column = v * s.stride + j - s.padding;
  auto index = (n * s.in_channels + c) * (s.size * s.size) + row * s.size + column;
  if (s.padding == 0) return w.Load(x, index);
  return w.LoadIf(x, index, Within(w, row, s.size) & Within(w, column, s.size));
}

// y[n, o, h, w] = Σ x[n, c, h * stride + i - padding, …] * weight[o, c, i, j]
inline kernel::Kernel ConvolutionKernel(ir::Context& context, const ConvolutionShape& s) {
  KernelWriter w(context);
  const int64_t out = s.out_size();
  const int x = w.In(s.batch * s.in_channels * s.size * s.size);
  const int f = w.In(s.out_channels * s.in_channels * s.window * s.window);
  const int y = w.Out(s.batch * s.out_channels * out * out);
  auto n = w.Range(s.batch), o = w.Range(s.out_channels), h = w.Range(out), v = w.Range(out);
  auto c = w.Range(s.in_channels), i = w.Range(s.window), j = w.Range(s.window);
  w.Stage({n, o, h, v}, {c, i, j});
  auto pixel = Pixel(w, s, x, n, c, h, i, v, j);
  auto weight = w.Load(f, ((o * s.in_channels + c) * s.window + i) * s.window + j);
  w.Store(y, ((n * s.out_channels + o) * out + h) * out + v, w.Sum(pixel * weight, {c, i, j}));
  w.kernel.name = "convolution";
  return w.kernel;
}

// dx[n, c, h, w] = Σ dy[n, o, h - i, w - j] * weight[o, c, i, j], for padding 0 and stride 1
inline kernel::Kernel ConvolutionInputGradientKernel(ir::Context& context,
                                                     const ConvolutionShape& s) {
  KernelWriter w(context);
  const int64_t out = s.out_size();
  const int y = w.In(s.batch * s.out_channels * out * out);
  const int f = w.In(s.out_channels * s.in_channels * s.window * s.window);
  const int x = w.Out(s.batch * s.in_channels * s.size * s.size);
  auto n = w.Range(s.batch), c = w.Range(s.in_channels), h = w.Range(s.size), v = w.Range(s.size);
  auto o = w.Range(s.out_channels), i = w.Range(s.window), j = w.Range(s.window);
  w.Stage({n, c, h, v}, {o, i, j});
  auto row = h - i, column = v - j;
  auto pixel = w.LoadIf(y, (n * s.out_channels + o) * (out * out) + row * out + column,
                        Within(w, row, out) & Within(w, column, out));
  auto weight = w.Load(f, ((o * s.in_channels + c) * s.window + i) * s.window + j);
  w.Store(x, ((n * s.in_channels + c) * s.size + h) * s.size + v, w.Sum(pixel * weight, {o, i, j}));
  w.kernel.name = "convolution_input_gradient";
  return w.kernel;
}

// dw[o, c, i, j] = Σ dy[n, o, h, w] * x[n, c, h * stride + i - padding, …]
inline kernel::Kernel ConvolutionWeightGradientKernel(ir::Context& context,
                                                      const ConvolutionShape& s) {
  KernelWriter w(context);
  const int64_t out = s.out_size();
  const int y = w.In(s.batch * s.out_channels * out * out);
  const int x = w.In(s.batch * s.in_channels * s.size * s.size);
  const int f = w.Out(s.out_channels * s.in_channels * s.window * s.window);
  auto o = w.Range(s.out_channels), c = w.Range(s.in_channels), i = w.Range(s.window),
       j = w.Range(s.window);
  auto n = w.Range(s.batch), h = w.Range(out), v = w.Range(out);
  w.Stage({o, c, i, j}, {n, h, v});
  auto gradient = w.Load(y, ((n * s.out_channels + o) * out + h) * out + v);
  auto pixel = Pixel(w, s, x, n, c, h, i, v, j);
  w.Store(f, ((o * s.in_channels + c) * s.window + i) * s.window + j,
          w.Sum(gradient * pixel, {n, h, v}));
  w.kernel.name = "convolution_weight_gradient";
  return w.kernel;
}

// Rows of `columns`: a maximum, a sum of exponentials, the quotients.
inline kernel::Kernel SoftmaxKernel(ir::Context& context, int64_t rows, int64_t columns) {
  KernelWriter w(context);
  const int x = w.In(rows * columns), y = w.Out(rows * columns);
  const int most = w.Local(1), sum = w.Local(1);
  auto r = w.Range(rows), zero = w.Int(0);
  w.Grid({r});
  auto c = w.Range(columns);
  w.Stage({}, {c});
  w.Store(most, zero, w.Reduce(ir::ReduceKind::kMax, w.Load(x, r * columns + c), {c}));
  auto exponential = [&](KernelWriter::Expression column) {
    auto shifted = w.Load(x, r * columns + column) - w.Load(most, zero);
    return (shifted * w.Float(1.4426950408889634)).Unary(ir::Op::kExp2);
  };
  auto d = w.Range(columns);
  w.Stage({}, {d});
  w.Store(sum, zero, w.Sum(exponential(d), {d}));
  auto e = w.Range(columns);
  w.Stage({e});
  w.Store(y, r * columns + e, exponential(e) / w.Load(sum, zero));
  w.kernel.name = "softmax";
  return w.kernel;
}

// Rows of `columns`, normalised to mean 0 and variance 1, scaled and shifted by column.
inline kernel::Kernel LayerNormKernel(ir::Context& context, int64_t rows, int64_t columns) {
  KernelWriter w(context);
  const int x = w.In(rows * columns), scale = w.In(columns), shift = w.In(columns);
  const int y = w.Out(rows * columns);
  const int mean = w.Local(1), deviation = w.Local(1);
  auto r = w.Range(rows), zero = w.Int(0);
  w.Grid({r});
  auto share = w.Float(1.0 / static_cast<double>(columns));
  auto c = w.Range(columns);
  w.Stage({}, {c});
  w.Store(mean, zero, w.Sum(w.Load(x, r * columns + c), {c}) * share);
  auto d = w.Range(columns);
  w.Stage({}, {d});
  auto centred = w.Load(x, r * columns + d) - w.Load(mean, zero);
  auto variance = w.Sum(centred * centred, {d}) * share;
  w.Store(deviation, zero,
          (variance + w.Float(1e-5)).Unary(ir::Op::kSqrt).Unary(ir::Op::kReciprocal));
  auto e = w.Range(columns);
  w.Stage({e});
  auto normal = (w.Load(x, r * columns + e) - w.Load(mean, zero)) * w.Load(deviation, zero);
  w.Store(y, r * columns + e, normal * w.Load(scale, e) + w.Load(shift, e));
  w.kernel.name = "layer_norm";
  return w.kernel;
}

// A chain of cheap operations.
inline kernel::Kernel ChainKernel(ir::Context& context, int64_t elements) {
  KernelWriter w(context);
  const int x = w.In(elements), y = w.In(elements), z = w.Out(elements);
  auto i = w.Range(elements);
  w.Stage({i});
  auto sum = w.Load(x, i) * w.Float(1.5) + w.Load(y, i);
  w.Store(z, i, sum.Binary(ir::Op::kMax, w.Float(0)) * w.Float(0.5) + w.Float(1));
  w.kernel.name = "chain";
  return w.kernel;
}

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_TESTING_SAMPLE_KERNELS_H_
