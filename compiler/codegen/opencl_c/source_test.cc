#include "compiler/codegen/opencl_c/source.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/schedule/apply/apply.h"
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
  // Returns the text of `value`, stored at out1[0].
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
  EXPECT_EQ(PrintSource(b.program), R"(#pragma OPENCL FP_CONTRACT OFF

// example
__kernel void kiln_kernel(__global const float* restrict in0, __global float* restrict out1) {
  const long task = get_global_id(0);
  if (task >= 10) return;
  float sum0[4][16];  // vector registers
  const long p0 = task;
  for (long i0 = 0; i0 < 4; ++i0) {
    for (long u0 = 0; u0 < 2; ++u0) {  // unrolled
      for (long v0 = 0; v0 < 16; ++v0) {  // vector
        sum0[u0][v0] += in0[p0 * 64 + i0 * 16 + v0];
      }
    }
  }
}
)");
}

TEST(CSourceTest, LoopsOfMatrixUnitsAreNamedLikeOthers) {
  Builder b;
  const Node* row = b.Range(16);
  const Node* column = b.Range(8);
  const Node* index = b.Binary(Op::kAdd, b.Binary(Op::kMul, row, b.Int(8)), column);
  schedule::Loop columns{.range = column, .kind = LoopKind::kMatrix, .body = {}};
  columns.body = {{schedule::Store{.buffer = 1, .index = index, .value = b.Float(1)}}};
  schedule::Loop rows{.range = row, .kind = LoopKind::kMatrix, .body = {}};
  rows.body = {{std::move(columns)}};
  b.program.sections = {{.grid = {}, .body = {{std::move(rows)}}}};
  EXPECT_THAT(PrintSource(b.program), HasSubstr(R"(
  for (long m0 = 0; m0 < 16; ++m0) {  // matrix unit
    for (long m1 = 0; m1 < 8; ++m1) {  // matrix unit
      out1[m0 * 8 + m1] = 1.0f;
    }
  }
)"));
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
                        {.grid = {b.Range(3), b.Range(2)}, .body = {}}};
  EXPECT_EQ(PrintSource(b.program), R"(#pragma OPENCL FP_CONTRACT OFF

// example
__kernel void kiln_kernel(__global const float* restrict in0, __global float* restrict out1) {
  const long task = get_global_id(0);
  if (task >= 7) return;
  float sum0[4][16];  // vector registers
  if (task < 1) {
    for (long i0 = 0; i0 < min(40L, 7L); ++i0) {
      if (i0 < 39) {
        out1[i0] = i0 < 39 ? in0[i0] : 0.0f;  // past the caches
      } else {
        out1[i0] = 1.0f;
      }
      if (i0 < 39) out1[i0] = 0.0f;
    }
  } else {
    const long p0 = (task - 1) / 2;
    const long p1 = (task - 1) % 2;
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
  EXPECT_EQ(b.Value(op(Op::kMax, op(Op::kAdd, x, y), z)), "max_float32(in0[1] + in0[2], in0[3])");
  EXPECT_EQ(b.Value(b.Make(Op::kNeg, DType::kFloat32, {op(Op::kMul, x, y)})), "-(in0[1] * in0[2])");
  EXPECT_EQ(b.Value(b.Make(Op::kReciprocal, DType::kFloat32, {op(Op::kAdd, x, y)})),
            "1.0f / (in0[1] + in0[2])");
  EXPECT_EQ(b.Value(b.Make(Op::kWhere, DType::kFloat32, {op(Op::kCmpLt, x, y), y, z})),
            "in0[1] < t0 ? t0 : in0[3]");
  // C needs no parentheses here, but compilers warn about the first form, and readers may misread
  // both.
  const Node* first = b.Make(Op::kCmpLt, DType::kBool, {x, y});
  const Node* second = b.Make(Op::kCmpLt, DType::kBool, {y, z});
  EXPECT_EQ(b.Value(b.Make(Op::kCmpLt, DType::kBool, {first, second})),
            "(in0[1] < t0) < (t0 < in0[3])");
  EXPECT_EQ(b.Value(b.Make(Op::kCmpNe, DType::kBool, {first, second})),
            "(in0[1] < t0) != (t0 < in0[3])");
  EXPECT_EQ(b.Value(b.Make(Op::kCast, DType::kFloat32, {b.Int(-3)})), "(float)-3L");
  EXPECT_EQ(b.Value(b.Float(0.1)), "0.1f");
  EXPECT_EQ(b.Value(b.Float(0.30000001192092896)), "0.3f");
  EXPECT_EQ(b.Value(b.Float(16777216)), "16777216.0f");
  EXPECT_EQ(b.Value(b.Float(1.0000001192092896)), "1.0000001f");  // every significant digit
  EXPECT_EQ(b.Value(b.Float(-INFINITY)), "-INFINITY");
}

TEST(CSourceTest, ReductionsOverLanesAreLoops) {
  Builder b;
  const Node* lane = b.Range(16);
  const Node* sum = b.Make(Op::kReduce, DType::kFloat32, {b.Load(2, {b.Int(0)}), lane},
                           ir::ReduceAttr{ir::ReduceKind::kSum});
  EXPECT_EQ(b.Value(b.Binary(Op::kMul, sum, sum)), "t0 * t0");
  EXPECT_THAT(PrintSource(b.program), HasSubstr(R"(
  float t0 = 0.0f;
  for (long v0 = 0; v0 < 16; ++v0) {
    t0 = t0 + sum0[0][v0];
  }
)"));
}

// Signed numbers that may overflow are computed as unsigned ones, for which C defines it.
TEST(CSourceTest, IntegersWrap) {
  Builder b;
  auto value = [&](Op op, DType dtype, int64_t y) {
    const Node* x = b.Make(Op::kLoad, dtype, {b.Int(1)}, ir::IntAttr{0});
    return b.Value(b.Make(op, dtype, {x, b.Make(Op::kConst, dtype, {}, ir::ConstValue::Int(y))}));
  };
  EXPECT_EQ(value(Op::kAdd, DType::kInt32, 5), "as_int((uint)in0[1] + 5)");
  EXPECT_EQ(value(Op::kMul, DType::kInt64, 5), "as_long((ulong)in0[1] * 5)");
  EXPECT_EQ(value(Op::kAdd, DType::kUInt32, 5), "in0[1] + 5u");
  EXPECT_EQ(value(Op::kSub, DType::kInt8, -5), "(char)(in0[1] - -5)");
  EXPECT_EQ(value(Op::kMul, DType::kUInt16, 5), "(ushort)((uint)in0[1] * 5)");
  EXPECT_EQ(value(Op::kIDiv, DType::kInt32, 5), "floor_div_int32(in0[1], 5)");
  EXPECT_EQ(value(Op::kIDiv, DType::kUInt32, 5), "in0[1] / 5u");
  EXPECT_EQ(value(Op::kIDiv, DType::kUInt32, 0), "floor_div_uint32(in0[1], 0u)");
  EXPECT_EQ(value(Op::kShl, DType::kInt32, 5), "as_int((uint)in0[1] << 5)");
  EXPECT_EQ(value(Op::kShr, DType::kInt32, 31), "in0[1] >> 31");
  EXPECT_EQ(value(Op::kShr, DType::kInt32, 32), "shr_int32(in0[1], 32)");
  EXPECT_EQ(value(Op::kMax, DType::kInt32, INT32_MIN), "max(in0[1], INT_MIN)");
  const Node* small = b.Make(Op::kCast, DType::kInt64,
                             {b.Make(Op::kLoad, DType::kInt16, {b.Int(1)}, ir::IntAttr{0})});
  EXPECT_EQ(b.Value(b.Binary(Op::kMul, small, b.Int(5))), "(long)in0[1] * 5");
}

// Each function once, callees first, together with the types.
TEST(CSourceTest, WhatTheKernelCallsStandsAboveIt) {
  Builder b;
  const Node* x = b.Make(Op::kLoad, DType::kFloat64, {b.Int(1)}, ir::IntAttr{0});
  const Node* narrow = b.Make(Op::kCast, DType::kFloat8E5M2, {x});
  const Node* wide = b.Make(Op::kCast, DType::kFloat32, {narrow});
  EXPECT_EQ(b.Value(b.Make(Op::kMod, DType::kFloat32, {wide, b.Binary(Op::kMul, wide, wide)})),
            "mod_float32(t0, t0 * t0)");
  const std::string text = PrintSource(b.program);
  size_t place = 0;
  for (const char* part :
       {"cl_khr_fp64", "typedef ushort float16_bits;", "typedef uchar float8_e5m2_bits;",
        "float mod_float32(", "float to_odd_float_float64(", "float from_float16(",
        "float from_float8_e5m2(", "float8_e5m2_bits to_float8_e5m2(", "__kernel"}) {
    const size_t found = text.find(part);
    EXPECT_LT(place, found) << part;
    EXPECT_EQ(text.find(part, found + 1), std::string::npos) << part;
    place = found;
  }
}

TEST(CSourceTest, FunctionsWrittenInTermsOfOthersAreCalled) {
  Builder b;
  const Node* x = b.Load(0, {b.Int(1)});
  const Node* log2e = b.Float(1.4426950408889634f);
  EXPECT_EQ(b.Value(b.Make(Op::kExp2, DType::kFloat32, {b.Binary(Op::kMul, x, log2e)})),
            "exp(in0[1])");
}

// Compilers limit the nesting of brackets.
TEST(CSourceTest, LongExpressionsAreTakenApart) {
  Builder b;
  const Node* x = b.Load(0, {b.Int(1)});
  for (int i = 0; i < 1000; ++i) x = b.Binary(Op::kSub, b.Load(0, {b.Int(i % 640)}), x);
  b.Value(x);
  const std::string text = PrintSource(b.program);
  int depth = 0, deepest = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  EXPECT_LT(deepest, 20);
}

TEST(CSourceTest, ExtentsThatAreChosen) {
  Builder b;
  const Node* i = b.Range(4);
  const Node* extent = b.Make(Op::kWhere, DType::kInt64,
                              {b.Binary(Op::kCmpLt, b.Range(2), b.Int(1)), b.Int(3), b.Int(4)});
  schedule::Loop loop{.range = i, .extent = extent, .body = {}};
  b.program.sections = {{.grid = {}, .body = {{std::move(loop)}}}};
  EXPECT_THAT(PrintSource(b.program),
              HasSubstr("for (long i0 = 0; i0 < (r1 < 1 ? 3L : 4L); ++i0) {"));
}

TEST(CSourceTest, ArgumentsMayComeByASlotTable) {
  Builder b;
  b.Value(b.Load(0, {b.Int(5)}));
  EXPECT_THAT(
      PrintSource(b.program, Parameters::kSlotTable),
      HasSubstr("__kernel void kiln_kernel(__global const ulong* restrict slots, ulong in0_slot, "
                "ulong out1_slot, ulong first_point) {\n"
                "  __global const float* restrict in0 = (__global const float*)"
                "(slots[in0_slot >> 44] + (in0_slot & 17592186044352ul));\n"
                "  __global float* restrict out1 = (__global float*)"
                "(slots[out1_slot >> 44] + (out1_slot & 17592186044352ul));\n"
                "  const long task = first_point * get_local_size(0) + get_global_id(0);\n"
                "  if ((task >= 1) | !in0 | !out1) return;\n"));
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
    EXPECT_THAT(text, HasSubstr("// " + kernel.name + "\n"));
    EXPECT_THAT(text, HasSubstr("for (long i0 = 0;"));
    EXPECT_THAT(text, Not(HasSubstr("[r")));  // every range has its loop's name
    EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
  }
}

}  // namespace
}  // namespace kiln::codegen
