#include "compiler/shard/rules.h"

#include "compiler/ops/builder.h"
#include "gtest/gtest.h"

namespace kiln::shard {
namespace {

using ir::Node;

const Mesh kMesh = {{{"a", 2}, {"b", 2}, {"c", 3}}};

struct Case {
  const Node* movement;
  Spec operand;
  Spec result;  // of Push
  Spec pulled;  // of Pull for that result
};

TEST(RulesTest, Movement) {
  ir::Context context;
  ops::Builder b(context);
  const auto input = [&](ir::Shape shape) { return b.Input(0, ir::DType::kFloat32, shape); };
  const Node* matrix = input({12, 6});
  const std::vector<Case> cases = {
      // The outermost factor of merged dimensions, and of split ones.
      {b.Reshape(matrix, {72}), {{0}, {}}, {{0}}, {{0}, {}}},
      {b.Reshape(matrix, {72}), {{}, {0}}, {{}}, {{}, {}}},
      {b.Reshape(matrix, {4, 3, 6}), {{0, 1}, {}}, {{0, 1}, {}, {}}, {{0, 1}, {}}},
      {b.Reshape(matrix, {2, 6, 6}), {{0, 1}, {2}}, {{0}, {1}, {2}}, {{0, 1}, {2}}},
      {b.Reshape(matrix, {3, 4, 6}), {{0}, {}}, {{}, {}, {}}, {{}, {}}},
      {b.Reshape(matrix, {3, 4, 6}), {{2, 0}, {}}, {{2}, {0}, {}}, {{2, 0}, {}}},
      {b.Reshape(matrix, {1, 12, 1, 6}), {{0}, {2}}, {{}, {0}, {}, {2}}, {{0}, {2}}},
      {b.Reshape(input({2, 6}), {12}), {{0}, {2}}, {{0, 2}}, {{0}, {2}}},
      {b.Permute(matrix, {1, 0}), {{0}, {2}}, {{2}, {0}}, {{0}, {2}}},
      {b.Expand(input({12, 1}), {12, 6}), {{0}, {}}, {{0}, {}}, {{0}, {}}},
      {b.Pad(matrix, {0, 0, 1, 1}), {{0}, {2}}, {{0}, {}}, {{0}, {}}},
      {b.Shrink(matrix, {0, 6, 0, 6}), {{0}, {2}}, {{}, {2}}, {{}, {2}}},
      {b.Flip(matrix, {0}), {{0}, {2}}, {{}, {2}}, {{}, {2}}},
      {b.Window(matrix, 1, 3, 1, 1), {{0}, {2}}, {{0}, {}, {}}, {{0}, {}}},
      {b.Unwindow(input({12, 4, 3}), 1, 6, 1, 1), {{0}, {1}, {2}}, {{0}, {}, {}}, {{0}, {}, {}}},
  };
  for (const Case& c : cases) {
    const Spec result = Push(kMesh, c.movement, c.operand);
    EXPECT_EQ(result, c.result) << ir::Name(c.movement->op()) << " of "
                                << graph::Print(kMesh, c.operand) << " is "
                                << graph::Print(kMesh, result);
    EXPECT_EQ(Pull(kMesh, c.movement, result), c.pulled)
        << ir::Name(c.movement->op()) << " to " << graph::Print(kMesh, result);
  }
}

// The repeated dimension is whole; the rest is split like the result.
TEST(RulesTest, ExpandIsWantedSplit) {
  ir::Context context;
  ops::Builder b(context);
  const Node* expand = b.Expand(b.Input(0, ir::DType::kFloat32, {12, 1}), {12, 6});
  EXPECT_EQ(Pull(kMesh, expand, {{0}, {2}}), (Spec{{0}, {}}));
}

}  // namespace
}  // namespace kiln::shard
