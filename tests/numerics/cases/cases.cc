#include "tests/numerics/cases/cases.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "compiler/autodiff/differentiate.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/testing/build_op.h"
#include "tests/numerics/cases/builders.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Node;
using ops::Attributes;

void AddElementwise(std::vector<Case>& cases) {
  for (const char* op : {"neg", "sin", "exp2", "exp", "cos", "tanh", "erf", "abs", "square", "relu",
                         "leaky_relu", "sigmoid", "silu", "gelu", "softplus"}) {
    cases.push_back(Make(op, {{{3, 4}}}));
  }
  for (const char* op : {"reciprocal", "sqrt", "log2", "log", "rsqrt"}) {
    cases.push_back(Make(op, {{{3, 4}, 0.25, 4}}));
  }
  cases.push_back(Make("tan", {{{7}, -1, 1}}));
  cases.push_back(
      Named("gelu_tanh", Make("gelu", {{{3, 4}}}, {{"approximate", std::string("tanh")}})));
  cases.push_back(Named("sigmoid_far", Make("sigmoid", {{{9}, -80, 80}})));
  cases.push_back(Make("clip", {{{3, 4}}}, {{"min", -0.7}, {"max", 1.1}}));
  for (const char* op : {"trunc", "sign", "floor", "ceil", "round"}) {
    cases.push_back(Make(op, {{{3, 4}, -3, 3}}));
  }
  for (const char* op : {"isnan", "isinf", "isfinite", "logical_not"}) {
    cases.push_back(Flat(Make(op, {{{5}}})));
  }
  for (const char* op : {"add", "sub", "mul", "maximum", "minimum", "clamp_min", "clamp_max"}) {
    cases.push_back(Make(op, {{{3, 1, 4}}, {{2, 4}}}));
  }
  cases.push_back(Make("div", {{{3, 4}}, {{4}, 0.5, 3}}));
  cases.push_back(Make("pow", {{{3, 4}, 0.2, 2}, {{4}, -2, 3}}));
  cases.push_back(Make("floor_divide", {{{3, 4}, -5, 5}, {{4}, 0.6, 2}}));
  cases.push_back(Make("remainder", {{{3, 4}, -5, 5}, {{4}, 0.6, 2}}));
  for (const char* op : {"cmplt", "cmpeq", "cmpne", "greater", "greater_equal", "less_equal",
                         "logical_and", "logical_or"}) {
    cases.push_back(Flat(Make(op, {{{3, 4}}, {{4}}})));
  }
  cases.push_back(Make("where", {Bools({3, 1}), {{3, 4}}, {{4}}}));
}

void AddIntegers(std::vector<Case>& cases) {
  for (const char* op : {"add", "sub", "mul", "maximum", "minimum", "idiv", "mod", "and", "or",
                         "xor", "floor_divide", "remainder", "cmplt"}) {
    cases.push_back(Named(std::string(op) + "_int32",
                          Flat(Make(op, {Ints32({4, 5}, -20, 20), Ints32({5}, -4, 5)}))));
  }
  for (const char* op : {"shl", "shr"}) {
    cases.push_back(Named(std::string(op) + "_int32",
                          Flat(Make(op, {Ints32({4, 5}, -99, 99), Ints32({5}, 0, 9)}))));
    cases.push_back(Named(std::string(op) + "_uint32",
                          Flat(Make(op, {{{4, 5}, 0, 4e9, kUInt32}, {{5}, 0, 33, kUInt32}}))));
  }
  for (const char* op : {"neg", "not", "abs", "sign", "square"}) {
    cases.push_back(Named(std::string(op) + "_int32", Flat(Make(op, {Ints32({7}, -9, 9)}))));
  }
  cases.push_back(Named("not_bool", Flat(Make("not", {Bools({5})}))));
  for (const char* op : {"sum", "prod", "max", "min", "argmax"}) {
    cases.push_back(Named(std::string(op) + "_int32",
                          Flat(Make(op, {Ints32({3, 4}, -9, 9)}, {{"axes", Ints{1}}}))));
  }
  for (const char* op : {"any", "all"}) {
    cases.push_back(Named(std::string(op) + "_int32",
                          Flat(Make(op, {Ints32({3, 4}, 0, 3)}, {{"axes", Ints{-1}}}))));
  }
}

