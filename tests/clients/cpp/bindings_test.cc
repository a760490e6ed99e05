// The C++ client's generated bindings against the table of ops: what they send is what the daemon
// takes, with the table's defaults, and what they say of dtypes is what the daemon finds.
#include <set>
#include <string>

#include "compiler/graph/wire/wire.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/bindings/opgen_cpp.h"
#include "compiler/ops/rules/shape_cases.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/graph.h"
#include "tests/clients/cpp/binding_calls.h"
#include "tests/clients/cpp/binding_cases.h"

namespace kiln::bindings {
namespace {

using numerics::Case;

DType ClientDType(ir::DType dtype) { return static_cast<DType>(dtype); }

// The attributes as the client has them.
Attributes ClientAttributes(const ops::Attributes& attributes) {
  Attributes converted;
  for (const auto& attribute : attributes) {
    std::visit([&](const auto& value) { converted[attribute.first] = value; }, attribute.second);
  }
  return converted;
}

struct Built {
  DType dtype;  // as the client knows it
  absl::StatusOr<graph::Graph> graph;
};

// A graph of one op, checked and expanded as by the daemon.
template <typename Make>
Built Build(const Case& test_case, ir::DType float_dtype, const Make& make) {
  GraphBuilder builder;
  std::vector<Value> inputs;
  for (const numerics::OperandSpec& spec : test_case.operands) {
    const ir::DType dtype = spec.dtype == ir::DType::kInvalid ? float_dtype : spec.dtype;
    inputs.push_back(builder.Input(ClientDType(dtype), Shape(spec.shape)));
  }
  const Value result = make(builder, inputs);
  builder.Output(result);
  const absl::StatusOr<Graph> graph = builder.Build();
  if (!graph.ok()) return {result.dtype(), graph.status()};
  return {result.dtype(), graph::FromProto(graph->proto(), {})};
}

class BindingTest : public testing::TestWithParam<size_t> {
 protected:
  void ExpectEqualsByName(const Case& test_case, ir::DType float_dtype) {
    const Call& call = Calls()[GetParam()];
    ASSERT_EQ(call.name, test_case.name);
    const Built by_binding = Build(test_case, float_dtype, call.make);
    const Built by_name = Build(test_case, float_dtype, [&](GraphBuilder& b, const auto& x) {
      return b.AddNode(test_case.op, x, ClientAttributes(test_case.attributes),
                       ClientDType(test_case.declared));
    });
    ASSERT_TRUE(by_name.graph.ok()) << by_name.graph.status();
    ASSERT_TRUE(by_binding.graph.ok()) << by_binding.graph.status();
    EXPECT_EQ(graph::Print(*by_binding.graph), graph::Print(*by_name.graph));
    EXPECT_EQ(by_binding.dtype, ClientDType(by_binding.graph->outputs[0]->dtype()));
  }
};

TEST_P(BindingTest, MakesWhatTheOpByNameMakes) {
  const Case test_case = Cases()[GetParam()];
  for (const ir::DType dtype : {ir::DType::kFloat32, ir::DType::kFloat16}) {
    ExpectEqualsByName(test_case, dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, BindingTest, testing::Range(size_t{0}, Cases().size()),
                         [](const auto& info) { return Cases()[info.param].name; });

// An op that no case calls, or an optional operand that none gives, would not be tested above.
TEST(Bindings, AreAllCalled) {
  std::set<std::string> called;
  for (const Case& test_case : Cases()) {
    for (size_t i = 0; i <= test_case.operands.size(); ++i) called.insert(StrCat(test_case.op, i));
  }
  for (const ops::OpDef& op : ops::AllOps()) {
    if (!ops::HasCppBinding(op)) continue;
    EXPECT_TRUE(called.count(StrCat(op.name, op.operands.size())) > 0)
        << op.name << " with all its operands needs a case in binding_cases.cc or tests/numerics";
  }
}

TEST(DTypes, FollowTheTablesRules) {
  for (const ops::DTypeCase& one : ops::DTypeCases()) {
    if (!one.result.has_value()) continue;
    GraphBuilder builder;
    std::vector<Value> operands;
    for (const ir::DType dtype : one.operands) {
      operands.push_back(builder.Input(ClientDType(dtype), {}));
    }
    const Value result = builder.AddNode(one.op, operands, {}, ClientDType(one.declared));
    EXPECT_EQ(result.dtype(), ClientDType(*one.result)) << one.op;
  }
}

}  // namespace
}  // namespace kiln::bindings
