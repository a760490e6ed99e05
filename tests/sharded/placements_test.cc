// Every primitive, and every case of the table of numerics, with all operand layouts on several
// meshes, on simulated devices. KILN_SHARDED_PLACEMENTS is the maximum number of layouts for each
// case and mesh; increase it for a long search.
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/ops/op_def.h"
#include "compiler/shard/rules.h"
#include "gtest/gtest.h"
#include "tests/environment.h"
#include "tests/numerics/cases/cases.h"
#include "tests/sharded/run_sharded.h"

namespace kiln::sharded {
namespace {

using graph::Mesh;
using graph::Spec;
using numerics::Case;
using numerics::OperandSpec;
using ops::HostTensor;
using Ints = std::vector<int64_t>;

const std::vector<Mesh>& Meshes() {
  static const auto& meshes = *new std::vector<Mesh>{
      {{{"x", 2}}}, {{{"x", 3}}}, {{{"x", 2}, {"y", 2}}}, {{{"one", 1}, {"x", 2}}}, {{{"x", 5}}}};
  return meshes;
}

size_t PlacementsMax(int64_t otherwise) {
  return static_cast<size_t>(NumberFromEnvironment("KILN_SHARDED_PLACEMENTS", otherwise));
}

Case Make(std::string op, std::vector<OperandSpec> operands, ops::Attributes attributes = {}) {
  Case test_case;
  test_case.name = op;
  test_case.op = std::move(op);
  test_case.operands = std::move(operands);
  test_case.attributes = std::move(attributes);
  return test_case;
}

OperandSpec Index(ir::Shape shape, double low, double high) {
  return {std::move(shape), low, high, ir::DType::kInt32};
}

// Sizes that two and three devices divide evenly, four devices some of them, and five none.
std::vector<Case> PrimitiveCases() {
  std::vector<Case> cases;
  const OperandSpec positive{{12, 6}, 0.25, 2};
  for (const ops::OpDef& op : ops::AllOps()) {
    // Every op over floats; ops with other dtypes are below.
    if (op.operand_class == ops::DTypeClass::kInteger ||
        op.operand_class == ops::DTypeClass::kIntegerOrBool || op.name == "cast" ||
        op.name == "bitcast") {
      continue;
    }
    if (op.kind == ops::Kind::kUnary) cases.push_back(Make(std::string(op.name), {positive}));
    if (op.kind == ops::Kind::kBinary) {
      cases.push_back(Make(std::string(op.name), {positive, {{12, 6}, 0.5, 3}}));
      cases.push_back(Make(std::string(op.name), {positive, {{1, 6}, 0.5, 3}}));
    }
  }
  for (const char* name : {"and", "or", "xor", "shl", "shr"}) {
    cases.push_back(Make(name, {Index({12, 6}, 0, 7), Index({12, 6}, 0, 7)}));
  }
  cases.push_back(Make("idiv", {Index({12, 6}, 0, 9), Index({12, 6}, 1, 5)}));
  cases.push_back(Make("not", {Index({12, 6}, 0, 7)}));
  Case cast = Make("cast", {positive});
  cast.declared = ir::DType::kInt16;
  cases.push_back(cast);
  Case bitcast = Make("bitcast", {positive});
  bitcast.declared = ir::DType::kInt32;
  cases.push_back(bitcast);
  cases.push_back(Make("where", {{{12, 6}, 0, 2, ir::DType::kBool}, {{12, 6}}, {{12, 6}}}));
  for (const char* name : {"sum", "prod", "max"}) {
    for (const Ints& axes : {Ints{0}, Ints{1}, Ints{0, 1}, Ints{0, 2}}) {
      const bool is_deep = axes.back() == 2;
      cases.push_back(Make(name, {{is_deep ? ir::Shape{6, 12, 2} : ir::Shape{12, 6}, 0.5, 1.25}},
                           {{"axes", axes}, {"keepdims", true}}));
    }
    cases.push_back(Make(name, {Index({12, 6}, 0, 3)}, {{"axes", Ints{0}}}));
  }
  for (const Ints& shape : {Ints{72}, Ints{3, 4, 6}, Ints{4, 3, 6}, Ints{12, 3, 2}, Ints{2, 36},
                            Ints{1, 12, 1, 6}, Ints{6, 12}}) {
    cases.push_back(Make("reshape", {{{12, 6}}}, {{"shape", shape}}));
  }
  cases.push_back(Make("permute", {{{4, 6, 2}}}, {{"axes", Ints{2, 0, 1}}}));
  cases.push_back(Make("expand", {{{12, 1}}}, {{"shape", Ints{12, 6}}}));
  cases.push_back(Make("pad", {{{12, 6}}}, {{"padding", Ints{0, 0, 2, 4}}}));
  cases.push_back(Make("shrink", {{{12, 6}}}, {{"bounds", Ints{0, 12, 2, 4}}}));
  cases.push_back(Make("flip", {{{12, 6}}}, {{"axes", Ints{1}}}));
  for (const char* name : {"window", "unwindow"}) {
    const bool is_window = name[0] == 'w';
    ops::Attributes attributes = {
        {"axis", int64_t{1}}, {"stride", int64_t{2}}, {"dilation", int64_t{2}}};
    attributes[is_window ? "size" : "length"] = int64_t{is_window ? 2 : 14};
    cases.push_back(Make(name, {{is_window ? ir::Shape{6, 14} : ir::Shape{6, 6, 2}}}, attributes));
  }
  for (const int64_t axis : {0, 1}) {
    const ir::Shape places = axis == 0 ? ir::Shape{4, 6} : ir::Shape{12, 4};
    const double size = axis == 0 ? 12 : 6;
    cases.push_back(
        Make("gather_elements", {{{12, 6}}, Index(places, -1, size + 1)}, {{"axis", axis}}));
    for (const char* mode : {"set", "add", "mul", "max", "min"}) {
      cases.push_back(Make("scatter_elements", {{{12, 6}}, Index(places, -1, size + 1), {places}},
                           {{"axis", axis}, {"mode", std::string(mode)}}));
    }
  }
  cases.push_back(Make("gather_elements", {{{12, 6}}, Index({4, 1}, -1, 13)}));
  cases.push_back(Make("contiguous", {{{12, 6}}}));
  cases.push_back(Make("detach", {{{12, 6}}}));
  cases.push_back(Make("shard", {{{12, 6}}}, {{"spec", Ints{1, 0, 0}}}));
  cases.push_back(Make("with_derivative", {{{12, 6}}, {{12, 6}}, {{12, 6}}}));
  Case iota = Make("iota", {}, {{"shape", Ints{12, 6}}, {"axis", int64_t{0}}});
  for (const ir::DType dtype : {ir::DType::kInt64, ir::DType::kUInt8, ir::DType::kFloat16}) {
    iota.declared = dtype;
    cases.push_back(iota);
  }
  Case constant = Make("const", {}, {{"shape", Ints{12, 6}}, {"value", 1.5}});
  constant.declared = ir::DType::kFloat32;
  cases.push_back(constant);
  cases.push_back(Make("matmul", {{{12, 6}}, {{6, 4}}}));
  cases.push_back(Make("matmul", {{{2, 12, 6}}, {{2, 6, 4}}}));
  cases.push_back(Make("conv2d", {{{4, 2, 5, 5}}, {{6, 2, 3, 3}}}));
  cases.push_back(Make("softmax", {{{12, 6}}}));
  cases.push_back(Make("layer_norm", {{{12, 6}}}));
  return cases;
}

// Tries all layouts of operands and results, or `placements_max` of them at random. Returns true if
// it tried all.
template <typename CheckFn>
bool ForEachPlacement(const graph::Graph& graph, const Mesh& mesh, size_t placements_max,
                      CheckFn check) {
  std::vector<std::vector<Spec>> choices;
  size_t count = 1;
  for (const graph::Input& input : graph.inputs) choices.push_back(AllSpecs(mesh, input.shape));
  for (const ir::Node* output : graph.outputs) choices.push_back(AllSpecs(mesh, output->shape()));
  for (const auto& specs : choices) count *= specs.size();
  std::mt19937_64 random(count);
  for (size_t i = 0; i < std::min(count, placements_max); ++i) {
    graph::Graph placed = graph;
    auto sharding = std::make_shared<graph::Sharding>();
    sharding->mesh = mesh;
    size_t number = count <= placements_max ? i : random() % count;
    for (const auto& specs : choices) {
      auto& list =
          sharding->inputs.size() < graph.inputs.size() ? sharding->inputs : sharding->outputs;
      list.push_back(specs[number % specs.size()]);
      number /= specs.size();
    }
    placed.sharding = std::move(sharding);
    // The table's hints are for no specific mesh.
    if (graph::Verify(placed).ok()) check(placed, i);
  }
  return count <= placements_max;
}

TEST(Placements, EveryPrimitive) {
  std::vector<bool> seen(ir::kNumOps, false);
  size_t count = 0;
  size_t incomplete = 0;
  for (const Case& test_case : PrimitiveCases()) {
    const auto graph = numerics::MakeGraph(test_case, ir::DType::kFloat32);
    ASSERT_TRUE(graph.ok()) << test_case.name << " " << graph.status();
    const auto inputs = numerics::OperandValues(test_case, ir::DType::kFloat32);
    if (const ops::OpDef* row = ops::FindOp(test_case.op); row->kind != ops::Kind::kComposite) {
      seen[static_cast<int>(row->op)] = true;
    }
    for (const Mesh& mesh : Meshes()) {
      incomplete += !ForEachPlacement(
          *graph, mesh, PlacementsMax(100), [&](const graph::Graph& placed, size_t i) {
            ++count;
            ASSERT_EQ(SimulatedDisagreement(placed, inputs, {1e-5}, i), "")
                << test_case.name << "\n"
                << graph::Print(placed);
          });
      if (testing::Test::HasFailure()) return;
    }
  }
  std::cout << count << " placements; some of many for " << incomplete
            << " pairs of a case and a mesh\n";
  for (int i = 0; i < ir::kNumOps; ++i) {
    const auto op = static_cast<ir::Op>(i);
    const bool is_checked = shard::RuleOf(op) == shard::RuleKind::kNone || op == ir::Op::kInput;
    EXPECT_TRUE(seen[i] || is_checked) << ir::Name(op);
  }
}

// Small tensors, each split along another dimension: if their sum were padded in all of them, it
// would have 8^20 elements.
TEST(Placements, PaddingDoesNotMultiply) {
  constexpr size_t kRank = 20;
  const Mesh mesh = {{{"x", 8}}};
  const ir::Shape shape(kRank, 1);
  const std::string type = absl::StrCat("float32[", absl::StrJoin(shape, ","), "]");
  const auto encoded = [](size_t split) {
    Spec spec(kRank);
    if (split < kRank) spec[split] = {0};
    return absl::StrJoin(graph::Encode(spec), ",");
  };
  std::string text = "mesh x=8\n";
  for (size_t i = 0; i < kRank; ++i)
    absl::StrAppend(&text, "input ", i, " ", type, " spec=[", encoded(i), "]\n");
  for (size_t i = 0; i < kRank; ++i)
    absl::StrAppend(&text, "%", i, " = input ", type, " index=", i, "\n");
  for (size_t i = 1; i < kRank; ++i) {
    absl::StrAppend(&text, "%", kRank + i - 1, " = add ", type, " %", i == 1 ? 0 : kRank + i - 2,
                    " %", i, "\n");
  }
  absl::StrAppend(&text, "%", 2 * kRank - 1, " = shard ", type, " %", 2 * kRank - 2, " spec=[",
                  encoded(3), "]\noutput %", 2 * kRank - 1, " spec=[", encoded(7), "]\n");
  const auto graph = graph::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status() << text;
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < kRank; ++i) {
    inputs.push_back(HostTensor::Zeros(ir::DType::kFloat32, shape));
    inputs.back().SetFloat(0, static_cast<double>(i));
  }
  EXPECT_EQ(SimulatedDisagreement(*graph, inputs, {1e-5}, 1), "");
  EXPECT_EQ(CompiledDisagreement(*graph, inputs, {1e-5}, 1), "");
}

TEST(Placements, EveryCaseAndItsGradients) {
  size_t number = 0;
  size_t count = 0;
  for (const Case& test_case : numerics::Cases()) {
    const auto graph = numerics::MakeGraph(test_case, ir::DType::kFloat32);
    ASSERT_TRUE(graph.ok()) << test_case.name << " " << graph.status();
    const auto inputs = numerics::OperandValues(test_case, ir::DType::kFloat32);
    const Mesh& mesh = Meshes()[number++ % 3];
    ForEachPlacement(*graph, mesh, PlacementsMax(3), [&](const graph::Graph& placed, size_t i) {
      ++count;
      EXPECT_EQ(SimulatedDisagreement(placed, inputs, {1e-4}, i), "") << test_case.name;
    });
  }
  std::cout << count << " placements\n";
}

}  // namespace
}  // namespace kiln::sharded