void AddCasts(std::vector<Case>& cases) {
  const auto cast = [](std::string name, OperandSpec operand, DType to) {
    Case test_case = Named(std::move(name), Make("cast", {std::move(operand)}));
    test_case.declared = to;
    test_case.differentiable = false;
    return test_case;
  };
  cases.push_back(cast("cast_float_to_int32", {{9}, -5, 5}, kInt32));
  cases.push_back(cast("cast_float_to_int8", {{9}, -99, 99}, DType::kInt8));
  cases.push_back(cast("cast_float_to_uint8", {{9}, 0, 255}, DType::kUInt8));
  cases.push_back(cast("cast_float_to_bool", {{9}, -1, 1}, kBool));
  cases.push_back(cast("cast_int32_to_float32", Ints32({9}, -1e9, 1e9), DType::kFloat32));
  cases.push_back(cast("cast_int32_to_int8", Ints32({9}, -999, 999), DType::kInt8));
  cases.push_back(cast("cast_int32_to_int64", Ints32({9}, -999, 999), DType::kInt64));
  cases.push_back(cast("cast_uint32_to_float32", {{9}, 0, 4e9, kUInt32}, DType::kFloat32));
  cases.push_back(cast("cast_bool_to_int32", Bools({9}), kInt32));
  cases.push_back(cast("cast_float_to_float32", {{9}, -5, 5}, DType::kFloat32));
  cases.push_back(cast("cast_float_to_float64", {{9}, -5, 5}, DType::kFloat64));
  cases.push_back(cast("bitcast_int32_to_float32", Ints32({9}, 1e9, 1.1e9), DType::kFloat32));
  cases.back().op = "bitcast";
}

void AddReductions(std::vector<Case>& cases) {
  for (const char* op : {"sum", "prod", "max", "min", "mean", "logsumexp"}) {
    cases.push_back(Make(op, {{{2, 3, 4}}}, {{"axes", Ints{1}}}));
    cases.push_back(Named(std::string(op) + "_all", Make(op, {{{3, 4}}}, {})));
    cases.push_back(Named(std::string(op) + "_kept",
                          Make(op, {{{2, 3, 4}}}, {{"axes", Ints{0, -1}}, {"keepdims", true}})));
  }
  cases.push_back(Named("sum_long", Make("sum", {{{2, 3000}}}, {{"axes", Ints{1}}})));
  cases.push_back(Make("var", {{{3, 5}}}, {{"axes", Ints{1}}}));
  cases.push_back(
      Named("var_population", Make("var", {{{3, 5}}}, {{"axes", Ints{0}}, {"correction", 0.0}})));
  cases.push_back(Flat(Make("argmax", {{{3, 5}}}, {{"axes", Ints{1}}})));
  cases.push_back(Named("argmax_all", Flat(Make("argmax", {{{3, 5}}}))));
  cases.push_back(Make("softmax", {{{3, 5}}}));
  cases.push_back(Named("softmax_first", Make("softmax", {{{3, 5}}}, {{"axis", int64_t{0}}})));
  cases.push_back(Named("softmax_large", Make("softmax", {{{3, 5}, 900, 920}})));
  cases.push_back(Make("log_softmax", {{{3, 5}}}));
}

