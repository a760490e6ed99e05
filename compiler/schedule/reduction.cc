#include "compiler/schedule/reduction.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/walk.h"

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

ConstValue IdentityValue(ReduceKind kind, DType dtype) {
  const int64_t number = kind == ReduceKind::kProd ? 1 : 0;
  if (ir::IsFloat(dtype)) {
    return ConstValue::Float(kind == ReduceKind::kMax ? -std::numeric_limits<double>::infinity()
                                                      : static_cast<double>(number));
  }
  if (kind == ReduceKind::kMax && dtype != DType::kBool) {
    return ConstValue::Int(LeastInteger(dtype));
  }
  return ConstValue::Int(number);
}

bool Loads(const ir::Node* root) {
  const std::vector<const ir::Node*> nodes = ir::TopologicalOrder({&root, 1});
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const ir::Node* node) { return node->op() == Op::kLoad; });
}

}  // namespace

std::vector<const ir::Node*> ReducesOf(const kernel::Stage& stage) {
  std::vector<const ir::Node*> roots;
  for (const kernel::Store& store : stage.stores) {
    for (const ir::Node* root : {store.index, store.value, store.valid}) {
      if (root != nullptr) roots.push_back(root);
    }
  }
  std::vector<const ir::Node*> reduces;
  for (const ir::Node* node : ir::TopologicalOrder(roots)) {
    if (node->op() == Op::kReduce) reduces.push_back(node);
  }
  return reduces;
}

Op CombineOp(ReduceKind kind) {
  if (kind == ReduceKind::kSum) return Op::kAdd;
  return kind == ReduceKind::kProd ? Op::kMul : Op::kMax;
}

const ir::Node* IdentityOf(ir::Context& context, ReduceKind kind, DType dtype) {
  return context.Get(Op::kConst, dtype, {}, {}, IdentityValue(kind, dtype));
}

const ir::Node* Combine(ir::Context& context, ReduceKind kind, const ir::Node* a,
                        const ir::Node* b) {
  Op op = CombineOp(kind);
  if (a->dtype() == DType::kBool) op = Op::kOr;
  return context.Get(op, a->dtype(), {}, {a, b});
}

bool IsFalseWithout(const ir::Node* node, const ir::Node* condition) {
  if (node == condition) return true;
  return node->op() == Op::kAnd && (IsFalseWithout(node->operand(0), condition) ||
                                    IsFalseWithout(node->operand(1), condition));
}

bool IsNeutralWithout(ReduceKind kind, const ir::Node* term, const ir::Node* condition) {
  const auto neutral = [&](int operand) {
    return IsNeutralWithout(kind, term->operand(operand), condition);
  };
  if (term->op() == Op::kConst) {
    return term->attr<ConstValue>() == IdentityValue(kind, term->dtype());
  }
  if (term->op() == Op::kWhere) {
    return neutral(2) && (IsFalseWithout(term->operand(0), condition) || neutral(1));
  }
  if (kind != ReduceKind::kSum) return false;
  switch (term->op()) {
    case Op::kLoad:
      return term->operands().size() > 1 && IsFalseWithout(term->operand(1), condition);
    case Op::kCast:
      return neutral(0);
    case Op::kMul:
      return neutral(0) || neutral(1);
    default:
      return false;
  }
}

std::vector<const ir::Node*> NeededConditions(absl::Span<const ir::Node* const> reduces) {
  std::vector<const ir::Node*> terms, parts, needed;
  for (const ir::Node* reduce : reduces) terms.push_back(reduce->operand(0));
  for (const ir::Node* node : ir::TopologicalOrder(terms)) {
    if (node->op() == Op::kWhere) parts.push_back(node->operand(0));
    if (node->op() == Op::kLoad && node->operands().size() > 1) parts.push_back(node->operand(1));
  }
  while (!parts.empty()) {
    const ir::Node* part = parts.back();
    parts.pop_back();
    if (part->op() == Op::kAnd) {
      parts.insert(parts.end(), part->operands().begin(), part->operands().end());
      continue;
    }
    const bool known = std::find(needed.begin(), needed.end(), part) != needed.end();
    if (known || part->op() == Op::kConst || Loads(part)) continue;
    const bool vanish = std::all_of(reduces.begin(), reduces.end(), [part](const ir::Node* reduce) {
      return IsNeutralWithout(reduce->attr<ir::ReduceAttr>().kind, reduce->operand(0), part);
    });
    if (vanish) needed.push_back(part);
  }
  return needed;
}

}  // namespace kiln::schedule
