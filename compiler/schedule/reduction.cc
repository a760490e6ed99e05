#include "compiler/schedule/reduction.h"

#include <limits>

namespace kiln::schedule {
namespace {

using ir::ConstValue;
using ir::DType;
using ir::Op;
using ir::ReduceKind;

int64_t LeastInteger(DType dtype) {
  if (!ir::IsSigned(dtype)) return 0;
  const int bits = ir::SizeOf(dtype) * 8;
  return bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
}

}  // namespace

Op CombineOp(ReduceKind kind) {
  if (kind == ReduceKind::kSum) return Op::kAdd;
  return kind == ReduceKind::kProd ? Op::kMul : Op::kMax;
}

const ir::Node* IdentityOf(ir::Context& context, ReduceKind kind, DType dtype) {
  const int64_t number = kind == ReduceKind::kProd ? 1 : 0;
  ConstValue value;
  if (ir::IsFloat(dtype)) {
    value = ConstValue::Float(kind == ReduceKind::kMax ? -std::numeric_limits<double>::infinity()
                                                       : static_cast<double>(number));
  } else if (kind == ReduceKind::kMax && dtype != DType::kBool) {
    value = ConstValue::Int(LeastInteger(dtype));
  } else {
    value = ConstValue::Int(number);
  }
  return context.Get(Op::kConst, dtype, {}, {}, value);
}

const ir::Node* Combine(ir::Context& context, ReduceKind kind, const ir::Node* a,
                        const ir::Node* b) {
  Op op = CombineOp(kind);
  if (a->dtype() == DType::kBool) op = Op::kOr;
  return context.Get(op, a->dtype(), {}, {a, b});
}

}  // namespace kiln::schedule
