#include "compiler/schedule/matrix/step.h"

#include <utility>

#include "compiler/ir/dtype.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::schedule {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// Returns the unrolled loop that is the whole body, or null.
const Loop* OnlyLoop(const std::vector<Statement>& body) {
  const Loop* loop = body.size() == 1 ? std::get_if<Loop>(&body[0].node) : nullptr;
  return loop != nullptr && loop->kind == LoopKind::kUnrolled ? loop : nullptr;
}

int BufferOf(const Node* load) { return static_cast<int>(load->attr<ir::IntAttr>().value); }

// Returns the load from shared memory that is the factor, possibly cast to float32, or null.
const Node* SharedLoad(const Node* factor, const LoopProgram& program) {
  const bool widens = factor->op() == Op::kCast && ir::IsShortFloat(factor->operand(0)->dtype());
  const Node* load = widens ? factor->operand(0) : factor;
  const bool plain = load->op() == Op::kLoad && load->operands().size() == 1;
  return plain && program.buffers[BufferOf(load)].space == Space::kShared ? load : nullptr;
}

bool IsMatrixUnits(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32;
}

}  // namespace

std::optional<MatrixStep> FindMatrixStep(const Loop& loop, const LoopProgram& program) {
  const Loop* columns = OnlyLoop(loop.body);
  const Loop* terms = columns != nullptr ? OnlyLoop(columns->body) : nullptr;
  if (terms == nullptr || terms->body.size() != 1) return std::nullopt;
  const auto* store = std::get_if<Store>(&terms->body[0].node);
  if (store == nullptr || store->valid != nullptr || store->value->op() != Op::kAdd ||
      store->value->dtype() != DType::kFloat32) {
    return std::nullopt;
  }
  const Node* before = store->value->operand(0);
  const Node* product = store->value->operand(1);
  if (before->op() != Op::kLoad) std::swap(before, product);
  if (before->op() != Op::kLoad || BufferOf(before) != store->buffer ||
      before->operand(0) != store->index || product->op() != Op::kMul ||
      program.buffers[store->buffer].space != Space::kRegister) {
    return std::nullopt;
  }
  MatrixStep step = {loop.range, columns->range, terms->range, store->buffer, store->index, {}, {}};
  const Node* one = SharedLoad(product->operand(0), program);
  const Node* other = SharedLoad(product->operand(1), program);
  if (one == nullptr || other == nullptr) return std::nullopt;
  if (!kernel::DependsOn(one, step.rows)) std::swap(one, other);
  if (!kernel::DependsOn(one, step.rows) || kernel::DependsOn(one, step.columns) ||
      kernel::DependsOn(other, step.rows) || kernel::DependsOn(step.index, step.terms) ||
      one->dtype() != other->dtype() || !IsMatrixUnits(one->dtype())) {
    return std::nullopt;
  }
  const int64_t wanted = one->dtype() == DType::kFloat32 ? 8 : 16;
  if (ir::ExtentOf(step.rows) != 2 || ir::ExtentOf(step.columns) != 2 ||
      ir::ExtentOf(step.terms) != wanted) {
    return std::nullopt;
  }
  step.factor[0] = one;
  step.factor[1] = other;
  step.dtype = one->dtype();
  return step;
}

}  // namespace kiln::schedule
