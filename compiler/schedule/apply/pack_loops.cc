// The loops that copy a factor. Loops that advance through memory in even steps are joined, and the
// loop along contiguous memory is cut into squares for lanes that run across it.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/apply/operand_packer.h"

namespace kiln::schedule {

using ir::Node;

// Returns a range that stands for all positions of a dimension. It is as long as the dimension,
// since quotients that a shorter range never changes would fold away.
const Node* OperandPacker::Probe(const Extent& extent) {
  return nest_.NewRange(std::max({extent.full, extent.last, int64_t{2}}));
}

// Sets each dimension in `state` to a probe, and returns the probes.
std::vector<const Node*> OperandPacker::FixToProbes(const StagedOperand& staged, State* state) {
  std::vector<const Node*> probes;
  for (const StagedOperand::Dimension& dimension : staged.dimensions) {
    probes.push_back(Probe(DimensionExtent(dimension, *state)));
    FixDimension(dimension, probes.back(), state);
  }
  return probes;
}

// Returns the index at which the factor is read, for these values of the axes. Returns nullopt if
// it is not a plain load (with or without a cast), or if the index is not linear in a probe.
std::optional<kernel::Sum> OperandPacker::SourceIndex(const StagedOperand& staged,
                                                      const State& state,
                                                      absl::Span<const Node* const> probes) {
  kernel::ExpressionFolder::Map memo = placer_.RangeValues(state);
  const Node* load = folder_.Substitute(staged.operand, &memo);
  while (load->op() == ir::Op::kCast) load = load->operand(0);
  if (load->op() != ir::Op::kLoad || load->operands().size() != 1) return std::nullopt;
  kernel::Sum sum = kernel::SumOf(load->operand(0));
  for (const Node* probe : probes) {
    for (const auto& [atom, coefficient] : sum.terms) {
      if (atom != probe && kernel::DependsOn(atom, probe)) return std::nullopt;
    }
  }
  return sum;
}

// Returns the distance in memory between neighbours along each dimension; empty if unknown.
std::vector<int64_t> OperandPacker::SourceSteps(const StagedOperand& staged, State state) {
  const std::vector<const Node*> probes = FixToProbes(staged, &state);
  const std::optional<kernel::Sum> sum = SourceIndex(staged, state, probes);
  if (!sum.has_value()) return {};
  std::vector<int64_t> steps;
  for (const Node* probe : probes) steps.push_back(sum->Coefficient(probe));
  return steps;
}

// Returns whether a joined loop advances in even steps, equal to those of its own dimension. A
// quotient may be even within its dimension and not across all joined ones.
bool OperandPacker::HasEvenSteps(const StagedOperand& staged, const PackLoop& loop, State state) {
  std::vector<const Node*> probes = FixToProbes(staged, &state);
  for (const StagedOperand::Dimension& dimension : loop.zeroed) {
    FixDimension(dimension, folder_.Int(0), &state);
  }
  probes.push_back(Probe(loop.extent));
  FixDimension(loop.dimension, probes.back(), &state);
  return SourceIndex(staged, state, probes).has_value();
}

// Returns the last loop joined with the next one, if they are contiguous in memory and in the
// layout.
std::optional<OperandPacker::PackLoop> OperandPacker::JoinLast(const StagedOperand& staged,
                                                               absl::Span<const PackLoop> loops,
                                                               PackLoop next, const State& state) {
  if (loops.empty()) return std::nullopt;
  const PackLoop& last = loops.back();
  if (!next.extent.constant() || !last.extent.constant()) return std::nullopt;
  const int64_t count = next.extent.full;
  // Either all loops have steps or none.
  if (!next.step.has_value() || *last.step != *next.step * count ||
      last.dimension.stride != next.dimension.stride * count) {
    return std::nullopt;
  }
  next.extent.full *= last.extent.full;
  next.extent.last = next.extent.full;
  next.zeroed = last.zeroed;
  next.zeroed.push_back(last.dimension);
  if (!HasEvenSteps(staged, next, state)) return std::nullopt;
  return next;
}

// Returns one loop for each dimension, or for several that are contiguous in memory and in the
// layout.
std::vector<OperandPacker::PackLoop> OperandPacker::PackLoops(const StageOperand& directive,
                                                              const StagedOperand& staged,
                                                              const State& state) {
  const std::vector<int64_t> steps = SourceSteps(staged, state);
  std::vector<PackLoop> loops;
  for (size_t i = 0; i + 1 < staged.dimensions.size(); ++i) {
    const StagedOperand::Dimension& dimension = staged.dimensions[i];
    PackLoop loop{dimension, DimensionExtent(dimension, state), std::nullopt};
    if (!steps.empty()) loop.step = steps[i];
    if (std::optional<PackLoop> joined = JoinLast(staged, loops, loop, state)) {
      loops.back() = *std::move(joined);
    } else {
      loops.push_back(std::move(loop));
    }
  }
  // Lanes that run across memory are transposed in registers, in squares with the loop that runs
  // along memory. Lanes at most two elements apart need no transposition: they are within two
  // vectors, which are loaded and shuffled.
  if (steps.empty() || std::abs(steps.back()) <= 2) return loops;
  for (PackLoop& loop : loops) {
    if (loop.step == 1 && loop.extent.constant() && loop.extent.full >= directive.lanes) {
      loop.transposed = true;
      break;
    }
  }
  return loops;
}

}  // namespace kiln::schedule
