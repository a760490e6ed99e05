#include "compiler/codegen/c_source.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/schedule/apply.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using schedule::LoopKind;
using schedule::Space;
using ::testing::HasSubstr;
using ::testing::Not;

// A program under construction: one float input, one float output, one vector register.
struct Builder {
  std::shared_ptr<ir::Context> context = std::make_shared<ir::Context>();
  schedule::LoopProgram program;
  int64_t ranges = 0;

  Builder() {
    program.name = "example";
    program.context = context;
    program.num_arguments = 2;
    program.buffers = {
        {.name = "in0", .dtype = DType::kFloat32, .elements = 640, .read_only = true},
        {.name = "out1", .dtype = DType::kFloat32, .elements = 640},
        {.name = "sum0",
         .dtype = DType::kFloat32,
         .elements = 4,
         .space = Space::kRegister,
         .lanes = 16}};
  }

  const Node* Make(Op op, DType dtype, std::vector<const Node*> operands,
                   ir::Attribute attribute = {}) {
    return context->Get(op, dtype, {}, std::move(operands), std::move(attribute));
  }
  const Node* Range(int64_t extent) {
    return Make(Op::kRange, DType::kInt64, {}, ir::RangeAttr{ranges++, extent});
  }
  const Node* Int(int64_t value) {
    return Make(Op::kConst, DType::kInt64, {}, ir::ConstValue::Int(value));
  }
  const Node* Float(double value) {
    return Make(Op::kConst, DType::kFloat32, {}, ir::ConstValue::Float(value));
  }
  const Node* Binary(Op op, const Node* a, const Node* b) {
    return Make(op, op == Op::kCmpLt ? DType::kBool : a->dtype(), {a, b});
  }
  const Node* Load(int buffer, std::vector<const Node*> operands) {
    return Make(Op::kLoad, DType::kFloat32, std::move(operands), ir::IntAttr{buffer});
  }
  // The text of `value` stored at out1[0].
  std::string Value(const Node* value) {
    program.sections = {
        {.grid = {}, .body = {{schedule::Store{.buffer = 1, .index = Int(0), .value = value}}}}};
    const std::string text = PrintSource(program);
    const size_t begin = text.find("out1[0] = ") + 10;
    return text.substr(begin, text.find(";\n", begin) - begin);
  }
};

TEST(CSourceTest, LoopsAreAnnotated) {
  Builder b;
  const Node* task = b.Range(10);
  const Node* serial = b.Range(4);
  const Node* unrolled = b.Range(2);
  const Node* lane = b.Range(16);
  const Node* row = b.Binary(Op::kAdd, b.Binary(Op::kMul, task, b.Int(64)),
                             b.Binary(Op::kMul, serial, b.Int(16)));
  const Node* index = b.Binary(Op::kAdd, row, lane);
  const Node* sum = b.Binary(Op::kAdd, b.Load(2, {unrolled}), b.Load(0, {index}));
  schedule::Loop vector{.range = lane, .kind = LoopKind::kVector, .body = {}};
  vector.body = {{schedule::Store{.buffer = 2, .index = unrolled, .value = sum}}};
  schedule::Loop unroll{.range = unrolled, .kind = LoopKind::kUnrolled, .body = {}};
  unroll.body = {{std::move(vector)}};
  schedule::Loop loop{.range = serial, .body = {}};
  loop.body = {{std::move(unroll)}};
  b.program.sections = {{.grid = {task}, .body = {{std::move(loop)}}}};
  EXPECT_EQ(PrintSource(b.program), R"(void example(const float in0[640], float out1[640]) {
  float sum0[4][16];  // vector registers
  for (int64_t p0 = 0; p0 < 10; ++p0) {  // parallel
    for (int64_t i0 = 0; i0 < 4; ++i0) {
      for (int64_t u0 = 0; u0 < 2; ++u0) {  // unrolled
        for (int64_t v0 = 0; v0 < 16; ++v0) {  // vector
          sum0[u0] += in0[p0 * 64 + i0 * 16 + v0];
        }
      }
    }
  }
}
)");
}

TEST(CSourceTest, ConditionsAndBranches) {
  Builder b;
  const Node* i = b.Range(40);
  const Node* valid = b.Binary(Op::kCmpLt, i, b.Int(39));
  const Node* value = b.Load(0, {i, valid});
  schedule::Branch branch{.condition = valid, .then_body = {}, .else_body = {}};
  branch.then_body = {
      {schedule::Store{.buffer = 1, .index = i, .value = value, .streaming = true}}};
  branch.else_body = {{schedule::Store{.buffer = 1, .index = i, .value = b.Float(1)}}};
  schedule::Loop loop{.range = i, .extent = b.Binary(Op::kMin, b.Int(40), b.Int(7)), .body = {}};
  loop.body = {{std::move(branch)},
               {schedule::Store{.buffer = 1, .index = i, .value = b.Float(0), .valid = valid}}};
  b.program.sections = {{.grid = {}, .body = {{std::move(loop)}}},
                        {.grid = {b.Range(3)}, .body = {}}};
  EXPECT_EQ(PrintSource(b.program), R"(void example(const float in0[640], float out1[640]) {
  float sum0[4][16];  // vector registers
  // tasks 0 to 0
  for (int64_t i0 = 0; i0 < min(40, 7); ++i0) {
    if (i0 < 39) {
      out1[i0] = i0 < 39 ? in0[i0] : 0.0f;  // past the caches
    } else {
      out1[i0] = 1.0f;
    }
    if (i0 < 39) out1[i0] = 0.0f;
  }
  // tasks 1 to 3
  for (int64_t p0 = 0; p0 < 3; ++p0) {  // parallel
  }
}
)");
}

