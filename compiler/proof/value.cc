#include "compiler/proof/value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ops/round.h"

namespace kiln::proof {
namespace {

using ir::DType;
using ir::Op;

constexpr Value kLowest = std::numeric_limits<Value>::min();

uint64_t U(Value value) { return static_cast<uint64_t>(value); }
Value Wrap(uint64_t value) { return static_cast<Value>(value); }

// Bounds of indices rely on the range of their dtype, so integers wrap as they do in a kernel.
Value Held(DType dtype, Value value) {
  return ir::IsFloat(dtype) ? value : ops::WrapToInteger(dtype, value);
}

// Odd, so that no product of such numbers is 0.
Value AsFloat(uint64_t bits) { return Wrap(bits | 1); }

// Any order will do for floats, as long as kLowest, which represents minus infinity, is the
// smallest.
bool Less(DType dtype, Value a, Value b) {
  return ir::IsFloat(dtype) || ir::IsSigned(dtype) ? a < b : U(a) < U(b);
}

Value FloorDivide(Value a, Value b) {
  if (b == 0) return 0;
  // The lowest number divided by -1 overflows, and the processor would trap.
  if (b == -1) return Wrap(-U(a));
  const Value quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

Value Cast(DType to, DType from, Value value) {
  // 0 is the same in every dtype. An integer converted from a float is small, since it may be an
  // index.
  if (to == from || value == 0) return value;
  if (to == DType::kBool) return 1;
  const bool from_float = ir::IsFloat(from);
  if (!ir::IsFloat(to)) {
    return from_float ? Wrap(Mix(U(value), static_cast<uint64_t>(to)) % 1024) : value;
  }
  if (!from_float && value == 1) return 1;
  return AsFloat(Mix(Mix(U(value), static_cast<uint64_t>(from)), static_cast<uint64_t>(to)));
}

// An operation without known properties: gives a number that depends on its operands.
Value Uninterpreted(Op op, DType dtype, const Value* operands, int count) {
  uint64_t hash = Mix(static_cast<uint64_t>(op), static_cast<uint64_t>(dtype));
  for (int i = 0; i < count; ++i) hash = Mix(hash, U(operands[i]));
  if (dtype == DType::kBool) return Wrap(hash & 1);
  return ir::IsFloat(dtype) ? AsFloat(hash) : Wrap(hash % 1024);
}

Value Integer(Op op, DType dtype, Value a, Value b) {
  switch (op) {
    case Op::kIDiv:
      return FloorDivide(a, b);
    case Op::kMod:
      return b == 0 ? 0 : Wrap(U(a) - U(FloorDivide(a, b)) * U(b));
    case Op::kAnd:
      return a & b;
    case Op::kOr:
      return a | b;
    case Op::kXor:
      return a ^ b;
    case Op::kNot:
      return dtype == DType::kBool ? a == 0 : ~a;
    case Op::kShl:
      return b < 0 || b > 63 ? 0 : Wrap(U(a) << b);
    default:
      return b < 0 || b > 63 ? 0 : a >> b;
  }
}

// The result may have more bits than `dtype` if it is out of its range.
Value ApplyExactly(Op op, DType dtype, DType operand, const Value* x, int count) {
  switch (op) {
    case Op::kAdd:
      return Wrap(U(x[0]) + U(x[1]));
    case Op::kSub:
      return Wrap(U(x[0]) - U(x[1]));
    case Op::kMul:
      return Wrap(U(x[0]) * U(x[1]));
    case Op::kNeg:
      return Wrap(-U(x[0]));
    case Op::kMax:
      return Less(dtype, x[0], x[1]) ? x[1] : x[0];
    case Op::kMin:
      return Less(dtype, x[1], x[0]) ? x[1] : x[0];
    case Op::kCmpLt:
      return Less(operand, x[0], x[1]);
    case Op::kCmpEq:
      return x[0] == x[1];
    case Op::kCmpNe:
      return x[0] != x[1];
    case Op::kWhere:
      return x[0] != 0 ? x[1] : x[2];
    case Op::kCast:
      return Cast(dtype, operand, x[0]);
    case Op::kBitcast:
      // A bitcast of 0 is 0.
      return x[0] == 0 ? 0 : Uninterpreted(op, dtype, x, count);
    case Op::kIDiv:
    case Op::kMod:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNot:
    case Op::kShl:
    case Op::kShr:
      if (!ir::IsFloat(dtype)) return Integer(op, dtype, x[0], count > 1 ? x[1] : 0);
      [[fallthrough]];
    default:
      return Uninterpreted(op, dtype, x, count);
  }
}

}  // namespace

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15 + b + 0x7f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Value InputElement(uint64_t seed, int buffer, DType dtype, int64_t index) {
  const uint64_t hash = Mix(seed * 64 + static_cast<uint64_t>(buffer), U(index));
  if (ir::IsFloat(dtype)) return AsFloat(hash);
  if (dtype == DType::kBool) return Wrap(hash & 1);
  const Value small = Wrap((hash >> 8) % 8);
  switch (hash % 8) {
    case 0:
      return ir::IsSigned(dtype) ? -1 - small : small;
    case 1:
      return Held(dtype, Wrap((hash >> 8) % 100000));
    case 2:
      return Held(dtype, Wrap((hash >> 8) % 100));
    default:
      return small;
  }
}

Value OfConstant(const ir::Node* constant) {
  const ir::ConstValue& value = constant->attr<ir::ConstValue>();
  if (!ir::IsFloat(constant->dtype())) return value.AsInt();
  const double number = value.AsDouble();
  if (number == 0 && !std::signbit(number)) return 0;
  if (number == 1) return 1;
  if (number == -std::numeric_limits<double>::infinity()) return kLowest;
  return AsFloat(Mix(value.bits, 0));
}

Value Apply(Op op, DType dtype, DType operand, const Value* operands, int count) {
  return Held(dtype, ApplyExactly(op, dtype, operand, operands, count));
}

Value Identity(ir::ReduceKind kind, DType dtype) {
  if (kind == ir::ReduceKind::kProd) return 1;
  if (kind == ir::ReduceKind::kSum || dtype == DType::kBool) return 0;
  if (ir::IsFloat(dtype)) return kLowest;
  if (!ir::IsSigned(dtype)) return 0;
  const int bits = ir::SizeOf(dtype) * 8;
  return bits == 64 ? kLowest : -(int64_t{1} << (bits - 1));
}

Value Combine(ir::ReduceKind kind, DType dtype, Value a, Value b) {
  const Value operands[] = {a, b};
  const bool product = kind == ir::ReduceKind::kProd;
  Op op = kind == ir::ReduceKind::kMax ? Op::kMax : product ? Op::kMul : Op::kAdd;
  if (dtype == DType::kBool) op = product ? Op::kAnd : Op::kOr;
  return Apply(op, dtype, dtype, operands, 2);
}

}  // namespace kiln::proof
