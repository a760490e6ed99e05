// Builds expressions in float64 and bool, for error_bound.cc.
#ifndef KILN_TESTS_FULL_SIZE_DOUBLES_H_
#define KILN_TESTS_FULL_SIZE_DOUBLES_H_

#include <limits>
#include <utility>
#include <vector>

#include "compiler/ir/node.h"

namespace kiln::full_size {

class Doubles {
  using Node = ir::Node;
  using Op = ir::Op;
  using DType = ir::DType;

 public:
  explicit Doubles(ir::Context& context) : context_(context) {}

  const Node* Number(double value) {
    return context_.Get(Op::kConst, DType::kFloat64, {}, {}, ir::ConstValue::Float(value));
  }
  const Node* Of(const Node* x) {
    return x->dtype() == DType::kFloat64 ? x : context_.Get(Op::kCast, DType::kFloat64, {}, {x});
  }
  const Node* Get(Op op, std::vector<const Node*> operands) {
    const bool compares = op == Op::kCmpLt || op == Op::kCmpEq || op == Op::kCmpNe;
    const bool logic = op == Op::kOr || op == Op::kNot;
    return context_.Get(op, compares || logic ? DType::kBool : DType::kFloat64, {},
                        std::move(operands));
  }
  // Null represents zero, and false.
  const Node* Add(const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return Get(Op::kAdd, {a, b});
  }
  const Node* Mul(const Node* a, const Node* b) {
    return a == nullptr || b == nullptr ? nullptr : Get(Op::kMul, {a, b});
  }
  const Node* Max(const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return Get(Op::kMax, {a, b});
  }
  const Node* Or(const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return Get(Op::kOr, {a, b});
  }
  const Node* Abs(const Node* a) { return Get(Op::kMax, {a, Get(Op::kNeg, {a})}); }
  const Node* Distance(const Node* a, const Node* b) { return Abs(Get(Op::kSub, {a, b})); }
  const Node* Where(const Node* condition, const Node* a, const Node* b) {
    if (a == nullptr && b == nullptr) return nullptr;
    return Get(Op::kWhere, {condition, a == nullptr ? Number(0) : a, b == nullptr ? Number(0) : b});
  }
  // Returns `roundings` of x; none for an infinity.
  const Node* RoundingOf(const Node* x, double rounding) {
    const Node* size = Abs(Of(x));
    const Node* finite = Get(Op::kCmpLt, {size, Number(std::numeric_limits<double>::max())});
    return Where(finite, Get(Op::kMul, {size, Number(rounding)}), nullptr);
  }
  // Reduces over the ranges of another reduction.
  const Node* Reduce(const Node* like, ir::ReduceKind kind, const Node* value) {
    if (value == nullptr) return nullptr;
    std::vector<const Node*> operands(like->operands().begin(), like->operands().end());
    operands[0] = value;
    return context_.Get(Op::kReduce, value->dtype(), {}, std::move(operands), ir::ReduceAttr{kind});
  }
  // Returns an error relative to x, plus a rounding.
  const Node* Relative(const Node* x, const Node* error, double rounding) {
    if (error == nullptr) return Number(rounding);
    const Node* size = Max(Abs(Of(x)), Number(std::numeric_limits<float>::min()));
    return Add(Number(rounding), Get(Op::kDiv, {error, size}));
  }
  // Returns 1 for true.
  const Node* AsNumber(const Node* x) {
    if (x == nullptr) return Number(0);
    return x->dtype() == DType::kBool ? Where(x, Number(1), nullptr) : x;
  }

 private:
  ir::Context& context_;
};

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_DOUBLES_H_