void AddMovement(std::vector<Case>& cases) {
  cases.push_back(Make("reshape", {{{3, 4}}}, {{"shape", Ints{2, 6}}}));
  cases.push_back(Make("permute", {{{2, 3, 4}}}, {{"axes", Ints{2, 0, 1}}}));
  cases.push_back(Make("expand", {{{3, 1}}}, {{"shape", Ints{2, 3, 4}}}));
  cases.push_back(Make("pad", {{{2, 3}}}, {{"padding", Ints{1, 0, 2, 1}}}));
  cases.push_back(Make("shrink", {{{4, 5}}}, {{"bounds", Ints{1, 3, 0, 4}}}));
  cases.push_back(Make("flip", {{{3, 4}}}, {{"axes", Ints{1}}}));
  cases.push_back(Make("window", {{{2, 9}}},
                       {{"axis", int64_t{1}},
                        {"size", int64_t{3}},
                        {"stride", int64_t{2}},
                        {"dilation", int64_t{2}}}));
  cases.push_back(Make("unwindow", {{{2, 3, 3}}},
                       {{"axis", int64_t{1}},
                        {"length", int64_t{9}},
                        {"stride", int64_t{2}},
                        {"dilation", int64_t{2}}}));
  cases.push_back(Make("concat", {{{2, 3}}, {{2, 1}}, {{2, 4}}}, {{"axis", int64_t{1}}}));
  cases.push_back(Make("tril", {{{3, 4}}}));
  cases.push_back(Make("triu", {{{2, 3, 4}}}, {{"diagonal", int64_t{1}}}));
  cases.push_back(Make("contiguous", {{{3, 4}}}));
  cases.push_back(Make("shard", {{{3, 4}}}, {{"spec", Ints{0, 1, 0}}}));
  cases.push_back(Make("send", {{{3, 4}}}, {{"source", int64_t{0}}, {"target", int64_t{1}}}));
  cases.push_back(Flat(Make("one_hot", {Ints32({2, 3}, 0, 4)}, {{"classes", int64_t{4}}})));
}

// Indices out of range at both ends, and repeated ones.
void AddIndexed(std::vector<Case>& cases) {
  const Attributes along_last = {{"axis", int64_t{-1}}};
  const Attributes along_second = {{"axis", int64_t{1}}};
  cases.push_back(Make("gather", {{{5, 3}}, Ints32({2, 4}, -1, 6)}));
  cases.push_back(Named("gather_last", Make("gather", {{{3, 5}}, Ints32({4}, 0, 5)}, along_last)));
  cases.push_back(Make("gather_elements", {{{5, 3}}, Ints32({4, 3}, -1, 6)}));
  cases.push_back(
      Named("gather_elements_wide",
            Make("gather_elements", {{{2, 5, 3}}, Ints32({1, 4, 3}, -1, 6)}, along_second)));
  cases.push_back(Make("scatter_add", {{{5, 3}}, Ints32({4}, -1, 6), {{4, 3}}}));
  cases.push_back(Make("take", {{{3, 5}}, Ints32({2, 3}, -6, 6)}, along_second));
  cases.push_back(Make("take_along_axis", {{{3, 1, 4}}, Ints32({3, 2, 5}, -5, 5)}, along_last));
  cases.push_back(
      Make("index", {{{2, 4, 5}}, Ints32({3, 1}, -5, 5), Ints32({4}, -6, 6)}, along_second));
  for (const char* mode : {"set", "add", "mul", "max", "min"}) {
    const Attributes first = {{"mode", std::string(mode)}};
    const Attributes last = {{"mode", std::string(mode)}, {"axis", int64_t{-1}}};
    auto add = [&](Case test_case) {
      const std::string name = test_case.op + "_mode_" + mode;
      cases.push_back(Named(name, std::move(test_case)));
    };
    add(Make("scatter", {{{5, 3}}, Ints32({9}, -1, 6), {{9, 3}}}, first));
    add(Make("scatter_elements", {{{3, 4}}, Ints32({3, 7}, -1, 5), {{3, 7}}}, last));
    add(Make("put_along_axis", {{{3, 4}}, Ints32({1, 6}, -5, 5), {{3, 1}}}, last));
    add(Make("index_put", {{{4, 3}}, {{5, 1}}, Ints32({5, 2}, -5, 5), Ints32({2}, -4, 4)}, first));
  }
}

