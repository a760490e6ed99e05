// The nodes that the functions of kiln/ops.h send, and the table's rules of dtypes.
// Generated from compiler/ops by `opgen cpp_source`; do not edit.
// clang-format off
#include "kiln/ops.h"
#include "clients/cpp/call.h"
#include "clients/cpp/op_row.h"

namespace kiln {
namespace internal {
namespace {

constexpr OpRow kRows[] = {
    {"neg", "x", DTypeRule::kSame, -1},
    {"reciprocal", "x", DTypeRule::kPromoteFloat, -1},
    {"sqrt", "x", DTypeRule::kPromoteFloat, -1},
    {"exp2", "x", DTypeRule::kPromoteFloat, -1},
    {"log2", "x", DTypeRule::kPromoteFloat, -1},
    {"sin", "x", DTypeRule::kPromoteFloat, -1},
    {"trunc", "x", DTypeRule::kSame, -1},
    {"not", "x", DTypeRule::kSame, -1},
    {"cast", "x", DTypeRule::kAttribute, -1},
    {"bitcast", "x", DTypeRule::kAttribute, -1},
    {"add", "a, b", DTypeRule::kPromote, -1},
    {"sub", "a, b", DTypeRule::kPromote, -1},
    {"mul", "a, b", DTypeRule::kPromote, -1},
    {"div", "a, b", DTypeRule::kPromoteFloat, -1},
    {"idiv", "a, b", DTypeRule::kPromote, -1},
    {"mod", "a, b", DTypeRule::kPromote, -1},
    {"maximum", "a, b", DTypeRule::kPromote, -1},
    {"minimum", "a, b", DTypeRule::kPromote, -1},
    {"pow", "a, b", DTypeRule::kPromote, -1},
    {"cmplt", "a, b", DTypeRule::kBool, -1},
    {"cmpeq", "a, b", DTypeRule::kBool, -1},
    {"cmpne", "a, b", DTypeRule::kBool, -1},
    {"and", "a, b", DTypeRule::kPromote, -1},
    {"or", "a, b", DTypeRule::kPromote, -1},
    {"xor", "a, b", DTypeRule::kPromote, -1},
    {"shl", "a, b", DTypeRule::kPromote, -1},
    {"shr", "a, b", DTypeRule::kPromote, -1},
    {"where", "condition, a, b", DTypeRule::kPromote, 0},
    {"sum", "x", DTypeRule::kSame, -1},
    {"prod", "x", DTypeRule::kSame, -1},
    {"max", "x", DTypeRule::kSame, -1},
    {"reshape", "x", DTypeRule::kSame, -1},
    {"permute", "x", DTypeRule::kSame, -1},
    {"expand", "x", DTypeRule::kSame, -1},
    {"pad", "x", DTypeRule::kSame, -1},
    {"shrink", "x", DTypeRule::kSame, -1},
    {"flip", "x", DTypeRule::kSame, -1},
    {"window", "x", DTypeRule::kSame, -1},
    {"unwindow", "x", DTypeRule::kSame, -1},
    {"gather_elements", "x, index", DTypeRule::kSame, 1},
    {"scatter_elements", "x, index, values", DTypeRule::kSame, 1},
    {"const", "", DTypeRule::kAttribute, -1},
    {"input", "", DTypeRule::kAttribute, -1},
    {"iota", "", DTypeRule::kAttribute, -1},
    {"contiguous", "x", DTypeRule::kSame, -1},
    {"detach", "x", DTypeRule::kSame, -1},
    {"shard", "x", DTypeRule::kSame, -1},
    {"send", "x", DTypeRule::kSame, -1},
    {"with_derivative", "y, x, derivative", DTypeRule::kPromote, -1},
    {"gradient", "y, x, upstream?", DTypeRule::kSecond, -1},
    {"exp", "x", DTypeRule::kPromoteFloat, -1},
    {"log", "x", DTypeRule::kPromoteFloat, -1},
    {"cos", "x", DTypeRule::kPromoteFloat, -1},
    {"tan", "x", DTypeRule::kPromoteFloat, -1},
    {"tanh", "x", DTypeRule::kPromoteFloat, -1},
    {"erf", "x", DTypeRule::kPromoteFloat, -1},
    {"abs", "x", DTypeRule::kSame, -1},
    {"sign", "x", DTypeRule::kSame, -1},
    {"square", "x", DTypeRule::kSame, -1},
    {"rsqrt", "x", DTypeRule::kPromoteFloat, -1},
    {"floor", "x", DTypeRule::kSame, -1},
    {"ceil", "x", DTypeRule::kSame, -1},
    {"round", "x", DTypeRule::kSame, -1},
    {"clip", "x", DTypeRule::kSame, -1},
    {"clamp_min", "a, b", DTypeRule::kPromote, -1},
    {"clamp_max", "a, b", DTypeRule::kPromote, -1},
    {"floor_divide", "a, b", DTypeRule::kPromote, -1},
    {"remainder", "a, b", DTypeRule::kPromote, -1},
    {"expm1", "x", DTypeRule::kPromoteFloat, -1},
    {"log1p", "x", DTypeRule::kPromoteFloat, -1},
    {"log10", "x", DTypeRule::kPromoteFloat, -1},
    {"sinh", "x", DTypeRule::kPromoteFloat, -1},
    {"cosh", "x", DTypeRule::kPromoteFloat, -1},
    {"asinh", "x", DTypeRule::kPromoteFloat, -1},
    {"acosh", "x", DTypeRule::kPromoteFloat, -1},
    {"atanh", "x", DTypeRule::kPromoteFloat, -1},
    {"logaddexp", "a, b", DTypeRule::kPromoteFloat, -1},
    {"logaddexp2", "a, b", DTypeRule::kPromoteFloat, -1},
    {"asin", "x", DTypeRule::kPromoteFloat, -1},
    {"acos", "x", DTypeRule::kPromoteFloat, -1},
    {"atan", "x", DTypeRule::kPromoteFloat, -1},
    {"atan2", "y, x", DTypeRule::kPromoteFloat, -1},
    {"hypot", "a, b", DTypeRule::kPromoteFloat, -1},
    {"erfc", "x", DTypeRule::kPromoteFloat, -1},
    {"erfinv", "x", DTypeRule::kPromoteFloat, -1},
    {"lgamma", "x", DTypeRule::kPromoteFloat, -1},
    {"digamma", "x", DTypeRule::kPromoteFloat, -1},
    {"cbrt", "x", DTypeRule::kPromoteFloat, -1},
    {"signbit", "x", DTypeRule::kBool, -1},
    {"copysign", "a, b", DTypeRule::kPromoteFloat, -1},
    {"nextafter", "a, b", DTypeRule::kPromote, -1},
    {"fmod", "a, b", DTypeRule::kPromote, -1},
    {"isclose", "a, b", DTypeRule::kBool, -1},
    {"nan_to_num", "x", DTypeRule::kSame, -1},
    {"greater", "a, b", DTypeRule::kBool, -1},
    {"greater_equal", "a, b", DTypeRule::kBool, -1},
    {"less_equal", "a, b", DTypeRule::kBool, -1},
    {"logical_and", "a, b", DTypeRule::kBool, -1},
    {"logical_or", "a, b", DTypeRule::kBool, -1},
    {"logical_xor", "a, b", DTypeRule::kBool, -1},
    {"logical_not", "x", DTypeRule::kBool, -1},
    {"isnan", "x", DTypeRule::kBool, -1},
    {"isinf", "x", DTypeRule::kBool, -1},
    {"isfinite", "x", DTypeRule::kBool, -1},
    {"sigmoid", "x", DTypeRule::kPromoteFloat, -1},
    {"logsigmoid", "x", DTypeRule::kPromoteFloat, -1},
    {"silu", "x", DTypeRule::kPromoteFloat, -1},
    {"quick_gelu", "x", DTypeRule::kPromoteFloat, -1},
    {"gelu", "x", DTypeRule::kPromoteFloat, -1},
    {"softplus", "x", DTypeRule::kPromoteFloat, -1},
    {"squareplus", "x", DTypeRule::kPromoteFloat, -1},
    {"mish", "x", DTypeRule::kPromoteFloat, -1},
    {"tanhshrink", "x", DTypeRule::kPromoteFloat, -1},
    {"softsign", "x", DTypeRule::kPromoteFloat, -1},
    {"elu", "x", DTypeRule::kPromoteFloat, -1},
    {"celu", "x", DTypeRule::kPromoteFloat, -1},
    {"selu", "x", DTypeRule::kPromoteFloat, -1},
    {"glu", "x", DTypeRule::kPromoteFloat, -1},
    {"relu", "x", DTypeRule::kSame, -1},
    {"relu6", "x", DTypeRule::kSame, -1},
    {"hardtanh", "x", DTypeRule::kSame, -1},
    {"leaky_relu", "x", DTypeRule::kPromoteFloat, -1},
    {"prelu", "x, weight", DTypeRule::kPromoteFloat, -1},
    {"hardsigmoid", "x", DTypeRule::kPromoteFloat, -1},
    {"hardswish", "x", DTypeRule::kPromoteFloat, -1},
    {"softshrink", "x", DTypeRule::kPromoteFloat, -1},
    {"hardshrink", "x", DTypeRule::kPromoteFloat, -1},
    {"threshold", "x", DTypeRule::kSame, -1},
    {"mean", "x", DTypeRule::kPromoteFloat, -1},
    {"var", "x", DTypeRule::kPromoteFloat, -1},
    {"std", "x", DTypeRule::kPromoteFloat, -1},
    {"vector_norm", "x", DTypeRule::kPromoteFloat, -1},
    {"min", "x", DTypeRule::kSame, -1},
    {"any", "x", DTypeRule::kBool, -1},
    {"all", "x", DTypeRule::kBool, -1},
    {"argmax", "x", DTypeRule::kInt64, -1},
    {"argmin", "x", DTypeRule::kInt64, -1},
    {"count_nonzero", "x", DTypeRule::kInt64, -1},
    {"logsumexp", "x", DTypeRule::kPromoteFloat, -1},
    {"softmax", "x", DTypeRule::kPromoteFloat, -1},
    {"log_softmax", "x", DTypeRule::kPromoteFloat, -1},
    {"matmul", "a, b", DTypeRule::kPromote, -1},
    {"linear", "x, weight, bias?", DTypeRule::kPromote, -1},
    {"scaled_dot_product_attention", "query, key, value, mask?", DTypeRule::kPromoteFloat, 3},
    {"rotary_embedding", "x, cos, sin", DTypeRule::kSame, -1},
    {"conv1d", "x, weight, bias?", DTypeRule::kPromote, -1},
    {"conv2d", "x, weight, bias?", DTypeRule::kPromote, -1},
    {"conv3d", "x, weight, bias?", DTypeRule::kPromote, -1},
    {"conv_transpose1d", "x, weight, bias?", DTypeRule::kPromote, -1},
    {"conv_transpose2d", "x, weight, bias?", DTypeRule::kPromote, -1},
    {"conv_transpose3d", "x, weight, bias?", DTypeRule::kPromote, -1},
    {"max_pool1d", "x", DTypeRule::kSame, -1},
    {"max_pool2d", "x", DTypeRule::kSame, -1},
    {"max_pool3d", "x", DTypeRule::kSame, -1},
    {"avg_pool1d", "x", DTypeRule::kPromoteFloat, -1},
    {"avg_pool2d", "x", DTypeRule::kPromoteFloat, -1},
    {"avg_pool3d", "x", DTypeRule::kPromoteFloat, -1},
    {"lp_pool1d", "x", DTypeRule::kPromoteFloat, -1},
    {"lp_pool2d", "x", DTypeRule::kPromoteFloat, -1},
    {"lp_pool3d", "x", DTypeRule::kPromoteFloat, -1},
    {"interpolate", "x", DTypeRule::kSame, -1},
    {"adaptive_avg_pool", "x", DTypeRule::kPromoteFloat, -1},
    {"adaptive_max_pool", "x", DTypeRule::kSame, -1},
    {"pad_constant", "x", DTypeRule::kSame, -1},
    {"pad_reflect", "x", DTypeRule::kSame, -1},
    {"pad_replicate", "x", DTypeRule::kSame, -1},
    {"pad_circular", "x", DTypeRule::kSame, -1},
    {"unfold", "x", DTypeRule::kSame, -1},
    {"fold", "x", DTypeRule::kSame, -1},
    {"pixel_shuffle", "x", DTypeRule::kSame, -1},
    {"pixel_unshuffle", "x", DTypeRule::kSame, -1},
    {"layer_norm", "x, weight?, bias?", DTypeRule::kPromoteFloat, -1},
    {"rms_norm", "x, weight?", DTypeRule::kPromoteFloat, -1},
    {"batch_norm", "x, mean, var, weight?, bias?", DTypeRule::kPromoteFloat, -1},
    {"group_norm", "x, weight?, bias?", DTypeRule::kPromoteFloat, -1},
    {"instance_norm", "x, weight?, bias?", DTypeRule::kPromoteFloat, -1},
    {"local_response_norm", "x", DTypeRule::kPromoteFloat, -1},
    {"normalize", "x", DTypeRule::kPromoteFloat, -1},
    {"cosine_similarity", "a, b", DTypeRule::kPromoteFloat, -1},
    {"pairwise_distance", "a, b", DTypeRule::kPromoteFloat, -1},
    {"mse_loss", "x, target", DTypeRule::kPromoteFloat, -1},
    {"l1_loss", "x, target", DTypeRule::kPromoteFloat, -1},
    {"smooth_l1_loss", "x, target", DTypeRule::kPromoteFloat, -1},
    {"huber_loss", "x, target", DTypeRule::kPromoteFloat, -1},
    {"binary_cross_entropy", "x, target, weight?", DTypeRule::kPromoteFloat, -1},
    {"binary_cross_entropy_with_logits", "logits, target, weight?, pos_weight?", DTypeRule::kPromoteFloat, -1},
    {"kl_div", "x, target", DTypeRule::kPromoteFloat, -1},
    {"hinge_embedding_loss", "x, target", DTypeRule::kPromoteFloat, -1},
    {"margin_ranking_loss", "a, b, target", DTypeRule::kPromoteFloat, -1},
    {"soft_margin_loss", "x, target", DTypeRule::kPromoteFloat, -1},
    {"gaussian_nll_loss", "x, target, var", DTypeRule::kPromoteFloat, -1},
    {"poisson_nll_loss", "x, target", DTypeRule::kPromoteFloat, -1},
    {"cross_entropy", "logits, labels, weight?", DTypeRule::kSame, 1},
    {"nll_loss", "log_probabilities, labels, weight?", DTypeRule::kSame, 1},
    {"cosine_embedding_loss", "a, b, target", DTypeRule::kPromoteFloat, -1},
    {"triplet_margin_loss", "anchor, positive, negative", DTypeRule::kPromoteFloat, -1},
    {"concat", "tensors*", DTypeRule::kPromote, -1},
    {"one_hot", "x", DTypeRule::kInt64, -1},
    {"tril", "x", DTypeRule::kSame, -1},
    {"triu", "x", DTypeRule::kSame, -1},
    {"random_bits", "key", DTypeRule::kUint32, -1},
    {"random_uniform", "key", DTypeRule::kFloat32, -1},
    {"random_normal", "key", DTypeRule::kFloat32, -1},
    {"dropout", "x, key", DTypeRule::kSame, 1},
    {"gather", "x, index", DTypeRule::kSame, 1},
    {"scatter", "x, index, values", DTypeRule::kSame, 1},
    {"scatter_add", "x, index, values", DTypeRule::kSame, 1},
    {"take", "x, index", DTypeRule::kSame, 1},
    {"take_along_axis", "x, index", DTypeRule::kSame, 1},
    {"put_along_axis", "x, index, values", DTypeRule::kSame, 1},
    {"index", "x, index*", DTypeRule::kSame, 1},
    {"index_put", "x, values, index*", DTypeRule::kSame, 2},
    {"cumulative_sum", "x", DTypeRule::kSame, -1},
    {"cumulative_prod", "x", DTypeRule::kSame, -1},
    {"cumulative_max", "x", DTypeRule::kSame, -1},
    {"cumulative_min", "x", DTypeRule::kSame, -1},
    {"cumulative_logsumexp", "x", DTypeRule::kPromoteFloat, -1},
    {"sort", "x", DTypeRule::kSame, -1},
    {"argsort", "x", DTypeRule::kInt64, -1},
    {"topk", "x", DTypeRule::kSame, -1},
    {"topk_indices", "x", DTypeRule::kInt64, -1},
    {"searchsorted", "values, sorted", DTypeRule::kInt64, -1},
    {"diagonal", "x", DTypeRule::kSame, -1},
    {"diag_embed", "x", DTypeRule::kSame, -1},
    {"cross", "a, b", DTypeRule::kPromote, -1},
    {"roll", "x", DTypeRule::kSame, -1},
    {"einsum", "tensors*", DTypeRule::kPromote, -1},
    {"cholesky", "x", DTypeRule::kPromoteFloat, -1},
    {"triangular_solve", "a, b", DTypeRule::kPromoteFloat, -1},
    {"solve", "a, b", DTypeRule::kPromoteFloat, -1},
    {"inv", "x", DTypeRule::kPromoteFloat, -1},
    {"det", "x", DTypeRule::kPromoteFloat, -1},
    {"slogdet_sign", "x", DTypeRule::kPromoteFloat, -1},
    {"slogdet_logabs", "x", DTypeRule::kPromoteFloat, -1},
    {"qr", "x", DTypeRule::kPromoteFloat, -1},
};

}  // namespace

absl::Span<const OpRow> OpRows() { return kRows; }
uint32_t OpSetVersion() { return 5; }

}  // namespace internal

namespace ops {

using internal::AttributeOf;
using internal::Call;
using internal::Join;

Value Neg(Value x, Location location) {
  return Call("neg", {x}, {}, DType::kUnspecified, location);
}

Value Reciprocal(Value x, Location location) {
  return Call("reciprocal", {x}, {}, DType::kUnspecified, location);
}

Value Sqrt(Value x, Location location) {
  return Call("sqrt", {x}, {}, DType::kUnspecified, location);
}

Value Exp2(Value x, Location location) {
  return Call("exp2", {x}, {}, DType::kUnspecified, location);
}

Value Log2(Value x, Location location) {
  return Call("log2", {x}, {}, DType::kUnspecified, location);
}

Value Sin(Value x, Location location) {
  return Call("sin", {x}, {}, DType::kUnspecified, location);
}

Value Trunc(Value x, Location location) {
  return Call("trunc", {x}, {}, DType::kUnspecified, location);
}

Value Not(Value x, Location location) {
  return Call("not", {x}, {}, DType::kUnspecified, location);
}

Value Cast(Value x, DType dtype, const CastOptions& options, Location location) {
  return Call("cast", {x}, {{"saturate", options.saturate}}, dtype, location);
}

Value Bitcast(Value x, DType dtype, Location location) {
  return Call("bitcast", {x}, {}, dtype, location);
}

Value Add(const Operand& a, const Operand& b, Location location) {
  return Call("add", {a, b}, {}, DType::kUnspecified, location);
}

Value Sub(const Operand& a, const Operand& b, Location location) {
  return Call("sub", {a, b}, {}, DType::kUnspecified, location);
}

Value Mul(const Operand& a, const Operand& b, Location location) {
  return Call("mul", {a, b}, {}, DType::kUnspecified, location);
}

Value Div(const Operand& a, const Operand& b, Location location) {
  return Call("div", {a, b}, {}, DType::kUnspecified, location);
}

Value Idiv(const Operand& a, const Operand& b, Location location) {
  return Call("idiv", {a, b}, {}, DType::kUnspecified, location);
}

Value Mod(const Operand& a, const Operand& b, Location location) {
  return Call("mod", {a, b}, {}, DType::kUnspecified, location);
}

Value Maximum(const Operand& a, const Operand& b, Location location) {
  return Call("maximum", {a, b}, {}, DType::kUnspecified, location);
}

Value Minimum(const Operand& a, const Operand& b, Location location) {
  return Call("minimum", {a, b}, {}, DType::kUnspecified, location);
}

Value Pow(const Operand& a, const Operand& b, Location location) {
  return Call("pow", {a, b}, {}, DType::kUnspecified, location);
}

Value Cmplt(const Operand& a, const Operand& b, Location location) {
  return Call("cmplt", {a, b}, {}, DType::kUnspecified, location);
}

Value Cmpeq(const Operand& a, const Operand& b, Location location) {
  return Call("cmpeq", {a, b}, {}, DType::kUnspecified, location);
}

Value Cmpne(const Operand& a, const Operand& b, Location location) {
  return Call("cmpne", {a, b}, {}, DType::kUnspecified, location);
}

Value And(const Operand& a, const Operand& b, Location location) {
  return Call("and", {a, b}, {}, DType::kUnspecified, location);
}

Value Or(const Operand& a, const Operand& b, Location location) {
  return Call("or", {a, b}, {}, DType::kUnspecified, location);
}

Value Xor(const Operand& a, const Operand& b, Location location) {
  return Call("xor", {a, b}, {}, DType::kUnspecified, location);
}

Value Shl(const Operand& a, const Operand& b, Location location) {
  return Call("shl", {a, b}, {}, DType::kUnspecified, location);
}

Value Shr(const Operand& a, const Operand& b, Location location) {
  return Call("shr", {a, b}, {}, DType::kUnspecified, location);
}

Value Where(Value condition, const Operand& a, const Operand& b, Location location) {
  return Call("where", {condition, a, b}, {}, DType::kUnspecified, location);
}

Value Sum(Value x, const SumOptions& options, Location location) {
  return Call("sum", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value Prod(Value x, const ProdOptions& options, Location location) {
  return Call("prod", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value Max(Value x, const MaxOptions& options, Location location) {
  return Call("max", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value Reshape(Value x, const Dimensions& shape, Location location) {
  return Call("reshape", {x}, {{"shape", AttributeOf(shape)}}, DType::kUnspecified, location);
}

Value Permute(Value x, const Dimensions& axes, Location location) {
  return Call("permute", {x}, {{"axes", AttributeOf(axes)}}, DType::kUnspecified, location);
}

Value Expand(Value x, const Dimensions& shape, Location location) {
  return Call("expand", {x}, {{"shape", AttributeOf(shape)}}, DType::kUnspecified, location);
}

Value Pad(Value x, const Dimensions& padding, Location location) {
  return Call("pad", {x}, {{"padding", AttributeOf(padding)}}, DType::kUnspecified, location);
}

Value Shrink(Value x, const Dimensions& bounds, Location location) {
  return Call("shrink", {x}, {{"bounds", AttributeOf(bounds)}}, DType::kUnspecified, location);
}

Value Flip(Value x, const FlipOptions& options, Location location) {
  return Call("flip", {x}, {{"axes", AttributeOf(options.axes)}}, DType::kUnspecified, location);
}

Value Window(Value x, const Dimension& axis, const Dimension& size, const WindowOptions& options,
             Location location) {
  return Call("window", {x}, {{"axis", AttributeOf(axis)}, {"size", AttributeOf(size)},
      {"stride", AttributeOf(options.stride)}, {"dilation", AttributeOf(options.dilation)}},
      DType::kUnspecified, location);
}

Value Unwindow(Value x, const Dimension& axis, const Dimension& length,
               const UnwindowOptions& options, Location location) {
  return Call("unwindow", {x}, {{"axis", AttributeOf(axis)}, {"length", AttributeOf(length)},
      {"stride", AttributeOf(options.stride)}, {"dilation", AttributeOf(options.dilation)}},
      DType::kUnspecified, location);
}

Value GatherElements(Value x, Value index, const GatherElementsOptions& options, Location location) {
  return Call("gather_elements", {x, index}, {{"axis", AttributeOf(options.axis)}},
      DType::kUnspecified, location);
}

Value ScatterElements(Value x, Value index, Value values, const ScatterElementsOptions& options,
                      Location location) {
  return Call("scatter_elements", {x, index, values}, {{"axis", AttributeOf(options.axis)},
      {"mode", options.mode}}, DType::kUnspecified, location);
}

Value Const(GraphBuilder& builder, DType dtype, const Number& value, const ConstOptions& options,
            Location location) {
  return builder.AddNode("const", {}, {{"value", AttributeOf(value)},
      {"shape", AttributeOf(options.shape)}}, dtype, location);
}

Value Iota(GraphBuilder& builder, DType dtype, const Dimensions& shape, const IotaOptions& options,
           Location location) {
  return builder.AddNode("iota", {}, {{"shape", AttributeOf(shape)},
      {"axis", AttributeOf(options.axis)}}, dtype, location);
}

Value Contiguous(Value x, Location location) {
  return Call("contiguous", {x}, {}, DType::kUnspecified, location);
}

Value Detach(Value x, Location location) {
  return Call("detach", {x}, {}, DType::kUnspecified, location);
}

Value Shard(Value x, const Dimensions& spec, Location location) {
  return Call("shard", {x}, {{"spec", AttributeOf(spec)}}, DType::kUnspecified, location);
}

Value Send(Value x, const Dimension& source, const Dimension& target, Location location) {
  return Call("send", {x}, {{"source", AttributeOf(source)}, {"target", AttributeOf(target)}},
      DType::kUnspecified, location);
}

Value WithDerivative(const Operand& y, const Operand& x, const Operand& derivative,
                     Location location) {
  return Call("with_derivative", {y, x, derivative}, {}, DType::kUnspecified, location);
}

Value Gradient(Value y, Value x, const GradientOptions& options, Location location) {
  return Call("gradient", {y, x, options.upstream}, {}, DType::kUnspecified, location);
}

Value Exp(Value x, Location location) {
  return Call("exp", {x}, {}, DType::kUnspecified, location);
}

Value Log(Value x, Location location) {
  return Call("log", {x}, {}, DType::kUnspecified, location);
}

Value Cos(Value x, Location location) {
  return Call("cos", {x}, {}, DType::kUnspecified, location);
}

Value Tan(Value x, Location location) {
  return Call("tan", {x}, {}, DType::kUnspecified, location);
}

Value Tanh(Value x, Location location) {
  return Call("tanh", {x}, {}, DType::kUnspecified, location);
}

Value Erf(Value x, Location location) {
  return Call("erf", {x}, {}, DType::kUnspecified, location);
}

Value Abs(Value x, Location location) {
  return Call("abs", {x}, {}, DType::kUnspecified, location);
}

Value Sign(Value x, Location location) {
  return Call("sign", {x}, {}, DType::kUnspecified, location);
}

Value Square(Value x, Location location) {
  return Call("square", {x}, {}, DType::kUnspecified, location);
}

Value Rsqrt(Value x, Location location) {
  return Call("rsqrt", {x}, {}, DType::kUnspecified, location);
}

Value Floor(Value x, Location location) {
  return Call("floor", {x}, {}, DType::kUnspecified, location);
}

Value Ceil(Value x, Location location) {
  return Call("ceil", {x}, {}, DType::kUnspecified, location);
}

Value Round(Value x, Location location) {
  return Call("round", {x}, {}, DType::kUnspecified, location);
}

Value Clip(Value x, const ClipOptions& options, Location location) {
  return Call("clip", {x}, {{"min", options.min}, {"max", options.max}}, DType::kUnspecified,
      location);
}

Value ClampMin(const Operand& a, const Operand& b, Location location) {
  return Call("clamp_min", {a, b}, {}, DType::kUnspecified, location);
}

Value ClampMax(const Operand& a, const Operand& b, Location location) {
  return Call("clamp_max", {a, b}, {}, DType::kUnspecified, location);
}

Value FloorDivide(const Operand& a, const Operand& b, Location location) {
  return Call("floor_divide", {a, b}, {}, DType::kUnspecified, location);
}

Value Remainder(const Operand& a, const Operand& b, Location location) {
  return Call("remainder", {a, b}, {}, DType::kUnspecified, location);
}

Value Expm1(Value x, Location location) {
  return Call("expm1", {x}, {}, DType::kUnspecified, location);
}

Value Log1p(Value x, Location location) {
  return Call("log1p", {x}, {}, DType::kUnspecified, location);
}

Value Log10(Value x, Location location) {
  return Call("log10", {x}, {}, DType::kUnspecified, location);
}

Value Sinh(Value x, Location location) {
  return Call("sinh", {x}, {}, DType::kUnspecified, location);
}

Value Cosh(Value x, Location location) {
  return Call("cosh", {x}, {}, DType::kUnspecified, location);
}

Value Asinh(Value x, Location location) {
  return Call("asinh", {x}, {}, DType::kUnspecified, location);
}

Value Acosh(Value x, Location location) {
  return Call("acosh", {x}, {}, DType::kUnspecified, location);
}

Value Atanh(Value x, Location location) {
  return Call("atanh", {x}, {}, DType::kUnspecified, location);
}

Value Logaddexp(const Operand& a, const Operand& b, Location location) {
  return Call("logaddexp", {a, b}, {}, DType::kUnspecified, location);
}

Value Logaddexp2(const Operand& a, const Operand& b, Location location) {
  return Call("logaddexp2", {a, b}, {}, DType::kUnspecified, location);
}

Value Asin(Value x, Location location) {
  return Call("asin", {x}, {}, DType::kUnspecified, location);
}

Value Acos(Value x, Location location) {
  return Call("acos", {x}, {}, DType::kUnspecified, location);
}

Value Atan(Value x, Location location) {
  return Call("atan", {x}, {}, DType::kUnspecified, location);
}

Value Atan2(const Operand& y, const Operand& x, Location location) {
  return Call("atan2", {y, x}, {}, DType::kUnspecified, location);
}

Value Hypot(const Operand& a, const Operand& b, Location location) {
  return Call("hypot", {a, b}, {}, DType::kUnspecified, location);
}

Value Erfc(Value x, Location location) {
  return Call("erfc", {x}, {}, DType::kUnspecified, location);
}

Value Erfinv(Value x, Location location) {
  return Call("erfinv", {x}, {}, DType::kUnspecified, location);
}

Value Lgamma(Value x, Location location) {
  return Call("lgamma", {x}, {}, DType::kUnspecified, location);
}

Value Digamma(Value x, Location location) {
  return Call("digamma", {x}, {}, DType::kUnspecified, location);
}

Value Cbrt(Value x, Location location) {
  return Call("cbrt", {x}, {}, DType::kUnspecified, location);
}

Value Signbit(Value x, Location location) {
  return Call("signbit", {x}, {}, DType::kUnspecified, location);
}

Value Copysign(const Operand& a, const Operand& b, Location location) {
  return Call("copysign", {a, b}, {}, DType::kUnspecified, location);
}

Value Nextafter(const Operand& a, const Operand& b, Location location) {
  return Call("nextafter", {a, b}, {}, DType::kUnspecified, location);
}

Value Fmod(const Operand& a, const Operand& b, Location location) {
  return Call("fmod", {a, b}, {}, DType::kUnspecified, location);
}

Value Isclose(const Operand& a, const Operand& b, const IscloseOptions& options, Location location) {
  return Call("isclose", {a, b}, {{"rtol", options.rtol}, {"atol", options.atol},
      {"equal_nan", options.equal_nan}}, DType::kUnspecified, location);
}

Value NanToNum(Value x, const NanToNumOptions& options, Location location) {
  return Call("nan_to_num", {x}, {{"nan", options.nan}, {"posinf", options.posinf},
      {"neginf", options.neginf}}, DType::kUnspecified, location);
}

Value Greater(const Operand& a, const Operand& b, Location location) {
  return Call("greater", {a, b}, {}, DType::kUnspecified, location);
}

Value GreaterEqual(const Operand& a, const Operand& b, Location location) {
  return Call("greater_equal", {a, b}, {}, DType::kUnspecified, location);
}

Value LessEqual(const Operand& a, const Operand& b, Location location) {
  return Call("less_equal", {a, b}, {}, DType::kUnspecified, location);
}

Value LogicalAnd(const Operand& a, const Operand& b, Location location) {
  return Call("logical_and", {a, b}, {}, DType::kUnspecified, location);
}

Value LogicalOr(const Operand& a, const Operand& b, Location location) {
  return Call("logical_or", {a, b}, {}, DType::kUnspecified, location);
}

Value LogicalXor(const Operand& a, const Operand& b, Location location) {
  return Call("logical_xor", {a, b}, {}, DType::kUnspecified, location);
}

Value LogicalNot(Value x, Location location) {
  return Call("logical_not", {x}, {}, DType::kUnspecified, location);
}

Value Isnan(Value x, Location location) {
  return Call("isnan", {x}, {}, DType::kUnspecified, location);
}

Value Isinf(Value x, Location location) {
  return Call("isinf", {x}, {}, DType::kUnspecified, location);
}

Value Isfinite(Value x, Location location) {
  return Call("isfinite", {x}, {}, DType::kUnspecified, location);
}

Value Sigmoid(Value x, Location location) {
  return Call("sigmoid", {x}, {}, DType::kUnspecified, location);
}

Value Logsigmoid(Value x, Location location) {
  return Call("logsigmoid", {x}, {}, DType::kUnspecified, location);
}

Value Silu(Value x, Location location) {
  return Call("silu", {x}, {}, DType::kUnspecified, location);
}

Value QuickGelu(Value x, Location location) {
  return Call("quick_gelu", {x}, {}, DType::kUnspecified, location);
}

Value Gelu(Value x, const GeluOptions& options, Location location) {
  return Call("gelu", {x}, {{"approximate", options.approximate}}, DType::kUnspecified, location);
}

Value Softplus(Value x, const SoftplusOptions& options, Location location) {
  return Call("softplus", {x}, {{"beta", options.beta}, {"threshold", options.threshold}},
      DType::kUnspecified, location);
}

Value Squareplus(Value x, const SquareplusOptions& options, Location location) {
  return Call("squareplus", {x}, {{"b", options.b}}, DType::kUnspecified, location);
}

Value Mish(Value x, Location location) {
  return Call("mish", {x}, {}, DType::kUnspecified, location);
}

Value Tanhshrink(Value x, Location location) {
  return Call("tanhshrink", {x}, {}, DType::kUnspecified, location);
}

Value Softsign(Value x, Location location) {
  return Call("softsign", {x}, {}, DType::kUnspecified, location);
}

Value Elu(Value x, const EluOptions& options, Location location) {
  return Call("elu", {x}, {{"alpha", options.alpha}}, DType::kUnspecified, location);
}

Value Celu(Value x, const CeluOptions& options, Location location) {
  return Call("celu", {x}, {{"alpha", options.alpha}}, DType::kUnspecified, location);
}

Value Selu(Value x, Location location) {
  return Call("selu", {x}, {}, DType::kUnspecified, location);
}

Value Glu(Value x, const GluOptions& options, Location location) {
  return Call("glu", {x}, {{"axis", AttributeOf(options.axis)}}, DType::kUnspecified, location);
}

Value Relu(Value x, Location location) {
  return Call("relu", {x}, {}, DType::kUnspecified, location);
}

Value Relu6(Value x, Location location) {
  return Call("relu6", {x}, {}, DType::kUnspecified, location);
}

Value Hardtanh(Value x, const HardtanhOptions& options, Location location) {
  return Call("hardtanh", {x}, {{"min", options.min}, {"max", options.max}}, DType::kUnspecified,
      location);
}

Value LeakyRelu(Value x, const LeakyReluOptions& options, Location location) {
  return Call("leaky_relu", {x}, {{"slope", options.slope}}, DType::kUnspecified, location);
}

Value Prelu(Value x, Value weight, Location location) {
  return Call("prelu", {x, weight}, {}, DType::kUnspecified, location);
}

Value Hardsigmoid(Value x, Location location) {
  return Call("hardsigmoid", {x}, {}, DType::kUnspecified, location);
}

Value Hardswish(Value x, Location location) {
  return Call("hardswish", {x}, {}, DType::kUnspecified, location);
}

Value Softshrink(Value x, const SoftshrinkOptions& options, Location location) {
  return Call("softshrink", {x}, {{"lambd", options.lambd}}, DType::kUnspecified, location);
}

Value Hardshrink(Value x, const HardshrinkOptions& options, Location location) {
  return Call("hardshrink", {x}, {{"lambd", options.lambd}}, DType::kUnspecified, location);
}

Value Threshold(Value x, const ThresholdOptions& options, Location location) {
  return Call("threshold", {x}, {{"threshold", options.threshold}, {"value", options.value}},
      DType::kUnspecified, location);
}

Value Mean(Value x, const MeanOptions& options, Location location) {
  return Call("mean", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value Var(Value x, const VarOptions& options, Location location) {
  return Call("var", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims},
      {"correction", options.correction}}, DType::kUnspecified, location);
}

Value Std(Value x, const StdOptions& options, Location location) {
  return Call("std", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims},
      {"correction", options.correction}}, DType::kUnspecified, location);
}

Value VectorNorm(Value x, const VectorNormOptions& options, Location location) {
  return Call("vector_norm", {x}, {{"axes", AttributeOf(options.axes)},
      {"keepdims", options.keepdims}, {"ord", options.ord}}, DType::kUnspecified, location);
}

Value Min(Value x, const MinOptions& options, Location location) {
  return Call("min", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value Any(Value x, const AnyOptions& options, Location location) {
  return Call("any", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value All(Value x, const AllOptions& options, Location location) {
  return Call("all", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value Argmax(Value x, const ArgmaxOptions& options, Location location) {
  return Call("argmax", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value Argmin(Value x, const ArgminOptions& options, Location location) {
  return Call("argmin", {x}, {{"axes", AttributeOf(options.axes)}, {"keepdims", options.keepdims}},
      DType::kUnspecified, location);
}

Value CountNonzero(Value x, const CountNonzeroOptions& options, Location location) {
  return Call("count_nonzero", {x}, {{"axes", AttributeOf(options.axes)},
      {"keepdims", options.keepdims}}, DType::kUnspecified, location);
}

Value Logsumexp(Value x, const LogsumexpOptions& options, Location location) {
  return Call("logsumexp", {x}, {{"axes", AttributeOf(options.axes)},
      {"keepdims", options.keepdims}}, DType::kUnspecified, location);
}

Value Softmax(Value x, const SoftmaxOptions& options, Location location) {
  return Call("softmax", {x}, {{"axis", AttributeOf(options.axis)}}, DType::kUnspecified, location);
}

Value LogSoftmax(Value x, const LogSoftmaxOptions& options, Location location) {
  return Call("log_softmax", {x}, {{"axis", AttributeOf(options.axis)}}, DType::kUnspecified,
      location);
}

Value Matmul(Value a, Value b, Location location) {
  return Call("matmul", {a, b}, {}, DType::kUnspecified, location);
}

Value Linear(Value x, Value weight, const LinearOptions& options, Location location) {
  return Call("linear", {x, weight, options.bias}, {}, DType::kUnspecified, location);
}

Value ScaledDotProductAttention(Value query, Value key, Value value,
                                const ScaledDotProductAttentionOptions& options, Location location) {
  return Call("scaled_dot_product_attention", {query, key, value, options.mask},
      {{"causal", options.causal}, {"scale", options.scale}, {"grouped", options.grouped}},
      DType::kUnspecified, location);
}

Value RotaryEmbedding(Value x, Value cos, Value sin, const RotaryEmbeddingOptions& options,
                      Location location) {
  return Call("rotary_embedding", {x, cos, sin}, {{"interleaved", options.interleaved}},
      DType::kUnspecified, location);
}

Value Conv1d(Value x, Value weight, const Conv1dOptions& options, Location location) {
  return Call("conv1d", {x, weight, options.bias}, {{"stride", AttributeOf(options.stride)},
      {"padding", AttributeOf(options.padding)}, {"dilation", AttributeOf(options.dilation)},
      {"groups", AttributeOf(options.groups)}}, DType::kUnspecified, location);
}

Value Conv2d(Value x, Value weight, const Conv2dOptions& options, Location location) {
  return Call("conv2d", {x, weight, options.bias}, {{"stride", AttributeOf(options.stride)},
      {"padding", AttributeOf(options.padding)}, {"dilation", AttributeOf(options.dilation)},
      {"groups", AttributeOf(options.groups)}}, DType::kUnspecified, location);
}

Value Conv3d(Value x, Value weight, const Conv3dOptions& options, Location location) {
  return Call("conv3d", {x, weight, options.bias}, {{"stride", AttributeOf(options.stride)},
      {"padding", AttributeOf(options.padding)}, {"dilation", AttributeOf(options.dilation)},
      {"groups", AttributeOf(options.groups)}}, DType::kUnspecified, location);
}

Value ConvTranspose1d(Value x, Value weight, const ConvTranspose1dOptions& options,
                      Location location) {
  return Call("conv_transpose1d", {x, weight, options.bias},
      {{"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"dilation", AttributeOf(options.dilation)}, {"groups", AttributeOf(options.groups)},
      {"output_padding", AttributeOf(options.output_padding)}}, DType::kUnspecified, location);
}

Value ConvTranspose2d(Value x, Value weight, const ConvTranspose2dOptions& options,
                      Location location) {
  return Call("conv_transpose2d", {x, weight, options.bias},
      {{"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"dilation", AttributeOf(options.dilation)}, {"groups", AttributeOf(options.groups)},
      {"output_padding", AttributeOf(options.output_padding)}}, DType::kUnspecified, location);
}

Value ConvTranspose3d(Value x, Value weight, const ConvTranspose3dOptions& options,
                      Location location) {
  return Call("conv_transpose3d", {x, weight, options.bias},
      {{"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"dilation", AttributeOf(options.dilation)}, {"groups", AttributeOf(options.groups)},
      {"output_padding", AttributeOf(options.output_padding)}}, DType::kUnspecified, location);
}

Value MaxPool1d(Value x, const Dimensions& kernel, const MaxPool1dOptions& options,
                Location location) {
  return Call("max_pool1d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"dilation", AttributeOf(options.dilation)}},
      DType::kUnspecified, location);
}

Value MaxPool2d(Value x, const Dimensions& kernel, const MaxPool2dOptions& options,
                Location location) {
  return Call("max_pool2d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"dilation", AttributeOf(options.dilation)}},
      DType::kUnspecified, location);
}

Value MaxPool3d(Value x, const Dimensions& kernel, const MaxPool3dOptions& options,
                Location location) {
  return Call("max_pool3d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"dilation", AttributeOf(options.dilation)}},
      DType::kUnspecified, location);
}

Value AvgPool1d(Value x, const Dimensions& kernel, const AvgPool1dOptions& options,
                Location location) {
  return Call("avg_pool1d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"count_include_pad", options.count_include_pad},
      {"divisor_override", AttributeOf(options.divisor_override)}}, DType::kUnspecified, location);
}

Value AvgPool2d(Value x, const Dimensions& kernel, const AvgPool2dOptions& options,
                Location location) {
  return Call("avg_pool2d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"count_include_pad", options.count_include_pad},
      {"divisor_override", AttributeOf(options.divisor_override)}}, DType::kUnspecified, location);
}

Value AvgPool3d(Value x, const Dimensions& kernel, const AvgPool3dOptions& options,
                Location location) {
  return Call("avg_pool3d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"count_include_pad", options.count_include_pad},
      {"divisor_override", AttributeOf(options.divisor_override)}}, DType::kUnspecified, location);
}

Value LpPool1d(Value x, const Dimensions& kernel, const LpPool1dOptions& options, Location location) {
  return Call("lp_pool1d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"norm", options.norm}}, DType::kUnspecified, location);
}

Value LpPool2d(Value x, const Dimensions& kernel, const LpPool2dOptions& options, Location location) {
  return Call("lp_pool2d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"norm", options.norm}}, DType::kUnspecified, location);
}

Value LpPool3d(Value x, const Dimensions& kernel, const LpPool3dOptions& options, Location location) {
  return Call("lp_pool3d", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"ceil_mode", options.ceil_mode}, {"norm", options.norm}}, DType::kUnspecified, location);
}

Value Interpolate(Value x, const Dimensions& size, const InterpolateOptions& options,
                  Location location) {
  return Call("interpolate", {x}, {{"size", AttributeOf(size)}, {"mode", options.mode},
      {"align_corners", options.align_corners}, {"scale", options.scale}}, DType::kUnspecified,
      location);
}

Value AdaptiveAvgPool(Value x, const Dimensions& size, Location location) {
  return Call("adaptive_avg_pool", {x}, {{"size", AttributeOf(size)}}, DType::kUnspecified,
      location);
}

Value AdaptiveMaxPool(Value x, const Dimensions& size, Location location) {
  return Call("adaptive_max_pool", {x}, {{"size", AttributeOf(size)}}, DType::kUnspecified,
      location);
}

Value PadConstant(Value x, const Dimensions& padding, const PadConstantOptions& options,
                  Location location) {
  return Call("pad_constant", {x}, {{"padding", AttributeOf(padding)},
      {"value", AttributeOf(options.value)}}, DType::kUnspecified, location);
}

Value PadReflect(Value x, const Dimensions& padding, Location location) {
  return Call("pad_reflect", {x}, {{"padding", AttributeOf(padding)}}, DType::kUnspecified,
      location);
}

Value PadReplicate(Value x, const Dimensions& padding, Location location) {
  return Call("pad_replicate", {x}, {{"padding", AttributeOf(padding)}}, DType::kUnspecified,
      location);
}

Value PadCircular(Value x, const Dimensions& padding, Location location) {
  return Call("pad_circular", {x}, {{"padding", AttributeOf(padding)}}, DType::kUnspecified,
      location);
}

Value Unfold(Value x, const Dimensions& kernel, const UnfoldOptions& options, Location location) {
  return Call("unfold", {x}, {{"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"dilation", AttributeOf(options.dilation)}}, DType::kUnspecified, location);
}

Value Fold(Value x, const Dimensions& size, const Dimensions& kernel, const FoldOptions& options,
           Location location) {
  return Call("fold", {x}, {{"size", AttributeOf(size)}, {"kernel", AttributeOf(kernel)},
      {"stride", AttributeOf(options.stride)}, {"padding", AttributeOf(options.padding)},
      {"dilation", AttributeOf(options.dilation)}}, DType::kUnspecified, location);
}

Value PixelShuffle(Value x, const Dimension& factor, Location location) {
  return Call("pixel_shuffle", {x}, {{"factor", AttributeOf(factor)}}, DType::kUnspecified,
      location);
}

Value PixelUnshuffle(Value x, const Dimension& factor, Location location) {
  return Call("pixel_unshuffle", {x}, {{"factor", AttributeOf(factor)}}, DType::kUnspecified,
      location);
}

Value LayerNorm(Value x, const LayerNormOptions& options, Location location) {
  return Call("layer_norm", {x, options.weight, options.bias}, {{"axes", AttributeOf(options.axes)},
      {"epsilon", options.epsilon}}, DType::kUnspecified, location);
}

Value RmsNorm(Value x, const RmsNormOptions& options, Location location) {
  return Call("rms_norm", {x, options.weight}, {{"axes", AttributeOf(options.axes)},
      {"epsilon", options.epsilon}}, DType::kUnspecified, location);
}

Value BatchNorm(Value x, Value mean, Value var, const BatchNormOptions& options, Location location) {
  return Call("batch_norm", {x, mean, var, options.weight, options.bias},
      {{"epsilon", options.epsilon}}, DType::kUnspecified, location);
}

Value GroupNorm(Value x, const Dimension& groups, const GroupNormOptions& options,
                Location location) {
  return Call("group_norm", {x, options.weight, options.bias}, {{"groups", AttributeOf(groups)},
      {"epsilon", options.epsilon}}, DType::kUnspecified, location);
}

Value InstanceNorm(Value x, const InstanceNormOptions& options, Location location) {
  return Call("instance_norm", {x, options.weight, options.bias}, {{"epsilon", options.epsilon}},
      DType::kUnspecified, location);
}

Value LocalResponseNorm(Value x, const Dimension& size, const LocalResponseNormOptions& options,
                        Location location) {
  return Call("local_response_norm", {x}, {{"size", AttributeOf(size)}, {"alpha", options.alpha},
      {"beta", options.beta}, {"k", options.k}}, DType::kUnspecified, location);
}

Value Normalize(Value x, const NormalizeOptions& options, Location location) {
  return Call("normalize", {x}, {{"p", options.p}, {"axis", AttributeOf(options.axis)},
      {"epsilon", options.epsilon}}, DType::kUnspecified, location);
}

Value CosineSimilarity(Value a, Value b, const CosineSimilarityOptions& options, Location location) {
  return Call("cosine_similarity", {a, b}, {{"axis", AttributeOf(options.axis)},
      {"epsilon", options.epsilon}, {"keepdims", options.keepdims}}, DType::kUnspecified, location);
}

Value PairwiseDistance(Value a, Value b, const PairwiseDistanceOptions& options, Location location) {
  return Call("pairwise_distance", {a, b}, {{"p", options.p}, {"epsilon", options.epsilon},
      {"axis", AttributeOf(options.axis)}, {"keepdims", options.keepdims}}, DType::kUnspecified,
      location);
}

Value MseLoss(Value x, Value target, const MseLossOptions& options, Location location) {
  return Call("mse_loss", {x, target}, {{"reduction", options.reduction}}, DType::kUnspecified,
      location);
}

Value L1Loss(Value x, Value target, const L1LossOptions& options, Location location) {
  return Call("l1_loss", {x, target}, {{"reduction", options.reduction}}, DType::kUnspecified,
      location);
}

Value SmoothL1Loss(Value x, Value target, const SmoothL1LossOptions& options, Location location) {
  return Call("smooth_l1_loss", {x, target}, {{"beta", options.beta},
      {"reduction", options.reduction}}, DType::kUnspecified, location);
}

Value HuberLoss(Value x, Value target, const HuberLossOptions& options, Location location) {
  return Call("huber_loss", {x, target}, {{"delta", options.delta},
      {"reduction", options.reduction}}, DType::kUnspecified, location);
}

Value BinaryCrossEntropy(Value x, Value target, const BinaryCrossEntropyOptions& options,
                         Location location) {
  return Call("binary_cross_entropy", {x, target, options.weight},
      {{"reduction", options.reduction}}, DType::kUnspecified, location);
}

Value BinaryCrossEntropyWithLogits(Value logits, Value target,
                                   const BinaryCrossEntropyWithLogitsOptions& options,
                                   Location location) {
  return Call("binary_cross_entropy_with_logits",
      {logits, target, options.weight, options.pos_weight}, {{"reduction", options.reduction}},
      DType::kUnspecified, location);
}

Value KlDiv(Value x, Value target, const KlDivOptions& options, Location location) {
  return Call("kl_div", {x, target}, {{"log_target", options.log_target},
      {"reduction", options.reduction}}, DType::kUnspecified, location);
}

Value HingeEmbeddingLoss(Value x, Value target, const HingeEmbeddingLossOptions& options,
                         Location location) {
  return Call("hinge_embedding_loss", {x, target}, {{"margin", options.margin},
      {"reduction", options.reduction}}, DType::kUnspecified, location);
}

Value MarginRankingLoss(Value a, Value b, Value target, const MarginRankingLossOptions& options,
                        Location location) {
  return Call("margin_ranking_loss", {a, b, target}, {{"margin", options.margin},
      {"reduction", options.reduction}}, DType::kUnspecified, location);
}

Value SoftMarginLoss(Value x, Value target, const SoftMarginLossOptions& options, Location location) {
  return Call("soft_margin_loss", {x, target}, {{"reduction", options.reduction}},
      DType::kUnspecified, location);
}

Value GaussianNllLoss(Value x, Value target, Value var, const GaussianNllLossOptions& options,
                      Location location) {
  return Call("gaussian_nll_loss", {x, target, var}, {{"full", options.full},
      {"epsilon", options.epsilon}, {"reduction", options.reduction}}, DType::kUnspecified,
      location);
}

Value PoissonNllLoss(Value x, Value target, const PoissonNllLossOptions& options, Location location) {
  return Call("poisson_nll_loss", {x, target}, {{"log_input", options.log_input},
      {"full", options.full}, {"epsilon", options.epsilon}, {"reduction", options.reduction}},
      DType::kUnspecified, location);
}

Value CrossEntropy(Value logits, Value labels, const CrossEntropyOptions& options,
                   Location location) {
  return Call("cross_entropy", {logits, labels, options.weight},
      {{"label_smoothing", options.label_smoothing},
      {"ignore_index", AttributeOf(options.ignore_index)}, {"reduction", options.reduction}},
      DType::kUnspecified, location);
}

Value NllLoss(Value log_probabilities, Value labels, const NllLossOptions& options,
              Location location) {
  return Call("nll_loss", {log_probabilities, labels, options.weight},
      {{"ignore_index", AttributeOf(options.ignore_index)}, {"reduction", options.reduction}},
      DType::kUnspecified, location);
}

Value CosineEmbeddingLoss(Value a, Value b, Value target, const CosineEmbeddingLossOptions& options,
                          Location location) {
  return Call("cosine_embedding_loss", {a, b, target}, {{"margin", options.margin},
      {"reduction", options.reduction}}, DType::kUnspecified, location);
}

Value TripletMarginLoss(Value anchor, Value positive, Value negative,
                        const TripletMarginLossOptions& options, Location location) {
  return Call("triplet_margin_loss", {anchor, positive, negative}, {{"margin", options.margin},
      {"p", options.p}, {"epsilon", options.epsilon}, {"swap", options.swap},
      {"reduction", options.reduction}}, DType::kUnspecified, location);
}

Value Concat(absl::Span<const Value> tensors, const ConcatOptions& options, Location location) {
  return Call("concat", Join({}, tensors), {{"axis", AttributeOf(options.axis)}},
      DType::kUnspecified, location);
}

Value OneHot(Value x, const Dimension& classes, Location location) {
  return Call("one_hot", {x}, {{"classes", AttributeOf(classes)}}, DType::kUnspecified, location);
}

Value Tril(Value x, const TrilOptions& options, Location location) {
  return Call("tril", {x}, {{"diagonal", AttributeOf(options.diagonal)}}, DType::kUnspecified,
      location);
}

Value Triu(Value x, const TriuOptions& options, Location location) {
  return Call("triu", {x}, {{"diagonal", AttributeOf(options.diagonal)}}, DType::kUnspecified,
      location);
}

Value RandomBits(Value key, const Dimensions& shape, Location location) {
  return Call("random_bits", {key}, {{"shape", AttributeOf(shape)}}, DType::kUnspecified, location);
}

Value RandomUniform(Value key, const Dimensions& shape, Location location) {
  return Call("random_uniform", {key}, {{"shape", AttributeOf(shape)}}, DType::kUnspecified,
      location);
}

Value RandomNormal(Value key, const Dimensions& shape, Location location) {
  return Call("random_normal", {key}, {{"shape", AttributeOf(shape)}}, DType::kUnspecified,
      location);
}

Value Dropout(Value x, Value key, const DropoutOptions& options, Location location) {
  return Call("dropout", {x, key}, {{"p", options.p},
      {"shared_axes", AttributeOf(options.shared_axes)}}, DType::kUnspecified, location);
}

Value Gather(Value x, Value index, const GatherOptions& options, Location location) {
  return Call("gather", {x, index}, {{"axis", AttributeOf(options.axis)}}, DType::kUnspecified,
      location);
}

Value Scatter(Value x, Value index, Value values, const ScatterOptions& options, Location location) {
  return Call("scatter", {x, index, values}, {{"axis", AttributeOf(options.axis)},
      {"mode", options.mode}}, DType::kUnspecified, location);
}

Value ScatterAdd(Value x, Value index, Value values, const ScatterAddOptions& options,
                 Location location) {
  return Call("scatter_add", {x, index, values}, {{"axis", AttributeOf(options.axis)}},
      DType::kUnspecified, location);
}

Value Take(Value x, Value index, const TakeOptions& options, Location location) {
  return Call("take", {x, index}, {{"axis", AttributeOf(options.axis)}}, DType::kUnspecified,
      location);
}

Value TakeAlongAxis(Value x, Value index, const TakeAlongAxisOptions& options, Location location) {
  return Call("take_along_axis", {x, index}, {{"axis", AttributeOf(options.axis)}},
      DType::kUnspecified, location);
}

Value PutAlongAxis(Value x, Value index, Value values, const PutAlongAxisOptions& options,
                   Location location) {
  return Call("put_along_axis", {x, index, values}, {{"axis", AttributeOf(options.axis)},
      {"mode", options.mode}}, DType::kUnspecified, location);
}

Value Index(Value x, absl::Span<const Value> index, const IndexOptions& options, Location location) {
  return Call("index", Join({x}, index), {{"axis", AttributeOf(options.axis)}}, DType::kUnspecified,
      location);
}

Value IndexPut(Value x, Value values, absl::Span<const Value> index, const IndexPutOptions& options,
               Location location) {
  return Call("index_put", Join({x, values}, index), {{"axis", AttributeOf(options.axis)},
      {"mode", options.mode}}, DType::kUnspecified, location);
}

Value CumulativeSum(Value x, const Dimension& axis, Location location) {
  return Call("cumulative_sum", {x}, {{"axis", AttributeOf(axis)}}, DType::kUnspecified, location);
}

Value CumulativeProd(Value x, const Dimension& axis, Location location) {
  return Call("cumulative_prod", {x}, {{"axis", AttributeOf(axis)}}, DType::kUnspecified, location);
}

Value CumulativeMax(Value x, const Dimension& axis, Location location) {
  return Call("cumulative_max", {x}, {{"axis", AttributeOf(axis)}}, DType::kUnspecified, location);
}

Value CumulativeMin(Value x, const Dimension& axis, Location location) {
  return Call("cumulative_min", {x}, {{"axis", AttributeOf(axis)}}, DType::kUnspecified, location);
}

Value CumulativeLogsumexp(Value x, const Dimension& axis, Location location) {
  return Call("cumulative_logsumexp", {x}, {{"axis", AttributeOf(axis)}}, DType::kUnspecified,
      location);
}

Value Sort(Value x, const SortOptions& options, Location location) {
  return Call("sort", {x}, {{"axis", AttributeOf(options.axis)},
      {"descending", options.descending}}, DType::kUnspecified, location);
}

Value Argsort(Value x, const ArgsortOptions& options, Location location) {
  return Call("argsort", {x}, {{"axis", AttributeOf(options.axis)},
      {"descending", options.descending}}, DType::kUnspecified, location);
}

Value Topk(Value x, const Dimension& k, const TopkOptions& options, Location location) {
  return Call("topk", {x}, {{"k", AttributeOf(k)}, {"axis", AttributeOf(options.axis)},
      {"largest", options.largest}}, DType::kUnspecified, location);
}

Value TopkIndices(Value x, const Dimension& k, const TopkIndicesOptions& options, Location location) {
  return Call("topk_indices", {x}, {{"k", AttributeOf(k)}, {"axis", AttributeOf(options.axis)},
      {"largest", options.largest}}, DType::kUnspecified, location);
}

Value Searchsorted(Value values, Value sorted, const SearchsortedOptions& options,
                   Location location) {
  return Call("searchsorted", {values, sorted}, {{"right", options.right}}, DType::kUnspecified,
      location);
}

Value Diagonal(Value x, const DiagonalOptions& options, Location location) {
  return Call("diagonal", {x}, {{"offset", AttributeOf(options.offset)},
      {"axis1", AttributeOf(options.axis1)}, {"axis2", AttributeOf(options.axis2)}},
      DType::kUnspecified, location);
}

Value DiagEmbed(Value x, const DiagEmbedOptions& options, Location location) {
  return Call("diag_embed", {x}, {{"offset", AttributeOf(options.offset)}}, DType::kUnspecified,
      location);
}

Value Cross(const Operand& a, const Operand& b, const CrossOptions& options, Location location) {
  return Call("cross", {a, b}, {{"axis", AttributeOf(options.axis)}}, DType::kUnspecified,
      location);
}

Value Roll(Value x, const Dimensions& shifts, const Dimensions& axes, Location location) {
  return Call("roll", {x}, {{"shifts", AttributeOf(shifts)}, {"axes", AttributeOf(axes)}},
      DType::kUnspecified, location);
}

Value Einsum(absl::Span<const Value> tensors, const std::string& equation, Location location) {
  return Call("einsum", Join({}, tensors), {{"equation", equation}}, DType::kUnspecified, location);
}

Value Cholesky(Value x, const CholeskyOptions& options, Location location) {
  return Call("cholesky", {x}, {{"upper", options.upper}}, DType::kUnspecified, location);
}

Value TriangularSolve(Value a, Value b, const TriangularSolveOptions& options, Location location) {
  return Call("triangular_solve", {a, b}, {{"upper", options.upper},
      {"unit_diagonal", options.unit_diagonal}}, DType::kUnspecified, location);
}

Value Solve(Value a, Value b, Location location) {
  return Call("solve", {a, b}, {}, DType::kUnspecified, location);
}

Value Inv(Value x, Location location) {
  return Call("inv", {x}, {}, DType::kUnspecified, location);
}

Value Det(Value x, Location location) {
  return Call("det", {x}, {}, DType::kUnspecified, location);
}

Value SlogdetSign(Value x, Location location) {
  return Call("slogdet_sign", {x}, {}, DType::kUnspecified, location);
}

Value SlogdetLogabs(Value x, Location location) {
  return Call("slogdet_logabs", {x}, {}, DType::kUnspecified, location);
}

Value Qr(Value x, const std::string& part, const QrOptions& options, Location location) {
  return Call("qr", {x}, {{"part", part}, {"complete", options.complete}}, DType::kUnspecified,
      location);
}

}  // namespace ops
}  // namespace kiln
// clang-format on
