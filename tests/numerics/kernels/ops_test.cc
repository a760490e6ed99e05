// Compares compiled kernels with the naive interpreter: every op, cast and reduction on every
// dtype.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/testing/sample_kernels.h"
#include "compiler/ir/str_cat.h"
#include "compiler/machine_codes.h"
#include "tests/numerics/kernels/kernel_check.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Op;

// Every unary and binary op on every dtype that it accepts.
constexpr DType kDTypes[] = {DType::kBool,   DType::kInt8,    DType::kInt16,  DType::kInt32,
                             DType::kInt64,  DType::kUInt8,   DType::kUInt16, DType::kUInt32,
                             DType::kUInt64, DType::kFloat32, DType::kFloat64};

bool Takes(Op op, DType dtype) {
  const bool is_float = ir::IsFloat(dtype), is_bool = dtype == DType::kBool;
  switch (op) {
    case Op::kReciprocal:
    case Op::kSqrt:
    case Op::kExp2:
    case Op::kLog2:
    case Op::kSin:
    case Op::kTrunc:
    case Op::kDiv:
    case Op::kPow:
      return is_float;
    case Op::kNot:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return !is_float;
    case Op::kIDiv:
    case Op::kMod:
    case Op::kShl:
    case Op::kShr:
      return !is_float && !is_bool;
    case Op::kNeg:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
      return !is_bool;
    default:
      return true;
  }
}

TEST_F(KernelsTest, EveryOpOnEveryDType) {
  const Op ops[] = {Op::kNeg, Op::kReciprocal, Op::kSqrt,  Op::kExp2,  Op::kLog2,
                    Op::kSin, Op::kTrunc,      Op::kNot,   Op::kAdd,   Op::kSub,
                    Op::kMul, Op::kDiv,        Op::kIDiv,  Op::kMod,   Op::kMax,
                    Op::kMin, Op::kPow,        Op::kCmpLt, Op::kCmpEq, Op::kCmpNe,
                    Op::kAnd, Op::kOr,         Op::kXor,   Op::kShl,   Op::kShr};
  for (Op op : ops) {
    for (DType dtype : kDTypes) {
      if (!Takes(op, dtype)) continue;
      KernelWriter w(context_);
      const bool unary = op <= Op::kNot;
      const bool compares = op >= Op::kCmpLt && op <= Op::kCmpNe;
      const int64_t n = 333;
      const int a = w.In(n, dtype), b = w.In(n, dtype);
      const int c = w.Out(n, compares ? DType::kBool : dtype);
      auto i = w.Range(n);
      w.Stage({i});
      auto x = w.Load(a, i), y = w.Load(b, i);
      w.Store(c, i, unary ? x.Unary(op) : x.Binary(op, y));
      ExpectAllMatch(w.kernel, 3e-6, StrCat(ir::Name(op), " of ", ir::Name(dtype)), true);
    }
  }
}

TEST_F(KernelsTest, EveryCast) {
  for (DType from : kDTypes) {
    for (DType to : kDTypes) {
      KernelWriter w(context_);
      const int64_t n = 200;
      const int a = w.In(n, from), b = w.Out(n, to);
      auto i = w.Range(n);
      w.Stage({i});
      w.Store(b, i, w.Load(a, i).Cast(to));
      ExpectAllMatch(w.kernel, 1e-6, StrCat("cast ", ir::Name(from), " to ", ir::Name(to)), true);
    }
  }
}

// The last vector of a row has one lane, whose store must not write to the next row.
TEST_F(KernelsTest, CastsToNarrowElementsStoreOneLane) {
  for (const char* dtype : {"int8", "uint8", "int16", "uint16"}) {
    auto kernel = kernel::ParseKernel(
        StrCat("buffer b0 int32[51] read\nbuffer b1 ", dtype, "[51] write\n", "grid r0:17\n",
               "stage r1:3\n  b1[r1*17 + r0] = ", dtype, "(b0[r1*17 + r0])\n"),
        context_);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    auto schedule = schedule::Parse("split 0 16\nbind 3 vector\norder 0 2 3 1\n");
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ExpectMatches(*kernel, *schedule, HostTarget(), InterpretKernel(*kernel), 0, dtype);
  }
}

// LLVM 22 looped endlessly on two comparisons whose bits are converted to doubles, without AVX-512.
TEST_F(KernelsTest, ComparisonsOfNarrowedIndicesBecomeNumbers) {
  for (const char* dtype : {"float64", "float32", "float16", "int64", "int16"}) {
    auto kernel = kernel::ParseKernel(
        StrCat(
            "buffer b0 ", dtype, R"([15] write
stage r0:3 r1:5
  b0[r0*5 + r1] = )",
            dtype,
            R"((cmplt(int32(int16((r0*5 + (r1 + 2)//3 + 2)%4)), int32(int16(((r1 + 2)//3%5 + 1)%4))))
)"),
        context_);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ExpectAllMatch(*kernel, 0, dtype);
  }
  auto kernel = kernel::ParseKernel(R"(buffer b0 float64[15] write
stage r0:3 r1:5 reduce r2:3
  b0[r0*5 + r1] = sum(float64(cmplt(int32(int16((r0*5 + (r2*5 + r1 + 2)//3 + 2)%4)), int32(int16(((r2*5 + r1 + 2)//3%5 + 1)%4)))))
)",
                                    context_);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ExpectAllMatch(*kernel, 0, "a sum of comparisons");
}

TEST_F(KernelsTest, EveryReductionOverEveryAxis) {
  for (DType dtype : kDTypes) {
    for (ir::ReduceKind kind :
         {ir::ReduceKind::kSum, ir::ReduceKind::kProd, ir::ReduceKind::kMax}) {
      for (bool inner : {true, false}) {
        KernelWriter w(context_);
        const int64_t m = 37, n = 75;
        const int a = w.In(m * n, dtype);
        const int b = w.Out(inner ? m : n, dtype);
        auto i = w.Range(m), j = w.Range(n);
        auto value = w.Load(a, i * n + j);
        if (inner) {
          w.Stage({i}, {j});
          w.Store(b, i, w.Reduce(kind, value, {j}));
        } else {
          w.Stage({j}, {i});
          w.Store(b, j, w.Reduce(kind, value, {i}));
        }
        if (dtype == DType::kBool && kind != ir::ReduceKind::kMax) continue;
        ExpectAllMatch(w.kernel, 1e-3,
                       StrCat("reduction ", static_cast<int>(kind), " of ", ir::Name(dtype)));
      }
    }
  }
}

// The graph widens it before.
TEST_F(KernelsTest, ArithmeticOfShortFloatsIsRefused) {
  KernelWriter w(context_);
  const int x = w.In(4, DType::kFloat16), y = w.Out(4, DType::kFloat16);
  auto i = w.Range(4);
  w.Stage({i});
  w.Store(y, i, w.Load(x, i) + w.Load(x, i));
  const absl::Status status = CheckSupported(**compiler::FindMachineCode(HostTarget().architecture),
                                             w.kernel, HostTarget());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("cannot generate code for add of float16 on x86-64"));
}

}  // namespace
}  // namespace kiln::codegen