void AddContractions(std::vector<Case>& cases) {
  cases.push_back(Make("matmul", {{{3, 5}}, {{5, 4}}}));
  cases.push_back(Named("matmul_batched", Make("matmul", {{{2, 1, 3, 5}}, {{4, 5, 2}}})));
  cases.push_back(Named("matmul_row", Make("matmul", {{{5}}, {{2, 5, 4}}})));
  cases.push_back(Named("matmul_column", Make("matmul", {{{2, 3, 5}}, {{5}}})));
  cases.push_back(Named("matmul_dot", Make("matmul", {{{5}}, {{5}}})));
  cases.push_back(Named("matmul_ragged", Make("matmul", {{{37, 65}}, {{65, 53}}})));
  cases.push_back(Make("linear", {{{3, 5}}, {{4, 5}}, {{4}}}));
  cases.push_back(Named("linear_deep", Make("linear", {{{2, 3, 5}}, {{4, 5}}})));
  cases.push_back(Make("conv2d", {{{2, 3, 6, 7}}, {{4, 3, 3, 2}}, {{4}}}));
  cases.push_back(Named("conv2d_strided", Make("conv2d", {{{2, 4, 7, 8}}, {{6, 2, 3, 3}}},
                                               {{"stride", Ints{2, 1}},
                                                {"padding", Ints{1, 2}},
                                                {"dilation", Ints{1, 2}},
                                                {"groups", int64_t{2}}})));
  cases.push_back(
      Named("conv2d_depthwise", Make("conv2d", {{{1, 3, 5, 5}}, {{3, 1, 3, 3}}},
                                     {{"padding", Ints{1, 1}}, {"groups", int64_t{3}}})));
  // Windows that overlap, leave gaps or do not fit the stride; sizes for which the loops are
  // blocked.
  struct Strided {
    const char* name;
    ir::Shape x, weight;
    int64_t stride, padding;
  };
  for (const Strided& c : {Strided{"halving", {2, 3, 9, 8}, {4, 3, 3, 3}, 2, 1},
                           Strided{"gaps", {2, 3, 7, 8}, {4, 3, 1, 1}, 2, 0},
                           Strided{"thirds", {1, 2, 14, 13}, {3, 2, 5, 4}, 3, 1},
                           Strided{"tiles", {1, 2, 9, 10}, {3, 2, 3, 3}, 3, 0},
                           Strided{"blocked", {1, 8, 12, 12}, {16, 8, 3, 3}, 2, 1}}) {
    const Ints stride = {c.stride, c.stride}, padding = {c.padding, c.padding};
    cases.push_back(
        Named(std::string("conv2d_") + c.name,
              Make("conv2d", {{c.x}, {c.weight}}, {{"stride", stride}, {"padding", padding}})));
  }
  cases.push_back(Make("max_pool2d", {{{2, 3, 6, 6}}}, {{"kernel", Ints{2, 2}}}));
  cases.push_back(
      Named("max_pool2d_padded",
            Make("max_pool2d", {{{2, 7, 7}}},
                 {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1}}})));
  cases.push_back(Make("avg_pool2d", {{{2, 3, 5, 5}}},
                       {{"kernel", Ints{3, 2}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 1}}}));
  cases.push_back(Make("scaled_dot_product_attention", {{{2, 3, 4}}, {{2, 5, 4}}, {{2, 5, 6}}}));
  cases.push_back(Named(
      "attention_causal",
      Make("scaled_dot_product_attention", {{{4, 3}}, {{4, 3}}, {{4, 2}}}, {{"causal", true}})));
}

void AddNetworks(std::vector<Case>& cases) {
  cases.push_back(Make("layer_norm", {{{3, 8}}, {{8}}, {{8}}}));
  cases.push_back(
      Named("layer_norm_two", Make("layer_norm", {{{3, 2, 4}}, {{2, 4}}}, {{"axes", int64_t{2}}})));
  cases.push_back(Make("rms_norm", {{{3, 8}}, {{8}}}));
  cases.push_back(Make("batch_norm", {{{2, 3, 4}}, {{3}}, {{3}, 0.5, 2}, {{3}}, {{3}}}));
  cases.push_back(Make("cross_entropy", {{{4, 5}}, Ints32({4}, 0, 5)}));
  cases.push_back(
      Named("cross_entropy_pixels", Make("cross_entropy", {{{2, 5, 3}}, Ints32({2, 3}, 0, 5)})));
  cases.push_back(Make("nll_loss", {{{4, 5}}, Ints32({4}, 0, 5)}));
  cases.push_back(Make("mse_loss", {{{3, 4}}, {{3, 4}}}));
  cases.push_back(Make("binary_cross_entropy_with_logits", {{{3, 4}, -5, 5}, {{3, 4}, 0, 1}}));
}