TEST(CSourceTest, ParenthesesOnlyWhereNeeded) {
  Builder b;
  const Node* x = b.Load(0, {b.Int(1)});
  const Node* y = b.Load(0, {b.Int(2)});
  const Node* z = b.Load(0, {b.Int(3)});
  auto op = [&b](Op op, const Node* left, const Node* right) { return b.Binary(op, left, right); };
  EXPECT_EQ(b.Value(op(Op::kSub, op(Op::kSub, x, y), z)), "in0[1] - in0[2] - in0[3]");
  EXPECT_EQ(b.Value(op(Op::kSub, x, op(Op::kSub, y, z))), "in0[1] - (in0[2] - in0[3])");
  EXPECT_EQ(b.Value(op(Op::kMul, op(Op::kAdd, x, y), z)), "(in0[1] + in0[2]) * in0[3]");
  EXPECT_EQ(b.Value(op(Op::kMul, x, op(Op::kDiv, y, z))), "in0[1] * (in0[2] / in0[3])");
  EXPECT_EQ(b.Value(op(Op::kAdd, op(Op::kMul, x, y), z)), "in0[1] * in0[2] + in0[3]");
  EXPECT_EQ(b.Value(op(Op::kMax, op(Op::kAdd, x, y), z)), "max(in0[1] + in0[2], in0[3])");
  EXPECT_EQ(b.Value(b.Make(Op::kNeg, DType::kFloat32, {op(Op::kMul, x, y)})), "-(in0[1] * in0[2])");
  EXPECT_EQ(b.Value(b.Make(Op::kReciprocal, DType::kFloat32, {op(Op::kAdd, x, y)})),
            "1.0f / (in0[1] + in0[2])");
  EXPECT_EQ(b.Value(b.Make(Op::kWhere, DType::kFloat32, {op(Op::kCmpLt, x, y), y, z})),
            "in0[1] < t0 ? t0 : in0[3]");
  EXPECT_EQ(b.Value(b.Make(Op::kCast, DType::kFloat32, {b.Int(-3)})), "(float)-3");
  EXPECT_EQ(b.Value(b.Float(0.1)), "0.1f");
  EXPECT_EQ(b.Value(b.Float(-INFINITY)), "-INFINITY");
}

TEST(CSourceTest, ReductionsOverLanes) {
  Builder b;
  const Node* lane = b.Range(16);
  const Node* sum = b.Make(Op::kReduce, DType::kFloat32, {b.Load(2, {b.Int(0)}), lane},
                           ir::ReduceAttr{ir::ReduceKind::kSum});
  schedule::Loop loop{.range = lane, .kind = LoopKind::kVector, .body = {}};
  loop.body = {{schedule::Store{.buffer = 1, .index = b.Int(0), .value = sum}}};
  b.program.sections = {{.grid = {}, .body = {{std::move(loop)}}}};
  EXPECT_THAT(PrintSource(b.program), HasSubstr("out1[0] = sum_over_v0(sum0[0]);"));
}

// A chain of squares is exponential as a tree and linear as a graph.
TEST(CSourceTest, SharedValuesAreComputedOnce) {
  Builder b;
  const Node* x = b.Load(0, {b.Int(5)});
  for (int i = 0; i < 60; ++i) x = b.Binary(Op::kMul, x, x);
  b.Value(x);
  const std::string text = PrintSource(b.program);
  EXPECT_LT(text.size(), 5000u);
  EXPECT_THAT(text, HasSubstr("out1[0] = t59 * t59;"));
}

TEST(CSourceTest, PrintsAppliedSchedules) {
  ir::Context context;
  for (const kernel::Kernel& kernel :
       {MatmulKernel(context, 20, 30, 40), SoftmaxKernel(context, 5, 37),
        LayerNormKernel(context, 5, 37), ConvolutionKernel(context, {2, 3, 4, 9, 3, 1})}) {
    auto program = schedule::Apply(kernel, {});
    ASSERT_TRUE(program.ok()) << program.status();
    const std::string text = PrintSource(*program);
    EXPECT_THAT(text, HasSubstr("void " + kernel.name + "("));
    EXPECT_THAT(text, HasSubstr("for (int64_t i0 = 0;"));
    EXPECT_THAT(text, Not(HasSubstr("[r")));  // every range has its loop's name
    EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
  }
}

}  // namespace
}  // namespace kiln::codegen
