#include "compiler/ir/tf32.h"

namespace kiln::ir {

namespace {

bool IsMask(const Node* node) {
  while (node->op() == Op::kExpand || node->op() == Op::kReshape) node = node->operand(0);
  if (node->op() != Op::kConst) return false;
  return (static_cast<uint32_t>(node->attr<ConstValue>().AsInt()) & ~kTf32Mask) == 0;
}

}  // namespace

const Node* UnderTf32Mask(const Node* node) {
  if (node->op() != Op::kAnd || SizeOf(node->dtype()) != 4) return nullptr;
  if (IsMask(node->operand(1))) return node->operand(0);
  return IsMask(node->operand(0)) ? node->operand(1) : nullptr;
}

bool IsRoundedToTf32(const Node* node) {
  return node->op() == Op::kBitcast && node->dtype() == DType::kFloat32 &&
         UnderTf32Mask(node->operand(0)) != nullptr;
}

}  // namespace kiln::ir
