#include "compiler/schedule/apply/expression_placer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/walk.h"
#include "compiler/kernel/index_bounds.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::schedule {

using ir::Node;
using ir::Op;

namespace {

// Returns a range that does not influence whether the sum is below `bound`: it is the sum's lowest
// digit, and its extent divides all other coefficients, the constant and the bound. Returns null if
// there is none.
const Node* IdleDigit(const kernel::Sum& sum, int64_t bound) {
  for (const auto& [digit, one] : sum.terms) {
    if (digit->op() != Op::kRange || one != 1) continue;
    const int64_t count = ir::ExtentOf(digit);
    const bool idle =
        std::all_of(sum.terms.begin(), sum.terms.end(), [&, digit = digit](const auto& term) {
          return term.atom == digit || term.coefficient % count == 0;
        });
    if (idle && sum.constant % count == 0 && bound % count == 0) return digit;
  }
  return nullptr;
}

}  // namespace

kernel::ExpressionFolder::Map ExpressionPlacer::RangeValues(const State& state) const {
  kernel::ExpressionFolder::Map values;
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Axis& axis = plan_.axes[i];
    if (axis.range != nullptr) values[axis.range] = nest_.Value(static_cast<int>(i), state);
  }
  return values;
}

int ExpressionPlacer::OpenVectorAxis(const State& state) const {
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Axis& axis = plan_.axes[i];
    if (axis.leaf() && axis.binding == Binding::kVector && state.values[i] != nullptr) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

const Node* ExpressionPlacer::LaneMasks(const State& state, bool reduce_only) const {
  const Node* valid = nullptr;
  for (const LaneMask& mask : state.masks) {
    if (reduce_only && !mask.reduce) continue;
    valid = folder_.And(valid, folder_.Less(mask.range, folder_.Int(mask.count)));
  }
  return valid;
}

bool ExpressionPlacer::DependsOnAxis(const Node* root, int number) const {
  if (const Node* range = plan_.axes[number].range; range != nullptr) {
    return kernel::DependsOn(root, range);
  }
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    if (plan_.axes[i].fused_into == number && DependsOnAxis(root, static_cast<int>(i))) return true;
  }
  return false;
}

const Node* ExpressionPlacer::PaddingMasks(const State& state, const Node* load) const {
  const Node* valid = nullptr;
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Axis& axis = plan_.axes[i];
    const int number = static_cast<int>(i);
    if (!axis.padded() || (load != nullptr && !DependsOnAxis(load, number))) continue;
    const Node* value = nest_.Value(number, state);
    if (const Node* digit = IdleDigit(kernel::SumOf(value), axis.padded_from)) {
      kernel::ExpressionFolder::Map first = {{digit, folder_.Int(0)}};
      value = folder_.Substitute(value, &first);
    }
    valid = folder_.And(valid, folder_.Less(value, folder_.Int(axis.padded_from)));
  }
  return valid;
}

// Examines the kernel's original loads: once an axis is opened, its contribution to an index may be
// folded into a constant. A load that depends on the axis only by its condition must be zero past
// the end, too: otherwise a zero there times its infinity would add NaN to a sum.
void ExpressionPlacer::MaskPadding(const Node* root, const State& state,
                                   kernel::ExpressionFolder::Map* memo) const {
  const bool pads = std::any_of(plan_.axes.begin(), plan_.axes.end(),
                                [](const Axis& axis) { return axis.padded(); });
  if (!pads) return;
  for (const Node* load : ir::TopologicalOrder({&root, 1})) {
    if (load->op() != Op::kLoad || memo->contains(load)) continue;
    const Node* valid = PaddingMasks(state, load);
    if (valid == nullptr) continue;
    if (load->operands().size() > 1) {
      valid = folder_.And(folder_.Substitute(load->operand(1), memo), valid);
    }
    const Node* index = folder_.Substitute(load->operand(0), memo);
    (*memo)[load] = folder_.Load(load->dtype(), static_cast<int>(load->attr<ir::IntAttr>().value),
                                 index, valid);
  }
}

const Node* ExpressionPlacer::LocalIndex(int buffer, const Node* index, const State& state) const {
  // Lanes of a stage's own loops share the local; lanes of the grid (stage -1) have one each. The
  // lane is the innermost index, so that a vector is one load.
  const bool local = buffer >= program_.num_arguments;
  const int vector = OpenVectorAxis(state);
  if (!local || vector < 0 || plan_.axes[vector].stage != -1 ||
      program_.buffers[buffer].space != Space::kScratch) {
    return index;
  }
  return folder_.Add(folder_.Mul(index, plan_.axes[vector].extent), state.values[vector]);
}

const Node* ExpressionPlacer::Place(const Node* root, const State& state,
                                    kernel::ExpressionFolder::Map* memo) const {
  if (root == nullptr) return nullptr;
  MaskPadding(root, state, memo);
  kernel::ExpressionFolder::Map finished;
  return Finish(folder_.Substitute(root, memo), state, &finished);
}

bool ExpressionPlacer::MayReadAnyLane(int buffer, const Node* index) const {
  const LoopBuffer& from = program_.buffers[buffer];
  if (from.space == Space::kRegister) return true;
  if (from.space == Space::kGlobal) return false;
  // Scratch buffers begin at multiples of 64 bytes (apply.cc), so the padding of a buffer's last
  // line belongs to no other buffer.
  const kernel::Interval bounds = kernel::BoundsOf(index);
  const int64_t size = ir::SizeOf(from.dtype);
  return bounds.low >= 0 && bounds.high < (from.elements * size + 63) / 64 * 64 / size;
}

const Node* ExpressionPlacer::Finish(const Node* node, const State& state,
                                     kernel::ExpressionFolder::Map* memo) const {
  if (auto found = memo->find(node); found != memo->end()) return found->second;
  const int buffer =
      node->op() == Op::kLoad ? static_cast<int>(node->attr<ir::IntAttr>().value) : -1;
  const Node* result = node;
  // Loads from buffers that the schedule added already have their addresses and masks.
  if (buffer < kernel_buffers_) {
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(Finish(operand, state, memo));
    if (buffer >= 0) {
      const Node* valid = operands.size() > 1 ? operands[1] : nullptr;
      for (const LaneMask& mask : state.masks) {
        // A load whose index does not depend on the lane reads the same element in all lanes.
        if (!MayReadAnyLane(buffer, operands[0]) && kernel::DependsOn(operands[0], mask.range)) {
          valid = folder_.And(valid, folder_.Less(mask.range, folder_.Int(mask.count)));
        }
      }
      const Node* index = LocalIndex(buffer, operands[0], state);
      result = folder_.Load(node->dtype(), buffer, index, valid);
    } else if (!operands.empty()) {
      result = folder_.context().WithOperands(node, std::move(operands));
    }
  }
  memo->emplace(node, result);
  return result;
}

}  // namespace kiln::schedule
