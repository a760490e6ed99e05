// Every op of the daemon's table as a function.
// Generated from compiler/ops by `opgen cpp_header`; do not edit.
//
//   Value y = ops::Relu(ops::Conv2d(x, weight, {.bias = bias, .padding = {1, 1}}));
//   Value loss = ops::CrossEntropy(y, labels);
//
// Operands come first, then what has no default; the rest is in a struct of options. Operands that
// broadcast may be numbers, which take the dtype of the tensor beside them. Dimensions, and all
// other integers, may be variables: see Dimension. The last parameter is where messages say that
// the node was built; a function of your own that builds several hands its caller's on.
//
// Mistakes in a graph come out of GraphBuilder::Build and, where only the daemon sees them, out of
// Program::digest, with op, operands and source line. The rules of shapes and dtypes stand in
// clients/python/OPS.md.
#ifndef KILN_CLIENTS_CPP_KILN_OPS_H_
#define KILN_CLIENTS_CPP_KILN_OPS_H_

// clang-format off
#include <limits>
#include <optional>
#include <string>
#include "absl/types/span.h"
#include "kiln/graph.h"

namespace kiln::ops {

// -x; unsigned wraps.
// Shape: same. DType: same.
Value Neg(Value x, Location location = Location::current());

// 1 / x.
// Shape: same. DType: promote_float.
Value Reciprocal(Value x, Location location = Location::current());

// The square root; NaN below 0.
// Shape: same. DType: promote_float.
Value Sqrt(Value x, Location location = Location::current());

// 2 to the x.
// Shape: same. DType: promote_float.
Value Exp2(Value x, Location location = Location::current());

// The binary logarithm; -inf at 0, NaN below.
// Shape: same. DType: promote_float.
Value Log2(Value x, Location location = Location::current());

// The sine of x in radians.
// Shape: same. DType: promote_float.
Value Sin(Value x, Location location = Location::current());

// x without its fraction; its gradient is 0.
// Shape: same. DType: same.
Value Trunc(Value x, Location location = Location::current());

// Every bit inverted; of bool, the opposite.
// Shape: same. DType: same.
Value Not(Value x, Location location = Location::current());

struct CastOptions {
  bool saturate = true;
};
// x in another dtype. Integers wrap. Float to integer cuts the fraction; NaN gives 0, what is out
// of range the nearest end. To bool: whether x is not 0. To a float8: what is beyond its largest
// number, infinities too, becomes that number, or without saturate NaN of float8_e4m3 and an
// infinity of float8_e5m2.
// Shape: same. DType: attribute.
Value Cast(Value x, DType dtype, const CastOptions& options = {},
           Location location = Location::current());

// The same bits in another dtype of the same size.
// Shape: same. DType: attribute.
Value Bitcast(Value x, DType dtype, Location location = Location::current());

// a + b.
// Shape: broadcast. DType: promote.
Value Add(const Operand& a, const Operand& b, Location location = Location::current());

// a - b.
// Shape: broadcast. DType: promote.
Value Sub(const Operand& a, const Operand& b, Location location = Location::current());

// a * b.
// Shape: broadcast. DType: promote.
Value Mul(const Operand& a, const Operand& b, Location location = Location::current());

// a / b, as floats.
// Shape: broadcast. DType: promote_float.
Value Div(const Operand& a, const Operand& b, Location location = Location::current());

// a / b rounded down, of integers; 0 where b is 0.
// Shape: broadcast. DType: promote.
Value Idiv(const Operand& a, const Operand& b, Location location = Location::current());

// a - floor(a / b) * b without that rounding, as Python's %: it has b's sign; where b is 0, 0 of
// integers and NaN of floats.
// Shape: broadcast. DType: promote.
Value Mod(const Operand& a, const Operand& b, Location location = Location::current());

// The larger of a and b; NaN if either is.
// Shape: broadcast. DType: promote.
Value Maximum(const Operand& a, const Operand& b, Location location = Location::current());

// The smaller of a and b; NaN if either is.
// Shape: broadcast. DType: promote.
Value Minimum(const Operand& a, const Operand& b, Location location = Location::current());

// a to the b; of floats C's pow; of integers it wraps, and to a negative power is 0 unless a is 1
// or -1.
// Shape: broadcast. DType: promote.
Value Pow(const Operand& a, const Operand& b, Location location = Location::current());

// a < b.
// Shape: broadcast. DType: bool.
Value Cmplt(const Operand& a, const Operand& b, Location location = Location::current());

// a == b.
// Shape: broadcast. DType: bool.
Value Cmpeq(const Operand& a, const Operand& b, Location location = Location::current());

// a != b.
// Shape: broadcast. DType: bool.
Value Cmpne(const Operand& a, const Operand& b, Location location = Location::current());

// a & b, bit by bit.
// Shape: broadcast. DType: promote.
Value And(const Operand& a, const Operand& b, Location location = Location::current());

// a | b, bit by bit.
// Shape: broadcast. DType: promote.
Value Or(const Operand& a, const Operand& b, Location location = Location::current());

// a ^ b, bit by bit.
// Shape: broadcast. DType: promote.
Value Xor(const Operand& a, const Operand& b, Location location = Location::current());

// a << b; 0 where b is negative or at least a's width.
// Shape: broadcast. DType: promote.
Value Shl(const Operand& a, const Operand& b, Location location = Location::current());

// a >> b with a's sign kept; where b is negative or at least a's width, the sign alone: -1 or 0.
// Shape: broadcast. DType: promote.
Value Shr(const Operand& a, const Operand& b, Location location = Location::current());

// a where condition is true, b elsewhere.
// Shape: broadcast. DType: promote.
Value Where(Value condition, const Operand& a, const Operand& b,
            Location location = Location::current());

struct SumOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// The sum over axes, in x's dtype; integers wrap.
// Shape: reduce. DType: same.
Value Sum(Value x, const SumOptions& options = {}, Location location = Location::current());

struct ProdOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// The product over axes, in x's dtype; integers wrap.
// Shape: reduce. DType: same.
Value Prod(Value x, const ProdOptions& options = {}, Location location = Location::current());

struct MaxOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// The largest over axes; NaN if any is. Equal ones share the gradient equally.
// Shape: reduce. DType: same.
Value Max(Value x, const MaxOptions& options = {}, Location location = Location::current());

// The same elements in row-major order under another shape.
// Shape: reshape. DType: same.
Value Reshape(Value x, const Dimensions& shape, Location location = Location::current());

// Result dimension i is x's dimension axes[i].
// Shape: permute. DType: same.
Value Permute(Value x, const Dimensions& axes, Location location = Location::current());

// x broadcast to shape, as NumPy's broadcast_to.
// Shape: expand. DType: same.
Value Expand(Value x, const Dimensions& shape, Location location = Location::current());

// Zeros around x: padding is before and after for each dimension.
// Shape: pad. DType: same.
Value Pad(Value x, const Dimensions& padding, Location location = Location::current());

// A part of x: bounds is begin and end for each dimension.
// Shape: shrink. DType: same.
Value Shrink(Value x, const Dimensions& bounds, Location location = Location::current());

struct FlipOptions {
  Dimensions axes = {};
};
// x reversed along axes; an empty list means all.
// Shape: flip. DType: same.
Value Flip(Value x, const FlipOptions& options = {}, Location location = Location::current());

struct WindowOptions {
  Dimension stride = 1;
  Dimension dilation = 1;
};
// Sliding windows: the axis becomes the windows' positions and a last dimension of size is added;
// result[…, o, …, k] = x[…, o * stride + k * dilation, …].
// Shape: window. DType: same.
Value Window(Value x, const Dimension& axis, const Dimension& size,
             const WindowOptions& options = {}, Location location = Location::current());

struct UnwindowOptions {
  Dimension stride = 1;
  Dimension dilation = 1;
};
// The adjoint of window, before its sum over the last dimension: each window's elements put back
// where they came from along an axis of length, zero elsewhere.
// Shape: unwindow. DType: same.
Value Unwindow(Value x, const Dimension& axis, const Dimension& length,
               const UnwindowOptions& options = {}, Location location = Location::current());

struct GatherElementsOptions {
  Dimension axis = 0;
};
// x[…, index[…, i, …], …], as ONNX's GatherElements; away from the axis index has x's sizes or 1.
// An index out of range (a negative one too) reads zero.
// Shape: gather_elements. DType: same.
Value GatherElements(Value x, Value index, const GatherElementsOptions& options = {},
                     Location location = Location::current());

struct ScatterElementsOptions {
  Dimension axis = 0;
  std::string mode = "set";
};
// x with values combined into the elements that gather_elements reads; mode is set (the last one
// wins), add, mul, max or min. An index out of range changes nothing.
// Shape: scatter_elements. DType: same.
Value ScatterElements(Value x, Value index, Value values,
                      const ScatterElementsOptions& options = {},
                      Location location = Location::current());

struct ConstOptions {
  Dimensions shape = {};
};
// One value in every element. A float dtype takes any number, an integer one an integer in range
// (uint64 the int64 of the same bits).
// Shape: attribute. DType: attribute.
Value Const(GraphBuilder& builder, DType dtype, const Number& value,
            const ConstOptions& options = {}, Location location = Location::current());

struct IotaOptions {
  Dimension axis = 0;
};
// Each element's index along axis.
// Shape: attribute. DType: attribute.
Value Iota(GraphBuilder& builder, DType dtype, const Dimensions& shape,
           const IotaOptions& options = {}, Location location = Location::current());

// x, computed once and kept in memory instead of fused into its users.
// Shape: same. DType: same.
Value Contiguous(Value x, Location location = Location::current());

// x, through which no gradient flows.
// Shape: same. DType: same.
Value Detach(Value x, Location location = Location::current());

// x, split over the graph's mesh by spec: for each dimension the number of the mesh's axes that
// split it, then these axes. Without a mesh just x.
// Shape: same. DType: same.
Value Shard(Value x, const Dimensions& spec, Location location = Location::current());

// x, sent from one device of a graph in stages to another; both are numbers of the graph's devices.
// Its users are computed there. Without stages just x.
// Shape: same. DType: same.
Value Send(Value x, const Dimension& source, const Dimension& target,
           Location location = Location::current());

// y, whose gradient also flows to x, element by element: upstream * derivative. With detach around
// y, derivative is all of it.
// Shape: broadcast. DType: promote.
Value WithDerivative(const Operand& y, const Operand& x, const Operand& derivative,
                     Location location = Location::current());

struct GradientOptions {
  std::optional<Value> upstream = std::nullopt;
};
// dy/dx, summed over y's elements weighted by upstream; without upstream y is a scalar. Zeros where
// y does not depend on x. Gradients of gradients are taken.
// Shape: gradient. DType: second.
Value Gradient(Value y, Value x, const GradientOptions& options = {},
               Location location = Location::current());

// e to the x.
// Shape: same. DType: promote_float.
Value Exp(Value x, Location location = Location::current());

// The natural logarithm.
// Shape: same. DType: promote_float.
Value Log(Value x, Location location = Location::current());

// The cosine of x in radians.
// Shape: same. DType: promote_float.
Value Cos(Value x, Location location = Location::current());

// The tangent of x in radians.
// Shape: same. DType: promote_float.
Value Tan(Value x, Location location = Location::current());

// The hyperbolic tangent.
// Shape: same. DType: promote_float.
Value Tanh(Value x, Location location = Location::current());

// The error function.
// Shape: same. DType: promote_float.
Value Erf(Value x, Location location = Location::current());

// |x|; its gradient at 0 is 0.
// Shape: same. DType: same.
Value Abs(Value x, Location location = Location::current());

// -1, 0 or 1; NaN for NaN.
// Shape: same. DType: same.
Value Sign(Value x, Location location = Location::current());

// x * x.
// Shape: same. DType: same.
Value Square(Value x, Location location = Location::current());

// 1 / sqrt(x).
// Shape: same. DType: promote_float.
Value Rsqrt(Value x, Location location = Location::current());

// The next whole number below or at x.
// Shape: same. DType: same.
Value Floor(Value x, Location location = Location::current());

// The next whole number above or at x.
// Shape: same. DType: same.
Value Ceil(Value x, Location location = Location::current());

// The nearest whole number; halves go to the even one.
// Shape: same. DType: same.
Value Round(Value x, Location location = Location::current());

struct ClipOptions {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};
// x held between min and max, or max where that is less than min; the gradient is 1 on both ends.
// Shape: same. DType: same.
Value Clip(Value x, const ClipOptions& options = {}, Location location = Location::current());

// The larger of a and b; where they are equal the gradient is a's.
// Shape: broadcast. DType: promote.
Value ClampMin(const Operand& a, const Operand& b, Location location = Location::current());

// The smaller of a and b; where they are equal the gradient is a's.
// Shape: broadcast. DType: promote.
Value ClampMax(const Operand& a, const Operand& b, Location location = Location::current());

// a / b rounded down; of integers idiv, 0 where b is 0.
// Shape: broadcast. DType: promote.
Value FloorDivide(const Operand& a, const Operand& b, Location location = Location::current());

// mod: a - floor(a / b) * b with b's sign.
// Shape: broadcast. DType: promote.
Value Remainder(const Operand& a, const Operand& b, Location location = Location::current());

// e to the x, less 1; exact near 0.
// Shape: same. DType: promote_float.
Value Expm1(Value x, Location location = Location::current());

// The natural logarithm of 1 + x; exact near 0.
// Shape: same. DType: promote_float.
Value Log1p(Value x, Location location = Location::current());

// The decimal logarithm.
// Shape: same. DType: promote_float.
Value Log10(Value x, Location location = Location::current());

// The hyperbolic sine.
// Shape: same. DType: promote_float.
Value Sinh(Value x, Location location = Location::current());

// The hyperbolic cosine.
// Shape: same. DType: promote_float.
Value Cosh(Value x, Location location = Location::current());

// The inverse hyperbolic sine.
// Shape: same. DType: promote_float.
Value Asinh(Value x, Location location = Location::current());

// The inverse hyperbolic cosine; NaN below 1.
// Shape: same. DType: promote_float.
Value Acosh(Value x, Location location = Location::current());

// The inverse hyperbolic tangent; NaN outside of [-1, 1].
// Shape: same. DType: promote_float.
Value Atanh(Value x, Location location = Location::current());

// log(exp(a) + exp(b)), without overflow.
// Shape: broadcast. DType: promote_float.
Value Logaddexp(const Operand& a, const Operand& b, Location location = Location::current());

// log2(2^a + 2^b), without overflow.
// Shape: broadcast. DType: promote_float.
Value Logaddexp2(const Operand& a, const Operand& b, Location location = Location::current());

// The arc sine in radians; NaN outside of [-1, 1].
// Shape: same. DType: promote_float.
Value Asin(Value x, Location location = Location::current());

// The arc cosine in radians; NaN outside of [-1, 1].
// Shape: same. DType: promote_float.
Value Acos(Value x, Location location = Location::current());

// The arc tangent in radians.
// Shape: same. DType: promote_float.
Value Atan(Value x, Location location = Location::current());

// The angle of the point (x, y) in (-pi, pi], as C's atan2.
// Shape: broadcast. DType: promote_float.
Value Atan2(const Operand& y, const Operand& x, Location location = Location::current());

// sqrt(a² + b²), without overflow; its gradient at the origin is 0.
// Shape: broadcast. DType: promote_float.
Value Hypot(const Operand& a, const Operand& b, Location location = Location::current());

// 1 - erf(x), with all its digits where it is small.
// Shape: same. DType: promote_float.
Value Erfc(Value x, Location location = Location::current());

// The inverse of erf; infinite at -1 and 1, NaN beyond.
// Shape: same. DType: promote_float.
Value Erfinv(Value x, Location location = Location::current());

// The logarithm of the gamma function's magnitude.
// Shape: same. DType: promote_float.
Value Lgamma(Value x, Location location = Location::current());

// The derivative of lgamma; NaN at 0 and the negative integers.
// Shape: same. DType: promote_float.
Value Digamma(Value x, Location location = Location::current());

// The cube root.
// Shape: same. DType: promote_float.
Value Cbrt(Value x, Location location = Location::current());

// Whether x's sign bit is set: it is below 0, or -0, or a NaN of that sign.
// Shape: same. DType: bool.
Value Signbit(Value x, Location location = Location::current());

// a with b's sign.
// Shape: broadcast. DType: promote_float.
Value Copysign(const Operand& a, const Operand& b, Location location = Location::current());

// The next float after a towards b.
// Shape: broadcast. DType: promote.
Value Nextafter(const Operand& a, const Operand& b, Location location = Location::current());

// The remainder of a / b with a's sign, as C's fmod.
// Shape: broadcast. DType: promote.
Value Fmod(const Operand& a, const Operand& b, Location location = Location::current());

struct IscloseOptions {
  double rtol = 1e-05;
  double atol = 1e-08;
  bool equal_nan = false;
};
// Whether |a - b| <= atol + rtol * |b|; infinities are close to themselves, NaN to nothing, or with
// equal_nan to NaN.
// Shape: broadcast. DType: bool.
Value Isclose(const Operand& a, const Operand& b, const IscloseOptions& options = {},
              Location location = Location::current());

struct NanToNumOptions {
  double nan = 0.0;
  double posinf = std::numeric_limits<double>::infinity();
  double neginf = -std::numeric_limits<double>::infinity();
};
// x with NaN and infinities replaced by numbers; an infinite posinf or neginf stands for the
// dtype's largest or lowest.
// Shape: same. DType: same.
Value NanToNum(Value x, const NanToNumOptions& options = {},
               Location location = Location::current());

// a > b.
// Shape: broadcast. DType: bool.
Value Greater(const Operand& a, const Operand& b, Location location = Location::current());

// a >= b.
// Shape: broadcast. DType: bool.
Value GreaterEqual(const Operand& a, const Operand& b, Location location = Location::current());

// a <= b.
// Shape: broadcast. DType: bool.
Value LessEqual(const Operand& a, const Operand& b, Location location = Location::current());

// Whether neither a nor b is 0.
// Shape: broadcast. DType: bool.
Value LogicalAnd(const Operand& a, const Operand& b, Location location = Location::current());

// Whether a or b is not 0.
// Shape: broadcast. DType: bool.
Value LogicalOr(const Operand& a, const Operand& b, Location location = Location::current());

// Whether one of a and b is 0 and the other not.
// Shape: broadcast. DType: bool.
Value LogicalXor(const Operand& a, const Operand& b, Location location = Location::current());

// Whether x is 0.
// Shape: same. DType: bool.
Value LogicalNot(Value x, Location location = Location::current());

// Whether x is NaN.
// Shape: same. DType: bool.
Value Isnan(Value x, Location location = Location::current());

// Whether x is inf or -inf.
// Shape: same. DType: bool.
Value Isinf(Value x, Location location = Location::current());

// Whether x is neither inf nor NaN.
// Shape: same. DType: bool.
Value Isfinite(Value x, Location location = Location::current());

// 1 / (1 + exp(-x)).
// Shape: same. DType: promote_float.
Value Sigmoid(Value x, Location location = Location::current());

// log(sigmoid(x)).
// Shape: same. DType: promote_float.
Value Logsigmoid(Value x, Location location = Location::current());

// x * sigmoid(x) (Elfwing et al., 2017).
// Shape: same. DType: promote_float.
Value Silu(Value x, Location location = Location::current());

// x * sigmoid(1.702 x).
// Shape: same. DType: promote_float.
Value QuickGelu(Value x, Location location = Location::current());

struct GeluOptions {
  std::string approximate = "none";
};
// x times the normal distribution's cumulative function, by erf or, approximate = "tanh", by tanh
// (Hendrycks and Gimpel, 2016).
// Shape: same. DType: promote_float.
Value Gelu(Value x, const GeluOptions& options = {}, Location location = Location::current());

struct SoftplusOptions {
  double beta = 1.0;
  double threshold = 20.0;
};
// log(1 + exp(beta x)) / beta; x where beta x is above threshold.
// Shape: same. DType: promote_float.
Value Softplus(Value x, const SoftplusOptions& options = {},
               Location location = Location::current());

struct SquareplusOptions {
  double b = 4.0;
};
// (x + sqrt(x² + b)) / 2 (Barron, 2021).
// Shape: same. DType: promote_float.
Value Squareplus(Value x, const SquareplusOptions& options = {},
                 Location location = Location::current());

// x * tanh(softplus(x)) (Misra, 2019).
// Shape: same. DType: promote_float.
Value Mish(Value x, Location location = Location::current());

// x - tanh(x).
// Shape: same. DType: promote_float.
Value Tanhshrink(Value x, Location location = Location::current());

// x / (1 + |x|).
// Shape: same. DType: promote_float.
Value Softsign(Value x, Location location = Location::current());

struct EluOptions {
  double alpha = 1.0;
};
// x above 0, alpha (exp(x) - 1) elsewhere (Clevert et al., 2015).
// Shape: same. DType: promote_float.
Value Elu(Value x, const EluOptions& options = {}, Location location = Location::current());

struct CeluOptions {
  double alpha = 1.0;
};
// x above 0, alpha (exp(x / alpha) - 1) elsewhere (Barron, 2017).
// Shape: same. DType: promote_float.
Value Celu(Value x, const CeluOptions& options = {}, Location location = Location::current());

// elu with alpha 1.6733 times 1.0507 (Klambauer et al., 2017).
// Shape: same. DType: promote_float.
Value Selu(Value x, Location location = Location::current());

struct GluOptions {
  Dimension axis = -1;
};
// The first half of x along axis times the sigmoid of the second (Dauphin et al., 2017).
// Shape: half. DType: promote_float.
Value Glu(Value x, const GluOptions& options = {}, Location location = Location::current());

// max(x, 0); its gradient at 0 is 0.
// Shape: same. DType: same.
Value Relu(Value x, Location location = Location::current());

// min(max(x, 0), 6).
// Shape: same. DType: same.
Value Relu6(Value x, Location location = Location::current());

struct HardtanhOptions {
  double min = -1.0;
  double max = 1.0;
};
// x held between min and max; the gradient at both is 0.
// Shape: same. DType: same.
Value Hardtanh(Value x, const HardtanhOptions& options = {},
               Location location = Location::current());

struct LeakyReluOptions {
  double slope = 0.01;
};
// x above 0, slope * x elsewhere.
// Shape: same. DType: promote_float.
Value LeakyRelu(Value x, const LeakyReluOptions& options = {},
                Location location = Location::current());

// x above 0, weight * x elsewhere, with one weight or one for each channel, dimension 1 (He et al.,
// 2015).
// Shape: same. DType: promote_float.
Value Prelu(Value x, Value weight, Location location = Location::current());

// relu6(x + 3) / 6.
// Shape: same. DType: promote_float.
Value Hardsigmoid(Value x, Location location = Location::current());

// x * relu6(x + 3) / 6 (Howard et al., 2019).
// Shape: same. DType: promote_float.
Value Hardswish(Value x, Location location = Location::current());

struct SoftshrinkOptions {
  double lambd = 0.5;
};
// x, lambd nearer to 0; 0 where |x| <= lambd.
// Shape: same. DType: promote_float.
Value Softshrink(Value x, const SoftshrinkOptions& options = {},
                 Location location = Location::current());

struct HardshrinkOptions {
  double lambd = 0.5;
};
// x; 0 where |x| <= lambd.
// Shape: same. DType: promote_float.
Value Hardshrink(Value x, const HardshrinkOptions& options = {},
                 Location location = Location::current());

struct ThresholdOptions {
  double threshold = 0.0;
  double value = 0.0;
};
// x above threshold, value elsewhere.
// Shape: same. DType: same.
Value Threshold(Value x, const ThresholdOptions& options = {},
                Location location = Location::current());

struct MeanOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// The mean over axes.
// Shape: reduce. DType: promote_float.
Value Mean(Value x, const MeanOptions& options = {}, Location location = Location::current());

struct VarOptions {
  Dimensions axes = {};
  bool keepdims = false;
  double correction = 1.0;
};
// The variance: squared distances from the mean, summed and divided by their count less correction.
// Shape: reduce. DType: promote_float.
Value Var(Value x, const VarOptions& options = {}, Location location = Location::current());

struct StdOptions {
  Dimensions axes = {};
  bool keepdims = false;
  double correction = 1.0;
};
// The square root of var; its gradient is 0 where it is 0.
// Shape: reduce. DType: promote_float.
Value Std(Value x, const StdOptions& options = {}, Location location = Location::current());

struct VectorNormOptions {
  Dimensions axes = {};
  bool keepdims = false;
  double ord = 2.0;
};
// The norm of order ord over axes: sum(|x|^ord)^(1/ord); inf the largest |x|, -inf the smallest, 0
// how many are not 0. No power overflows or vanishes; the gradient of order 2 is 0 where all of x
// is.
// Shape: reduce. DType: promote_float.
Value VectorNorm(Value x, const VectorNormOptions& options = {},
                 Location location = Location::current());

struct MinOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// The smallest over axes; NaN if any is.
// Shape: reduce. DType: same.
Value Min(Value x, const MinOptions& options = {}, Location location = Location::current());

struct AnyOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// Whether any element is not 0.
// Shape: reduce. DType: bool.
Value Any(Value x, const AnyOptions& options = {}, Location location = Location::current());

struct AllOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// Whether no element is 0.
// Shape: reduce. DType: bool.
Value All(Value x, const AllOptions& options = {}, Location location = Location::current());

struct ArgmaxOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// The index of the first largest element along the one axis in axes; an empty list means the
// flattened tensor.
// Shape: reduce. DType: int64.
Value Argmax(Value x, const ArgmaxOptions& options = {}, Location location = Location::current());

struct ArgminOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// The index of the first smallest element, as argmax.
// Shape: reduce. DType: int64.
Value Argmin(Value x, const ArgminOptions& options = {}, Location location = Location::current());

struct CountNonzeroOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// How many elements over axes are not 0.
// Shape: reduce. DType: int64.
Value CountNonzero(Value x, const CountNonzeroOptions& options = {},
                   Location location = Location::current());

struct LogsumexpOptions {
  Dimensions axes = {};
  bool keepdims = false;
};
// log(sum(exp(x))) over axes.
// Shape: reduce. DType: promote_float.
Value Logsumexp(Value x, const LogsumexpOptions& options = {},
                Location location = Location::current());

struct SoftmaxOptions {
  Dimension axis = -1;
};
// exp(x) / sum(exp(x)) along axis.
// Shape: same. DType: promote_float.
Value Softmax(Value x, const SoftmaxOptions& options = {}, Location location = Location::current());

struct LogSoftmaxOptions {
  Dimension axis = -1;
};
// log(softmax(x)) along axis.
// Shape: same. DType: promote_float.
Value LogSoftmax(Value x, const LogSoftmaxOptions& options = {},
                 Location location = Location::current());

// The matrix product, as NumPy's matmul.
// Shape: matmul. DType: promote.
Value Matmul(Value a, Value b, Location location = Location::current());

struct LinearOptions {
  std::optional<Value> bias = std::nullopt;
};
// x (…, in) times weight (out, in) transposed, plus bias.
// Shape: linear. DType: promote.
Value Linear(Value x, Value weight, const LinearOptions& options = {},
             Location location = Location::current());

struct ScaledDotProductAttentionOptions {
  std::optional<Value> mask = std::nullopt;
  bool causal = false;
  double scale = 0.0;
  bool grouped = false;
};
// softmax(query key^T * scale + mask) value (Vaswani et al., 2017). Scale 0 stands for 1 / sqrt(E).
// A bool mask keeps keys where it is true, a float one is added; causal keeps those up to the
// query's place. Rows that keep none are 0. grouped: each head of key and value, the last leading
// dimension, serves several of query.
// Shape: attention. DType: promote_float.
Value ScaledDotProductAttention(Value query, Value key, Value value,
                                const ScaledDotProductAttentionOptions& options = {},
                                Location location = Location::current());

struct RotaryEmbeddingOptions {
  bool interleaved = false;
};
// Pairs of the first R features of x (…, L, E) turned by angles whose cos and sin are (…, L, R /
// 2): features i and i + R / 2, or interleaved 2 i and 2 i + 1 (Su et al., 2021).
// Shape: same. DType: same.
Value RotaryEmbedding(Value x, Value cos, Value sin, const RotaryEmbeddingOptions& options = {},
                      Location location = Location::current());

struct Conv1dOptions {
  std::optional<Value> bias = std::nullopt;
  Dimensions stride = {1};
  Dimensions padding = {0};
  Dimensions dilation = {1};
  Dimension groups = 1;
};
// Cross-correlation of x (N, C, L) with weight (O, C / groups, K), as PyTorch's.
// Shape: conv. DType: promote.
Value Conv1d(Value x, Value weight, const Conv1dOptions& options = {},
             Location location = Location::current());

struct Conv2dOptions {
  std::optional<Value> bias = std::nullopt;
  Dimensions stride = {1, 1};
  Dimensions padding = {0, 0};
  Dimensions dilation = {1, 1};
  Dimension groups = 1;
};
// Cross-correlation of x (N, C, H, W) with weight (O, C / groups, KH, KW), as PyTorch's.
// Shape: conv. DType: promote.
Value Conv2d(Value x, Value weight, const Conv2dOptions& options = {},
             Location location = Location::current());

struct Conv3dOptions {
  std::optional<Value> bias = std::nullopt;
  Dimensions stride = {1, 1, 1};
  Dimensions padding = {0, 0, 0};
  Dimensions dilation = {1, 1, 1};
  Dimension groups = 1;
};
// Cross-correlation of x (N, C, D, H, W) with weight (O, C / groups, KD, KH, KW), as PyTorch's.
// Shape: conv. DType: promote.
Value Conv3d(Value x, Value weight, const Conv3dOptions& options = {},
             Location location = Location::current());

struct ConvTranspose1dOptions {
  std::optional<Value> bias = std::nullopt;
  Dimensions stride = {1};
  Dimensions padding = {0};
  Dimensions dilation = {1};
  Dimension groups = 1;
  Dimensions output_padding = {0};
};
// The adjoint of conv1d in x: x (N, C, L), weight (C, O / groups, K).
// Shape: conv_transpose. DType: promote.
Value ConvTranspose1d(Value x, Value weight, const ConvTranspose1dOptions& options = {},
                      Location location = Location::current());

struct ConvTranspose2dOptions {
  std::optional<Value> bias = std::nullopt;
  Dimensions stride = {1, 1};
  Dimensions padding = {0, 0};
  Dimensions dilation = {1, 1};
  Dimension groups = 1;
  Dimensions output_padding = {0, 0};
};
// The adjoint of conv2d in x: x (N, C, H, W), weight (C, O / groups, KH, KW).
// Shape: conv_transpose. DType: promote.
Value ConvTranspose2d(Value x, Value weight, const ConvTranspose2dOptions& options = {},
                      Location location = Location::current());

struct ConvTranspose3dOptions {
  std::optional<Value> bias = std::nullopt;
  Dimensions stride = {1, 1, 1};
  Dimensions padding = {0, 0, 0};
  Dimensions dilation = {1, 1, 1};
  Dimension groups = 1;
  Dimensions output_padding = {0, 0, 0};
};
// The adjoint of conv3d in x: x (N, C, D, H, W), weight (C, O / groups, KD, KH, KW).
// Shape: conv_transpose. DType: promote.
Value ConvTranspose3d(Value x, Value weight, const ConvTranspose3dOptions& options = {},
                      Location location = Location::current());

struct MaxPool1dOptions {
  Dimensions stride = {};
  Dimensions padding = {0};
  bool ceil_mode = false;
  Dimensions dilation = {1};
};
// The largest of each window; padding never wins, of equal ones the first has the gradient.
// Shape: pool. DType: same.
Value MaxPool1d(Value x, const Dimensions& kernel, const MaxPool1dOptions& options = {},
                Location location = Location::current());

struct MaxPool2dOptions {
  Dimensions stride = {};
  Dimensions padding = {0, 0};
  bool ceil_mode = false;
  Dimensions dilation = {1, 1};
};
// The largest of each window; padding never wins, of equal ones the first has the gradient.
// Shape: pool. DType: same.
Value MaxPool2d(Value x, const Dimensions& kernel, const MaxPool2dOptions& options = {},
                Location location = Location::current());

struct MaxPool3dOptions {
  Dimensions stride = {};
  Dimensions padding = {0, 0, 0};
  bool ceil_mode = false;
  Dimensions dilation = {1, 1, 1};
};
// The largest of each window; padding never wins, of equal ones the first has the gradient.
// Shape: pool. DType: same.
Value MaxPool3d(Value x, const Dimensions& kernel, const MaxPool3dOptions& options = {},
                Location location = Location::current());

struct AvgPool1dOptions {
  Dimensions stride = {};
  Dimensions padding = {0};
  bool ceil_mode = false;
  bool count_include_pad = true;
  Dimension divisor_override = 0;
};
// The mean of each window; padding counts as zeros with count_include_pad, what ceil_mode adds
// never counts; a divisor_override above 0 replaces the count.
// Shape: pool. DType: promote_float.
Value AvgPool1d(Value x, const Dimensions& kernel, const AvgPool1dOptions& options = {},
                Location location = Location::current());

struct AvgPool2dOptions {
  Dimensions stride = {};
  Dimensions padding = {0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;
  Dimension divisor_override = 0;
};
// The mean of each window; padding counts as zeros with count_include_pad, what ceil_mode adds
// never counts; a divisor_override above 0 replaces the count.
// Shape: pool. DType: promote_float.
Value AvgPool2d(Value x, const Dimensions& kernel, const AvgPool2dOptions& options = {},
                Location location = Location::current());

struct AvgPool3dOptions {
  Dimensions stride = {};
  Dimensions padding = {0, 0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;
  Dimension divisor_override = 0;
};
// The mean of each window; padding counts as zeros with count_include_pad, what ceil_mode adds
// never counts; a divisor_override above 0 replaces the count.
// Shape: pool. DType: promote_float.
Value AvgPool3d(Value x, const Dimensions& kernel, const AvgPool3dOptions& options = {},
                Location location = Location::current());

struct LpPool1dOptions {
  Dimensions stride = {};
  Dimensions padding = {0};
  bool ceil_mode = false;
  double norm = 2.0;
};
// The norm-th root of the sum of each window's elements to the power norm; 0, with gradient 0,
// where the sum is not above 0.
// Shape: pool. DType: promote_float.
Value LpPool1d(Value x, const Dimensions& kernel, const LpPool1dOptions& options = {},
               Location location = Location::current());

struct LpPool2dOptions {
  Dimensions stride = {};
  Dimensions padding = {0, 0};
  bool ceil_mode = false;
  double norm = 2.0;
};
// The norm-th root of the sum of each window's elements to the power norm; 0, with gradient 0,
// where the sum is not above 0.
// Shape: pool. DType: promote_float.
Value LpPool2d(Value x, const Dimensions& kernel, const LpPool2dOptions& options = {},
               Location location = Location::current());

struct LpPool3dOptions {
  Dimensions stride = {};
  Dimensions padding = {0, 0, 0};
  bool ceil_mode = false;
  double norm = 2.0;
};
// The norm-th root of the sum of each window's elements to the power norm; 0, with gradient 0,
// where the sum is not above 0.
// Shape: pool. DType: promote_float.
Value LpPool3d(Value x, const Dimensions& kernel, const LpPool3dOptions& options = {},
               Location location = Location::current());

struct InterpolateOptions {
  std::string mode = "nearest";
  bool align_corners = false;
  double scale = 0.0;
};
// The last dimensions resampled to size, as PyTorch's: mode nearest, nearest-exact, linear or cubic
// (Keys, 1981). A scale above 0 places samples 1 / scale apart, else x's size over the result's.
// Integers stay integers: rounded to the nearest, the ends of their range where a cubic goes
// beyond.
// Shape: resize. DType: same.
Value Interpolate(Value x, const Dimensions& size, const InterpolateOptions& options = {},
                  Location location = Location::current());

// The mean of x's elements from floor(i * length / size) to ceil((i + 1) * length / size), over the
// last dimensions.
// Shape: resize. DType: promote_float.
Value AdaptiveAvgPool(Value x, const Dimensions& size, Location location = Location::current());

// The largest of the elements that adaptive_avg_pool takes the mean of; of equal ones the first has
// the gradient.
// Shape: resize. DType: same.
Value AdaptiveMaxPool(Value x, const Dimensions& size, Location location = Location::current());

struct PadConstantOptions {
  Number value = 0.0;
};
// A value around x: padding is before and after for each dimension.
// Shape: pad. DType: same.
Value PadConstant(Value x, const Dimensions& padding, const PadConstantOptions& options = {},
                  Location location = Location::current());

// x mirrored at its first and last elements, which are not repeated.
// Shape: pad. DType: same.
Value PadReflect(Value x, const Dimensions& padding, Location location = Location::current());

// x's first and last elements repeated.
// Shape: pad. DType: same.
Value PadReplicate(Value x, const Dimensions& padding, Location location = Location::current());

// x's other end before and after it.
// Shape: pad. DType: same.
Value PadCircular(Value x, const Dimensions& padding, Location location = Location::current());

struct UnfoldOptions {
  Dimensions stride = {1, 1};
  Dimensions padding = {0, 0};
  Dimensions dilation = {1, 1};
};
// Every window of x (N, C, spatial) as a column: (N, C * taps, windows).
// Shape: unfold. DType: same.
Value Unfold(Value x, const Dimensions& kernel, const UnfoldOptions& options = {},
             Location location = Location::current());

struct FoldOptions {
  Dimensions stride = {1, 1};
  Dimensions padding = {0, 0};
  Dimensions dilation = {1, 1};
};
// The adjoint of unfold: columns added up where they came from.
// Shape: fold. DType: same.
Value Fold(Value x, const Dimensions& size, const Dimensions& kernel,
           const FoldOptions& options = {}, Location location = Location::current());

// (…, C f², H, W) to (…, C, H f, W f) (Shi et al., 2016).
// Shape: pixel_shuffle. DType: same.
Value PixelShuffle(Value x, const Dimension& factor, Location location = Location::current());

// The inverse of pixel_shuffle.
// Shape: pixel_unshuffle. DType: same.
Value PixelUnshuffle(Value x, const Dimension& factor, Location location = Location::current());

struct LayerNormOptions {
  std::optional<Value> weight = std::nullopt;
  std::optional<Value> bias = std::nullopt;
  Dimension axes = 1;
  double epsilon = 1e-05;
};
// x less its mean over its root of variance plus epsilon, over the last axes, times weight plus
// bias (Ba et al., 2016).
// Shape: same. DType: promote_float.
Value LayerNorm(Value x, const LayerNormOptions& options = {},
                Location location = Location::current());

struct RmsNormOptions {
  std::optional<Value> weight = std::nullopt;
  Dimension axes = 1;
  double epsilon = 1e-06;
};
// x over the root of its mean square plus epsilon, over the last axes, times weight (Zhang and
// Sennrich, 2019).
// Shape: same. DType: promote_float.
Value RmsNorm(Value x, const RmsNormOptions& options = {}, Location location = Location::current());

struct BatchNormOptions {
  std::optional<Value> weight = std::nullopt;
  std::optional<Value> bias = std::nullopt;
  double epsilon = 1e-05;
};
// (x - mean) / sqrt(var + epsilon) * weight + bias for each channel, dimension 1; in training mean
// and var (correction 0) are the batch's own (Ioffe and Szegedy, 2015).
// Shape: same. DType: promote_float.
Value BatchNorm(Value x, Value mean, Value var, const BatchNormOptions& options = {},
                Location location = Location::current());

struct GroupNormOptions {
  std::optional<Value> weight = std::nullopt;
  std::optional<Value> bias = std::nullopt;
  double epsilon = 1e-05;
};
// x (N, C, …) less its mean over its root of variance plus epsilon, over each group of channels,
// times each channel's weight plus bias (Wu and He, 2018).
// Shape: same. DType: promote_float.
Value GroupNorm(Value x, const Dimension& groups, const GroupNormOptions& options = {},
                Location location = Location::current());

struct InstanceNormOptions {
  std::optional<Value> weight = std::nullopt;
  std::optional<Value> bias = std::nullopt;
  double epsilon = 1e-05;
};
// group_norm with a group for each channel (Ulyanov et al., 2016).
// Shape: same. DType: promote_float.
Value InstanceNorm(Value x, const InstanceNormOptions& options = {},
                   Location location = Location::current());

struct LocalResponseNormOptions {
  double alpha = 0.0001;
  double beta = 0.75;
  double k = 1.0;
};
// x over (k + alpha * the mean of x² over size neighbouring channels)^beta (Krizhevsky et al.,
// 2012), as PyTorch's.
// Shape: same. DType: promote_float.
Value LocalResponseNorm(Value x, const Dimension& size,
                        const LocalResponseNormOptions& options = {},
                        Location location = Location::current());

struct NormalizeOptions {
  double p = 2.0;
  Dimension axis = 1;
  double epsilon = 1e-12;
};
// x over its p-norm along axis, at least epsilon.
// Shape: same. DType: promote_float.
Value Normalize(Value x, const NormalizeOptions& options = {},
                Location location = Location::current());

struct CosineSimilarityOptions {
  Dimension axis = 1;
  double epsilon = 1e-08;
  bool keepdims = false;
};
// The sum along axis of a and b, each over its 2-norm, at least epsilon.
// Shape: pairwise. DType: promote_float.
Value CosineSimilarity(Value a, Value b, const CosineSimilarityOptions& options = {},
                       Location location = Location::current());

struct PairwiseDistanceOptions {
  double p = 2.0;
  double epsilon = 1e-06;
  Dimension axis = -1;
  bool keepdims = false;
};
// The p-norm of a - b + epsilon along axis.
// Shape: pairwise. DType: promote_float.
Value PairwiseDistance(Value a, Value b, const PairwiseDistanceOptions& options = {},
                       Location location = Location::current());

struct MseLossOptions {
  std::string reduction = "mean";
};
// (x - target) squared.
// Shape: loss. DType: promote_float.
Value MseLoss(Value x, Value target, const MseLossOptions& options = {},
              Location location = Location::current());

struct L1LossOptions {
  std::string reduction = "mean";
};
// |x - target|.
// Shape: loss. DType: promote_float.
Value L1Loss(Value x, Value target, const L1LossOptions& options = {},
             Location location = Location::current());

struct SmoothL1LossOptions {
  double beta = 1.0;
  std::string reduction = "mean";
};
// (x - target)² / (2 beta) where |x - target| < beta, |x - target| - beta / 2 elsewhere (Girshick,
// 2015).
// Shape: loss. DType: promote_float.
Value SmoothL1Loss(Value x, Value target, const SmoothL1LossOptions& options = {},
                   Location location = Location::current());

struct HuberLossOptions {
  double delta = 1.0;
  std::string reduction = "mean";
};
// (x - target)² / 2 where |x - target| <= delta, delta (|x - target| - delta / 2) elsewhere (Huber,
// 1964).
// Shape: loss. DType: promote_float.
Value HuberLoss(Value x, Value target, const HuberLossOptions& options = {},
                Location location = Location::current());

struct BinaryCrossEntropyOptions {
  std::optional<Value> weight = std::nullopt;
  std::string reduction = "mean";
};
// -log of x's probability of target; logarithms are held above -100.
// Shape: loss. DType: promote_float.
Value BinaryCrossEntropy(Value x, Value target, const BinaryCrossEntropyOptions& options = {},
                         Location location = Location::current());

struct BinaryCrossEntropyWithLogitsOptions {
  std::optional<Value> weight = std::nullopt;
  std::optional<Value> pos_weight = std::nullopt;
  std::string reduction = "mean";
};
// -log of sigmoid(logits)'s probability of target, times weight; pos_weight multiplies the part of
// target 1.
// Shape: loss. DType: promote_float.
Value BinaryCrossEntropyWithLogits(Value logits, Value target,
                                   const BinaryCrossEntropyWithLogitsOptions& options = {},
                                   Location location = Location::current());

struct KlDivOptions {
  bool log_target = false;
  std::string reduction = "mean";
};
// target (log target - x), where x are log probabilities, and the target too with log_target.
// Shape: loss. DType: promote_float.
Value KlDiv(Value x, Value target, const KlDivOptions& options = {},
            Location location = Location::current());

struct HingeEmbeddingLossOptions {
  double margin = 1.0;
  std::string reduction = "mean";
};
// x where target is 1, max(0, margin - x) where it is -1.
// Shape: loss. DType: promote_float.
Value HingeEmbeddingLoss(Value x, Value target, const HingeEmbeddingLossOptions& options = {},
                         Location location = Location::current());

struct MarginRankingLossOptions {
  double margin = 0.0;
  std::string reduction = "mean";
};
// max(0, -target (a - b) + margin).
// Shape: loss. DType: promote_float.
Value MarginRankingLoss(Value a, Value b, Value target,
                        const MarginRankingLossOptions& options = {},
                        Location location = Location::current());

struct SoftMarginLossOptions {
  std::string reduction = "mean";
};
// log(1 + exp(-target x)).
// Shape: loss. DType: promote_float.
Value SoftMarginLoss(Value x, Value target, const SoftMarginLossOptions& options = {},
                     Location location = Location::current());

struct GaussianNllLossOptions {
  bool full = false;
  double epsilon = 1e-06;
  std::string reduction = "mean";
};
// -log of target's density under a normal distribution; the constant only with full.
// Shape: loss. DType: promote_float.
Value GaussianNllLoss(Value x, Value target, Value var, const GaussianNllLossOptions& options = {},
                      Location location = Location::current());

struct PoissonNllLossOptions {
  bool log_input = true;
  bool full = false;
  double epsilon = 1e-08;
  std::string reduction = "mean";
};
// -log of target's probability under a Poisson distribution of mean exp(x), or x without log_input;
// Stirling's approximation of log target! only with full.
// Shape: loss. DType: promote_float.
Value PoissonNllLoss(Value x, Value target, const PoissonNllLossOptions& options = {},
                     Location location = Location::current());

struct CrossEntropyOptions {
  std::optional<Value> weight = std::nullopt;
  double label_smoothing = 0.0;
  Dimension ignore_index = -100;
  std::string reduction = "mean";
};
// -log(softmax(logits))[label], times the class's weight; classes are dimension 1. Labels may be
// probabilities of the logits' shape. The mean is over the weights of labels that are not
// ignore_index; a label out of range adds 0.
// Shape: label_loss. DType: same.
Value CrossEntropy(Value logits, Value labels, const CrossEntropyOptions& options = {},
                   Location location = Location::current());

struct NllLossOptions {
  std::optional<Value> weight = std::nullopt;
  Dimension ignore_index = -100;
  std::string reduction = "mean";
};
// -log_probabilities[label], times the class's weight; otherwise as cross_entropy.
// Shape: label_loss. DType: same.
Value NllLoss(Value log_probabilities, Value labels, const NllLossOptions& options = {},
              Location location = Location::current());

struct CosineEmbeddingLossOptions {
  double margin = 0.0;
  std::string reduction = "mean";
};
// 1 - cos(a, b) of the last dimension where target is 1, max(0, cos - margin) where it is -1.
// Shape: row_loss. DType: promote_float.
Value CosineEmbeddingLoss(Value a, Value b, Value target,
                          const CosineEmbeddingLossOptions& options = {},
                          Location location = Location::current());

struct TripletMarginLossOptions {
  double margin = 1.0;
  double p = 2.0;
  double epsilon = 1e-06;
  bool swap = false;
  std::string reduction = "mean";
};
// max(0, |anchor - positive| - |anchor - negative| + margin) of the last dimension; with swap, the
// negative's distance to the positive counts if it is less.
// Shape: row_loss. DType: promote_float.
Value TripletMarginLoss(Value anchor, Value positive, Value negative,
                        const TripletMarginLossOptions& options = {},
                        Location location = Location::current());

struct ConcatOptions {
  Dimension axis = 0;
};
// The tensors one after another along axis.
// Shape: concat. DType: promote.
Value Concat(absl::Span<const Value> tensors, const ConcatOptions& options = {},
             Location location = Location::current());

// 1 at each x along a new last dimension of classes, 0 elsewhere.
// Shape: one_hot. DType: int64.
Value OneHot(Value x, const Dimension& classes, Location location = Location::current());

struct TrilOptions {
  Dimension diagonal = 0;
};
// x on and below a diagonal of the last two dimensions, zero above it.
// Shape: same. DType: same.
Value Tril(Value x, const TrilOptions& options = {}, Location location = Location::current());

struct TriuOptions {
  Dimension diagonal = 0;
};
// x on and above a diagonal of the last two dimensions, zero below it.
// Shape: same. DType: same.
Value Triu(Value x, const TriuOptions& options = {}, Location location = Location::current());

// Threefry-2x32 with 20 rounds (Salmon et al., 2011) under a key of uint32[2]: element i is x0 xor
// x1 of the block with counter (i >> 32, i & 0xFFFFFFFF).
// Shape: attribute. DType: uint32.
Value RandomBits(Value key, const Dimensions& shape, Location location = Location::current());

// Uniform in [0, 1): the upper 24 bits of random_bits, times 2^-24.
// Shape: attribute. DType: float32.
Value RandomUniform(Value key, const Dimensions& shape, Location location = Location::current());

// Standard normal, by Box and Muller (1958) from the block's two words.
// Shape: attribute. DType: float32.
Value RandomNormal(Value key, const Dimensions& shape, Location location = Location::current());

struct DropoutOptions {
  double p = 0.5;
  Dimensions shared_axes = {};
};
// x over 1 - p, and 0 with probability p, by random_bits of the key; all elements along shared_axes
// go together (Srivastava et al., 2014).
// Shape: same. DType: same.
Value Dropout(Value x, Value key, const DropoutOptions& options = {},
              Location location = Location::current());

struct GatherOptions {
  Dimension axis = 0;
};
// x's entries at index along axis; an index out of range (a negative one too) reads zero. With axis
// 0 it is an embedding.
// Shape: gather. DType: same.
Value Gather(Value x, Value index, const GatherOptions& options = {},
             Location location = Location::current());

struct ScatterOptions {
  Dimension axis = 0;
  std::string mode = "set";
};
// x with values, of the shape gather gives, combined into the entries at index along axis; mode is
// set (the last one wins), add, mul, max or min. An index out of range changes nothing.
// Shape: scatter. DType: same.
Value Scatter(Value x, Value index, Value values, const ScatterOptions& options = {},
              Location location = Location::current());

struct ScatterAddOptions {
  Dimension axis = 0;
};
// x plus values added at index along axis; values have the shape gather gives; an index out of
// range adds nothing.
// Shape: scatter. DType: same.
Value ScatterAdd(Value x, Value index, Value values, const ScatterAddOptions& options = {},
                 Location location = Location::current());

struct TakeOptions {
  Dimension axis = 0;
};
// x's entries at index along axis, as NumPy's take: negative ones count from the end. An index out
// of range reads zero.
// Shape: gather. DType: same.
Value Take(Value x, Value index, const TakeOptions& options = {},
           Location location = Location::current());

struct TakeAlongAxisOptions {
  Dimension axis = 0;
};
// x[…, index[…, i, …], …], as NumPy's: negative indices count from the end, dimensions other than
// the axis broadcast. An index out of range reads zero.
// Shape: take_along_axis. DType: same.
Value TakeAlongAxis(Value x, Value index, const TakeAlongAxisOptions& options = {},
                    Location location = Location::current());

struct PutAlongAxisOptions {
  Dimension axis = 0;
  std::string mode = "set";
};
// x with values, cast and broadcast, combined into the elements that take_along_axis reads; mode is
// set (the last one wins), add, mul, max or min. An index out of range changes nothing.
// Shape: put_along_axis. DType: same.
Value PutAlongAxis(Value x, Value index, Value values, const PutAlongAxisOptions& options = {},
                   Location location = Location::current());

struct IndexOptions {
  Dimension axis = 0;
};
// x[…, i, j, …]: integer indices of as many dimensions from axis on, broadcast together; negative
// ones count from the end. An index out of range reads zero.
// Shape: index. DType: same.
Value Index(Value x, absl::Span<const Value> index, const IndexOptions& options = {},
            Location location = Location::current());

struct IndexPutOptions {
  Dimension axis = 0;
  std::string mode = "set";
};
// x with values, cast and broadcast, combined into the elements that index reads; mode is set (the
// last one wins), add, mul, max or min. An index out of range changes nothing.
// Shape: index_put. DType: same.
Value IndexPut(Value x, Value values, absl::Span<const Value> index,
               const IndexPutOptions& options = {}, Location location = Location::current());

// The sum of all elements up to each along axis, in x's dtype.
// Shape: same. DType: same.
Value CumulativeSum(Value x, const Dimension& axis, Location location = Location::current());

// The product of all elements up to each along axis, in x's dtype.
// Shape: same. DType: same.
Value CumulativeProd(Value x, const Dimension& axis, Location location = Location::current());

// The largest of all elements up to each along axis; NaN from the first one on.
// Shape: same. DType: same.
Value CumulativeMax(Value x, const Dimension& axis, Location location = Location::current());

// The smallest of all elements up to each along axis; NaN from the first one on.
// Shape: same. DType: same.
Value CumulativeMin(Value x, const Dimension& axis, Location location = Location::current());

// log(sum(exp(x))) of all elements up to each along axis.
// Shape: same. DType: promote_float.
Value CumulativeLogsumexp(Value x, const Dimension& axis, Location location = Location::current());

struct SortOptions {
  Dimension axis = -1;
  bool descending = false;
};
// x sorted along axis; NaN comes last, or with descending first.
// Shape: same. DType: same.
Value Sort(Value x, const SortOptions& options = {}, Location location = Location::current());

struct ArgsortOptions {
  Dimension axis = -1;
  bool descending = false;
};
// The positions of sort's elements; equal ones keep their order.
// Shape: same. DType: int64.
Value Argsort(Value x, const ArgsortOptions& options = {}, Location location = Location::current());

struct TopkOptions {
  Dimension axis = -1;
  bool largest = true;
};
// The k largest (or smallest) elements along axis, in order; NaN is larger than all.
// Shape: topk. DType: same.
Value Topk(Value x, const Dimension& k, const TopkOptions& options = {},
           Location location = Location::current());

struct TopkIndicesOptions {
  Dimension axis = -1;
  bool largest = true;
};
// The positions of topk's elements; of equal ones the first come first.
// Shape: topk. DType: int64.
Value TopkIndices(Value x, const Dimension& k, const TopkIndicesOptions& options = {},
                  Location location = Location::current());

struct SearchsortedOptions {
  bool right = false;
};
// How many elements of a sorted sequence come before each value; with right, those equal to it are
// counted too.
// Shape: same. DType: int64.
Value Searchsorted(Value values, Value sorted, const SearchsortedOptions& options = {},
                   Location location = Location::current());

struct DiagonalOptions {
  Dimension offset = 0;
  Dimension axis1 = 0;
  Dimension axis2 = 1;
};
// The diagonal of axis1 and axis2 as a last dimension, offset columns to the right of the main one.
// Shape: diagonal. DType: same.
Value Diagonal(Value x, const DiagonalOptions& options = {},
               Location location = Location::current());

struct DiagEmbedOptions {
  Dimension offset = 0;
};
// Matrices with x's last dimension as their diagonal, offset columns to the right of the main one,
// zero elsewhere.
// Shape: diag_embed. DType: same.
Value DiagEmbed(Value x, const DiagEmbedOptions& options = {},
                Location location = Location::current());

struct CrossOptions {
  Dimension axis = -1;
};
// The cross product of vectors of 3 along axis.
// Shape: broadcast. DType: promote.
Value Cross(const Operand& a, const Operand& b, const CrossOptions& options = {},
            Location location = Location::current());

// x moved by shifts along axes; what leaves at one end comes in at the other.
// Shape: same. DType: same.
Value Roll(Value x, const Dimensions& shifts, const Dimensions& axes,
           Location location = Location::current());

// The sum of products that an equation such as "bij,bjk->bik" names, as NumPy's einsum: letters
// repeated, left out and "..." included. Contracted in the cheapest order.
// Shape: einsum. DType: promote.
Value Einsum(absl::Span<const Value> tensors, const std::string& equation,
             Location location = Location::current());

struct CholeskyOptions {
  bool upper = false;
};
// The lower (or upper) triangular factor L of symmetric positive definite matrices L L^T, of which
// only that half is read; else NaN. The gradient is symmetric.
// Shape: same. DType: promote_float.
Value Cholesky(Value x, const CholeskyOptions& options = {},
               Location location = Location::current());

struct TriangularSolveOptions {
  bool upper = false;
  bool unit_diagonal = false;
};
// X of A X = B for lower (or upper) triangular A, of which only that half is read.
// Shape: solve. DType: promote_float.
Value TriangularSolve(Value a, Value b, const TriangularSolveOptions& options = {},
                      Location location = Location::current());

// X of A X = B, by elimination with partial pivoting; infinities or NaN where A is singular.
// Shape: solve. DType: promote_float.
Value Solve(Value a, Value b, Location location = Location::current());

// The inverse of square matrices; infinities or NaN where one is singular.
// Shape: same. DType: promote_float.
Value Inv(Value x, Location location = Location::current());

// The determinant.
// Shape: determinant. DType: promote_float.
Value Det(Value x, Location location = Location::current());

// The determinant's sign.
// Shape: determinant. DType: promote_float.
Value SlogdetSign(Value x, Location location = Location::current());

// The logarithm of the determinant's magnitude.
// Shape: determinant. DType: promote_float.
Value SlogdetLogabs(Value x, Location location = Location::current());

struct QrOptions {
  bool complete = false;
};
// The part "q" or "r" of A = Q R: Q has orthonormal columns, R is upper triangular; Householder's
// reflections with LAPACK's signs.
// Shape: qr. DType: promote_float.
Value Qr(Value x, const std::string& part, const QrOptions& options = {},
         Location location = Location::current());

}  // namespace kiln::ops
// clang-format on

#endif  // KILN_CLIENTS_CPP_KILN_OPS_H_
