#include <array>

#include "compiler/codegen/opencl_c/source.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// The kinds of operands.
enum Kind { kBools, kIntegers, kFloats };

struct OpRow {
  Op op;
  std::array<bool, 3> takes;  // by Kind
};
constexpr OpRow kOps[] = {
    {Op::kNeg, {false, true, true}},   {Op::kReciprocal, {false, false, true}},
    {Op::kSqrt, {false, false, true}}, {Op::kExp2, {false, false, true}},
    {Op::kLog2, {false, false, true}}, {Op::kSin, {false, false, true}},
    {Op::kTrunc, {true, true, true}},  {Op::kNot, {true, true, false}},
    {Op::kAdd, {false, true, true}},   {Op::kSub, {false, true, true}},
    {Op::kMul, {false, true, true}},   {Op::kDiv, {false, false, true}},
    {Op::kIDiv, {false, true, false}}, {Op::kMod, {false, true, true}},
    {Op::kMax, {true, true, true}},    {Op::kMin, {true, true, true}},
    {Op::kPow, {false, true, true}},   {Op::kCmpLt, {true, true, true}},
    {Op::kCmpEq, {true, true, true}},  {Op::kCmpNe, {true, true, true}},
    {Op::kAnd, {true, true, false}},   {Op::kOr, {true, true, false}},
    {Op::kXor, {true, true, false}},   {Op::kShl, {false, true, false}},
    {Op::kShr, {false, true, false}},  {Op::kReduce, {true, true, true}},
};

Kind KindOf(DType dtype) {
  if (dtype == DType::kBool) return kBools;
  return ir::IsFloat(dtype) ? kFloats : kIntegers;
}

}  // namespace

bool HasOpenClSource(const Node* node) {
  const Op op = node->op();
  if (op == Op::kConst || op == Op::kRange || op == Op::kLoad) return true;
  // Ops that work for values of any dtype, including short floats.
  if (op == Op::kWhere || op == Op::kCast || op == Op::kBitcast) return true;
  const DType dtype = node->operand(0)->dtype();
  if (ir::IsShortFloat(dtype)) return false;
  if (op == Op::kReduce && dtype == DType::kBool) {
    return node->attr<ir::ReduceAttr>().kind == ir::ReduceKind::kMax;
  }
  for (const OpRow& row : kOps) {
    if (row.op == op) return row.takes[KindOf(dtype)];
  }
  return false;
}

int64_t OpenClPrivateBytes(const schedule::LoopProgram& program) {
  int64_t bytes = program.scratch_bytes;
  for (const schedule::LoopBuffer& buffer : program.buffers) {
    if (buffer.space != schedule::Space::kRegister) continue;
    bytes += buffer.elements * buffer.lanes * ir::SizeOf(buffer.dtype);
  }
  return bytes;
}

absl::Status CheckOpenClSupported(const schedule::LoopProgram& program) {
  const int64_t bytes = OpenClPrivateBytes(program);
  if (bytes <= kOpenClPrivateBytesMax) return absl::OkStatus();
  return absl::UnimplementedError(StrCat("the schedule keeps ", bytes,
                                         " bytes for each task; OpenCL C can have at most ",
                                         kOpenClPrivateBytesMax));
}

}  // namespace kiln::codegen
