#include "compiler/codegen/math/composite.h"

#include <numbers>

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// Returns whether `node` is the constant `value`, rounded to its dtype.
bool IsConstant(const Node* node, double value) {
  if (node->op() != Op::kConst) return false;
  const double rounded = node->dtype() == DType::kFloat32 ? static_cast<float>(value) : value;
  return node->attr<ir::ConstValue>().AsDouble() == rounded;
}

// Returns the other factor of a product with such a constant, or null if `node` is no such product.
const Node* FactorBeside(const Node* node, double constant) {
  if (node->op() != Op::kMul) return nullptr;
  if (IsConstant(node->operand(1), constant)) return node->operand(0);
  if (IsConstant(node->operand(0), constant)) return node->operand(1);
  return nullptr;
}

// Returns the argument of a cosine written as 1 - 2 sin(x / 2)^2, or null if `node` is not one.
const Node* CosineArgument(const Node* node) {
  if (node->op() != Op::kAdd) return nullptr;
  for (int i = 0; i < 2; ++i) {
    if (!IsConstant(node->operand(i), 1)) continue;
    const Node* square = FactorBeside(node->operand(1 - i), -2);
    if (square == nullptr || square->op() != Op::kMul) return nullptr;
    const Node* sine = square->operand(0);
    if (sine != square->operand(1) || sine->op() != Op::kSin) return nullptr;
    return FactorBeside(sine->operand(0), 0.5);
  }
  return nullptr;
}

}  // namespace

std::optional<MathComposite> MatchComposite(const Node* node) {
  using Kind = MathComposite::Kind;
  if (node->dtype() != DType::kFloat32 && node->dtype() != DType::kFloat64) return std::nullopt;
  if (node->op() == Op::kExp2) {
    const Node* product = node->operand(0);
    if (const Node* x = FactorBeside(product, std::numbers::log2e))
      return MathComposite{Kind::kExp, x};
    if (const Node* x = FactorBeside(product, -std::numbers::log2e))
      return MathComposite{Kind::kExpOfMinus, x};
  }
  if (const Node* x = CosineArgument(node)) return MathComposite{Kind::kCos, x};
  const Node* logarithm = FactorBeside(node, std::numbers::ln2);
  if (logarithm == nullptr || logarithm->op() != Op::kLog2) return std::nullopt;
  return MathComposite{Kind::kLog, logarithm->operand(0)};
}

}  // namespace kiln::codegen
