#include "compiler/ops/rules/shape_cases.h"

namespace kiln::ops {
namespace {

using ir::DType;
using Ints = std::vector<int64_t>;
using Cases = std::vector<ConstraintCase>;

constexpr DType kBool = DType::kBool;
constexpr DType kInt = DType::kInt64;
constexpr DType kWord = DType::kUInt32;
constexpr DType kFloat = DType::kFloat32;
constexpr DType kDouble = DType::kFloat64;
// Only stores numbers; takes no part in arithmetic.
constexpr DType kStored = DType::kFloat8E5M2;

Attributes Axis(int64_t axis) { return {{"axis", axis}}; }
Attributes Of(const char* name, const char* value) { return {{name, std::string(value)}}; }

void AddAxes(Cases& cases) {
  cases.insert(cases.end(),
               {{"softmax", {{2, 3}}, {kFloat}, Axis(-2), true},
                {"softmax", {{2, 3}}, {kFloat}, Axis(2), false},
                {"softmax", {{}}, {kFloat}, {}, false},
                {"normalize", {{2, 3}}, {kFloat}, Axis(-3), false},
                {"cumulative_sum", {{2}}, {kInt}, Axis(1), false},
                {"sort", {{}}, {kFloat}, {}, true},
                {"sort", {{}}, {kFloat}, Axis(1), false},
                {"argsort", {{2, 3}}, {kInt}, Axis(2), false},
                {"argmax", {{2, 3}}, {kFloat}, {{"axes", Ints{1}}}, true},
                {"argmax", {{2, 3}}, {kFloat}, {{"axes", Ints{0, 1}}}, false},
                {"argmin", {{2, 3}}, {kFloat}, {{"axes", Ints{0, 1}}}, false},
                {"iota", {}, {}, {{"shape", Ints{2, 3}}, {"axis", I(-1)}}, true, kInt},
                {"iota", {}, {}, {{"shape", Ints{2, 3}}, {"axis", I(2)}}, false, kInt},
                {"iota", {}, {}, {{"shape", Ints{2, 3}}}, false, kBool},
                {"send", {{2, 3}}, {kFloat}, {{"source", I(0)}, {"target", I(1)}}, true},
                {"send", {{2, 3}}, {kFloat}, {{"source", I(-1)}, {"target", I(1)}}, false},
                {"send", {{2, 3}}, {kFloat}, {{"source", I(0)}, {"target", I(-1)}}, false},
                {"shard", {{2, 3}}, {kBool}, {{"spec", Ints{2, 0, 1, 0}}}, true},
                {"shard", {{2, 3}}, {kFloat}, {{"spec", Ints{0}}}, false},
                {"shard", {{2, 3}}, {kFloat}, {{"spec", Ints{0, 0, 0}}}, false},
                {"shard", {{2, 3}}, {kFloat}, {{"spec", Ints{0, 2, 0}}}, false},
                {"shard", {{2, 3}}, {kFloat}, {{"spec", Ints{1, 0, 1, 0}}}, false},
                {"shard", {{2, 3}}, {kFloat}, {{"spec", Ints{0, 1, -1}}}, false},
                {"roll", {{2, 3}}, {kBool}, {{"shifts", Ints{1, 7}}, {"axes", Ints{0, -1}}}, true},
                {"roll", {{2, 3}}, {kBool}, {{"shifts", Ints{1}}, {"axes", Ints{0, 1}}}, false},
                {"roll", {{2, 3}}, {kBool}, {{"shifts", Ints{1}}, {"axes", Ints{2}}}, false},
                {"dropout", {{2, 3}, {2}}, {kFloat, kWord}, {{"shared_axes", Ints{-1}}}, true},
                {"dropout", {{2, 3}, {2}}, {kFloat, kWord}, {{"shared_axes", Ints{2}}}, false}});
}

void AddMatrices(Cases& cases) {
  const Attributes shape = {{"shape", Ints{4}}};
  cases.insert(cases.end(), {{"cross", {{4, 3}, {3}}, {kFloat, kInt}, {}, true},
                             {"cross", {{3, 4}, {4}}, {kFloat, kInt}, {}, false},
                             {"cross", {{3}, {3}}, {kFloat, kInt}, Axis(1), false},
                             {"tril", {{2, 3}}, {kBool}, {}, true},
                             {"tril", {{3}}, {kBool}, {}, false},
                             {"triu", {{}}, {kBool}, {}, false},
                             {"cholesky", {{2, 3, 3}}, {kFloat}, {}, true},
                             {"cholesky", {{2, 3}}, {kFloat}, {}, false},
                             {"inv", {{3}}, {kFloat}, {}, false},
                             {"inv", {{513, 513}}, {kFloat}, {}, false},
                             {"det", {{512, 512}}, {kFloat}, {}, true},
                             {"det", {{513, 513}}, {kFloat}, {}, false},
                             {"solve", {{513, 513}, {513}}, {kFloat, kFloat}, {}, false},
                             {"qr", {{9, 600}}, {kFloat}, Of("part", "r"), true},
                             {"qr", {{600, 600}}, {kFloat}, Of("part", "r"), false},
                             {"qr", {{2, 2}}, {kFloat}, Of("part", "l"), false},
                             {"searchsorted", {{2, 3}, {4}}, {kFloat, kInt}, {}, true},
                             {"searchsorted", {{2, 3}, {1, 4}}, {kFloat, kInt}, {}, false},
                             {"searchsorted", {{2}, {2}}, {kInt, DType::kUInt64}, {}, false},
                             {"random_bits", {{2}}, {kWord}, shape, true},
                             {"random_uniform", {{3}}, {kWord}, shape, false},
                             {"random_normal", {{2}}, {kInt}, shape, false},
                             {"dropout", {{2, 3}, {1, 2}}, {kFloat, kWord}, {}, false}});
}

void AddBorders(Cases& cases) {
  const auto padding = [](int64_t before, int64_t after) {
    return Attributes{{"padding", Ints{before, after}}};
  };
  cases.insert(cases.end(), {{"pad_reflect", {{3}}, {kInt}, padding(2, 2), true},
                             {"pad_reflect", {{3}}, {kInt}, padding(3, 0), false},
                             {"pad_reflect", {{0}}, {kInt}, padding(0, 0), true},
                             {"pad_circular", {{3}}, {kInt}, padding(3, 3), true},
                             {"pad_circular", {{3}}, {kInt}, padding(0, 4), false},
                             {"pad_replicate", {{3}}, {kInt}, padding(9, 9), true},
                             {"pad_replicate", {{0}}, {kInt}, padding(1, 0), false}});
}

void AddLayers(Cases& cases) {
  const Attributes groups = {{"groups", I(2)}};
  const Attributes two = {{"axes", I(2)}};
  cases.insert(
      cases.end(),
      {{"layer_norm", {{2, 3}, {3}, {3}}, {kFloat, kFloat, kFloat}, {}, true},
       {"layer_norm", {{4, 2, 3}, {2, 3}}, {kFloat, kFloat}, two, true},
       {"layer_norm", {{4, 2, 3}, {3}}, {kFloat, kFloat}, two, false},
       {"layer_norm", {{3}}, {kFloat}, two, false},
       {"layer_norm", {{3}}, {kFloat}, {{"axes", I(0)}}, false},
       {"rms_norm", {{2, 3}, {2}}, {kFloat, kFloat}, {}, false},
       {"batch_norm", {{2, 3}, {3}, {3}}, {kFloat, kFloat, kFloat}, {}, true},
       {"batch_norm", {{2, 3}, {3}, {2}}, {kFloat, kFloat, kFloat}, {}, false},
       {"batch_norm", {{3}, {3}, {3}}, {kFloat, kFloat, kFloat}, {}, false},
       {"group_norm", {{2, 4, 5}, {4}}, {kFloat, kFloat}, groups, true},
       {"group_norm", {{2, 3, 5}}, {kFloat}, groups, false},
       {"group_norm", {{2, 4, 5}, {2}}, {kFloat, kFloat}, groups, false},
       {"group_norm", {{2, 4}}, {kFloat}, {{"groups", I(0)}}, false},
       {"instance_norm", {{2, 3, 4}}, {kFloat}, {}, true},
       {"instance_norm", {{2, 3}}, {kFloat}, {}, false},
       {"local_response_norm", {{2, 3}}, {kFloat}, {{"size", I(1000)}}, true},
       {"local_response_norm", {{2, 3}}, {kFloat}, {{"size", I(0)}}, false},
       {"local_response_norm", {{3}}, {kFloat}, {{"size", I(1)}}, false},
       {"prelu", {{2, 3}, {3}}, {kFloat, kFloat}, {}, true},
       {"prelu", {{2, 3}, {}}, {kFloat, kFloat}, {}, true},
       {"prelu", {{2, 3}, {2}}, {kFloat, kFloat}, {}, false},
       {"prelu", {{2, 1}, {1, 1}}, {kFloat, kFloat}, {}, false},
       {"hardtanh", {{2}}, {kFloat}, {{"min", 0.0}, {"max", 0.5}}, true},
       {"hardtanh", {{2}}, {kFloat}, {{"min", 1.0}}, false},
       {"rotary_embedding", {{2, 5, 4}, {5, 2}, {5, 2}}, {kFloat, kFloat, kFloat}, {}, true},
       {"rotary_embedding", {{2, 5, 4}, {5, 1}, {5, 1}}, {kFloat, kFloat, kFloat}, {}, true},
       {"rotary_embedding", {{2, 5, 4}, {5, 3}, {5, 3}}, {kFloat, kFloat, kFloat}, {}, false},
       {"rotary_embedding", {{2, 5, 4}, {4, 2}, {4, 2}}, {kFloat, kFloat, kFloat}, {}, false},
       {"rotary_embedding", {{2, 5, 4}, {5, 2}, {5, 1}}, {kFloat, kFloat, kFloat}, {}, false},
       {"scaled_dot_product_attention",
        {{2, 4}, {3, 4}, {3, 4}, {2, 3}},
        {kFloat, kFloat, kFloat, kBool},
        {},
        true},
       {"scaled_dot_product_attention",
        {{2, 4}, {3, 4}, {3, 4}, {2, 3}},
        {kFloat, kFloat, kFloat, kInt},
        {},
        false}});
}

void AddLosses(Cases& cases) {
  const std::vector<DType> three = {kFloat, kFloat, kFloat};
  cases.insert(cases.end(),
               {{"cross_entropy", {{4, 3}, {4}}, {kFloat, kInt}, {}, true},
                {"cross_entropy", {{4, 3}, {4, 3}}, {kFloat, kDouble}, {}, true},
                {"cross_entropy", {{4, 3}, {4, 3}}, {kFloat, kInt}, {}, false},
                {"cross_entropy", {{4, 3}, {4}}, {kFloat, kFloat}, {}, false},
                {"nll_loss", {{4, 3}, {4}}, {kFloat, kInt}, {}, true},
                {"nll_loss", {{4, 3}, {4, 3}}, {kFloat, kInt}, {}, false},
                {"cosine_embedding_loss", {{4, 3}, {4, 3}, {4}}, three, {}, true},
                {"cosine_embedding_loss", {{4, 3}, {4, 3}, {4, 3}}, three, {}, false},
                {"triplet_margin_loss", {{4, 3}, {4, 3}, {4, 3}}, three, {}, true},
                {"triplet_margin_loss", {{4, 3}, {4, 3}, {4}}, three, {}, false},
                {"mse_loss", {{4}, {4}}, {kFloat, kFloat}, Of("reduction", "sum"), true},
                {"mse_loss", {{4}, {4}}, {kFloat, kFloat}, Of("reduction", "max"), false}});
}

void AddDTypes(Cases& cases) {
  const std::vector<ir::Shape> places = {{5}, {2}, {2}};
  cases.insert(cases.end(),
               {{"scatter", places, {kFloat, kInt, kFloat}, Of("mode", "add"), true},
                {"scatter", places, {kFloat, kInt, kDouble}, {}, false},
                {"scatter", places, {kFloat, kInt, kFloat}, Of("mode", "sub"), false},
                {"scatter", places, {kBool, kInt, kBool}, {}, true},
                {"scatter", places, {kBool, kInt, kBool}, Of("mode", "max"), false},
                {"scatter_add", places, {kFloat, kInt, kInt}, {}, false},
                {"scatter_elements", places, {kFloat, kInt, kDouble}, {}, false},
                {"put_along_axis", places, {kBool, kInt, kFloat}, Of("mode", "mul"), false},
                {"put_along_axis", places, {kFloat, kInt, kBool}, Of("mode", "mul"), true},
                {"index_put", {{5}, {2}, {2}}, {kBool, kBool, kInt}, Of("mode", "min"), false},
                {"bitcast", {{2}}, {kFloat}, {}, true, kWord},
                {"bitcast", {{2}}, {kFloat}, {}, false, kInt},
                {"bitcast", {{2}}, {kBool}, {}, false, kStored},
                {"nextafter", {{2}, {2}}, {kFloat, kInt}, {}, true},
                {"nextafter", {{2}, {2}}, {kInt, kInt}, {}, false},
                {"gradient", {{2}, {3}, {2}}, {kFloat, kDouble, kFloat}, {}, true},
                {"gradient", {{2}, {3}, {2}}, {kFloat, kDouble, kDouble}, {}, false}});
}

void AddAttributes(Cases& cases) {
  cases.insert(cases.end(),
               {{"gelu", {{2}}, {kFloat}, Of("approximate", "tanh"), true},
                {"gelu", {{2}}, {kFloat}, Of("approximate", "quick"), false},
                {"softplus", {{2}}, {kFloat}, {{"beta", 0.5}}, true},
                {"softplus", {{2}}, {kFloat}, {{"beta", 0.0}}, false},
                {"softshrink", {{2}}, {kFloat}, {{"lambd", 0.0}}, true},
                {"softshrink", {{2}}, {kFloat}, {{"lambd", -0.5}}, false},
                {"celu", {{2}}, {kFloat}, {{"alpha", -1.0}}, true},
                {"celu", {{2}}, {kFloat}, {{"alpha", 0.0}}, false},
                {"dropout", {{2}, {2}}, {kFloat, kWord}, {{"p", I(1)}}, true},
                {"dropout", {{2}, {2}}, {kFloat, kWord}, {{"p", 1.5}}, false},
                {"interpolate", {{4}}, {kFloat}, {{"size", Ints{2}}, {"scale", 0.5}}, true},
                {"interpolate", {{4}}, {kFloat}, {{"size", Ints{2}}, {"scale", -1.0}}, false}});
}

}  // namespace

// Returns every constraint with a case where it holds and one where it does not, if possible one
// step beyond its bound.
std::vector<ConstraintCase> ConstraintCases() {
  Cases cases;
  AddAxes(cases);
  AddMatrices(cases);
  AddBorders(cases);
  AddLayers(cases);
  AddLosses(cases);
  AddDTypes(cases);
  AddAttributes(cases);
  return cases;
}

}  // namespace kiln::ops