void AddRandom(std::vector<Case>& cases) {
  for (const char* op : {"random_bits", "random_uniform", "random_normal"}) {
    cases.push_back(Flat(Make(op, {{{2}, 0, 4e9, kUInt32}}, {{"shape", Ints{3, 5}}})));
  }
}

double Fraction(double value) { return value - std::floor(value); }

struct Built {
  graph::Graph graph;
  std::vector<const Node*> inputs;
};

absl::StatusOr<Built> BuildCase(const Case& test_case, DType float_dtype) {
  Built built;
  built.graph.context = std::make_shared<ir::Context>();
  ops::Builder builder(*built.graph.context);
  for (const OperandSpec& spec : test_case.operands) {
    const DType dtype = spec.dtype == DType::kInvalid ? float_dtype : spec.dtype;
    const auto index = static_cast<int64_t>(built.inputs.size());
    built.inputs.push_back(builder.Input(index, dtype, spec.shape));
    built.graph.inputs.push_back({dtype, spec.shape});
  }
  const auto result = ops::BuildOp(builder, *ops::FindOp(test_case.op), built.inputs,
                                   test_case.attributes, test_case.declared);
  if (!result.ok()) return result.status();
  built.graph.outputs = {*result};
  return built;
}

}  // namespace

const std::vector<Case>& Cases() {
  static const std::vector<Case>& cases = *[] {
    auto* all = new std::vector<Case>;
    AddElementwise(*all);
    AddIntegers(*all);
    AddCasts(*all);
    AddReductions(*all);
    AddMovement(*all);
    AddIndexed(*all);
    AddContractions(*all);
    AddNetworks(*all);
    AddRandom(*all);
    AddNeural(*all);
    AddNeuralLosses(*all);
    AddFunctions(*all);
    AddArrays(*all);
    return all;
  }();
  return cases;
}

ops::HostTensor OperandValue(const OperandSpec& spec, DType float_dtype, int position) {
  const DType dtype = spec.dtype == DType::kInvalid ? float_dtype : spec.dtype;
  std::vector<double> values(ir::NumElements(spec.shape));
  for (size_t i = 0; i < values.size(); ++i) {
    const double place =
        Fraction(static_cast<double>(i + 1) * std::numbers::phi + position / std::numbers::e);
    values[i] = spec.low + (spec.high - spec.low) * place;
    if (!ir::IsFloat(dtype)) values[i] = std::floor(values[i]);
  }
  return ops::HostTensor::Of(dtype, spec.shape, values);
}

std::vector<ops::HostTensor> OperandValues(const Case& test_case, DType float_dtype) {
  std::vector<ops::HostTensor> values;
  for (const OperandSpec& spec : test_case.operands) {
    values.push_back(OperandValue(spec, float_dtype, static_cast<int>(values.size())));
  }
  return values;
}

absl::StatusOr<graph::Graph> MakeGraph(const Case& test_case, DType float_dtype) {
  auto built = BuildCase(test_case, float_dtype);
  if (!built.ok()) return built.status();
  return std::move(built->graph);
}

absl::StatusOr<graph::Graph> MakeGradientGraph(const Case& test_case, DType float_dtype,
                                               bool differentiate) {
  auto built = BuildCase(test_case, float_dtype);
  if (!built.ok()) return built.status();
  graph::Graph& graph = built->graph;
  ops::Builder builder(*graph.context);
  const Node* y = graph.outputs[0];
  const auto index = static_cast<int64_t>(graph.inputs.size());
  graph.inputs.push_back({y->dtype(), y->shape()});
  const Node* upstream = builder.Input(index, y->dtype(), y->shape());
  for (const Node* x : built->inputs) {
    if (!ir::IsFloat(x->dtype())) continue;
    const auto gradient =
        ops::BuildOp(builder, *ops::FindOp("gradient"), {y, x, upstream}, {}, DType::kInvalid);
    if (!gradient.ok()) return gradient.status();
    graph.outputs.push_back(*gradient);
  }
  if (!differentiate) return std::move(graph);
  return autodiff::Differentiate(graph);
}

}  // namespace kiln::numerics
