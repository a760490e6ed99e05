#include "compiler/schedule/apply/operand_packer.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/walk.h"

namespace kiln::schedule {

using ir::Node;

// Returns the terms of a dimension that are not open, grouped into dimensions in which one axis has
// the coefficient 1 or -1, as FixDimension requires. Each axis gets its own dimension in two cases.
// Without the open axes, no coefficient may be 1, so that many positions of the sum would be holes.
// Or two parts end early, each with its own loop, so that the sum has no single end.
std::vector<OperandPacker::Terms> OperandPacker::Unopened(const StageOperand::Dimension& dimension,
                                                          const State& state) const {
  Terms terms;
  int64_t factor = 0;
  absl::flat_hash_set<const Node*> ends;
  for (const StageOperand::Term& term : dimension) {
    const int part = nest_.UnopenedPart(term.axis, state);
    if (part < 0) continue;
    terms.push_back({term.coefficient, part});
    factor = std::gcd(factor, term.coefficient);
    const Node* is_last = state.extents[part].is_last;
    if (is_last != nullptr) ends.insert(is_last);
  }
  bool has_unit = terms.empty();
  for (StagedOperand::Term& term : terms) {
    term.coefficient /= factor;
    has_unit |= std::abs(term.coefficient) == 1;
  }
  if (has_unit && ends.size() <= 1) return {std::move(terms)};
  std::vector<Terms> apart;
  for (const StagedOperand::Term& term : terms) apart.push_back({{1, term.part}});
  return apart;
}

// Returns the distance between rows: whole vectors, in shared memory an odd number of them.
int64_t OperandPacker::RowLength(int64_t size, int64_t lanes) const {
  const int64_t vectors = (size + lanes - 1) / lanes;
  const bool odd = plan_.threads > 1 && lanes > 1;
  return (odd ? vectors | 1 : vectors) * lanes;
}

StagedOperand OperandPacker::Layout(const StageOperand& directive, const Node* operand,
                                    const State& state) {
  StagedOperand staged;
  staged.operand = operand;
  staged.lanes = directive.lanes;
  for (const StageOperand::Dimension& dimension : directive.layout) {
    for (Terms& terms : Unopened(dimension, state)) {
      staged.dimensions.push_back({std::move(terms)});
    }
  }
  int64_t elements = 1;
  for (auto it = staged.dimensions.rbegin(); it != staged.dimensions.rend(); ++it) {
    int64_t high = 0;
    for (const StagedOperand::Term& term : it->terms) {
      // Reserves space for ragged parts as if they were full, but the lowest position is a real
      // one.
      const Extent& extent = state.extents[term.part];
      if (term.coefficient < 0) {
        it->low.full += term.coefficient * (extent.full - 1);
        it->low.last += term.coefficient * (extent.last - 1);
        if (!extent.constant()) it->low.is_last = extent.is_last;
      } else {
        high += term.coefficient * (nest_.NominalExtent(term.part) - 1);
      }
    }
    it->stride = elements;
    const bool innermost = it == staged.dimensions.rbegin();
    const int64_t size = high - std::min(it->low.full, it->low.last) + 1;
    elements *= innermost ? RowLength(size, directive.lanes) : size;
  }
  staged.buffer = buffers_.Get("staged", directive.operand, staged.operand->dtype(), elements,
                               buffers_.memory(), 1);
  return staged;
}

const Node* OperandPacker::Low(const StagedOperand::Dimension& dimension) {
  return dimension.low.constant() ? folder_.Int(dimension.low.full) : nest_.Count(dimension.low);
}

Extent OperandPacker::DimensionExtent(const StagedOperand::Dimension& dimension,
                                      const State& state) const {
  Extent result{1, 1, nullptr};
  for (const StagedOperand::Term& term : dimension.terms) {
    const Extent& extent = state.extents[term.part];
    const int64_t scale = std::abs(term.coefficient);
    result.full += scale * (extent.full - 1);
    result.last += scale * (extent.last - 1);
    if (extent.is_last != nullptr) result.is_last = extent.is_last;
  }
  return result;
}

// Gives the axes of a dimension values whose sum is `value` + low. Any such values are right: the
// operand depends on the axes only through this sum.
void OperandPacker::FixDimension(const StagedOperand::Dimension& dimension, const Node* value,
                                 State* state) {
  const Node* shifted = folder_.Add(value, Low(dimension));
  bool solved = false;
  for (const StagedOperand::Term& term : dimension.terms) {
    if (!solved && std::abs(term.coefficient) == 1) {
      state->values[term.part] = folder_.Mul(shifted, term.coefficient);
      solved = true;
    } else {
      state->values[term.part] = folder_.Int(0);
    }
  }
}

Body OperandPacker::Pack(const StageOperand& directive, const StagedOperand& staged,
                         const State& state) {
  if (plan_.threads > 1) return PackByThreads(staged, state);
  const std::vector<PackLoop> loops = PackLoops(directive, staged, state);
  return PackFrom(directive, staged, loops, state, folder_.Int(0), nullptr);
}

Body OperandPacker::PackFrom(const StageOperand& directive, const StagedOperand& staged,
                             absl::Span<const PackLoop> loops, const State& state,
                             const Node* index, const Node* square) {
  if (loops.empty()) return PackLanes(directive, staged, state, index, square);
  const PackLoop& here = loops[0];
  auto inside = [&](const Node* value, const Node* of_square) {
    State inner = state;
    // The loop also counts through the dimensions that were joined into it.
    for (const StagedOperand::Dimension& dimension : here.zeroed) {
      FixDimension(dimension, folder_.Int(0), &inner);
    }
    FixDimension(here.dimension, value, &inner);
    return PackFrom(directive, staged, loops.subspan(1), inner,
                    folder_.Add(index, folder_.Mul(value, here.dimension.stride)), of_square);
  };
  if (!here.transposed)
    return CountLoop(here.extent, [&](const Node* i) { return inside(i, square); });
  const int64_t lanes = directive.lanes;
  const int64_t squares = here.extent.full / lanes;
  const int64_t rest = here.extent.full % lanes;
  const Node* within = nest_.NewRange(lanes);
  Body body = CountLoop({squares, squares, nullptr}, [&](const Node* i) {
    return inside(folder_.Add(folder_.Mul(i, lanes), within), within);
  });
  if (rest == 0) return body;
  Append(&body, CountLoop({rest, rest, nullptr}, [&](const Node* i) {
    return inside(folder_.Add(folder_.Int(squares * lanes), i), square);
  }));
  return body;
}

Body OperandPacker::CountLoop(const Extent& extent,
                              const std::function<Body(const Node*)>& inside) {
  if (extent.constant() && extent.full == 1) return inside(folder_.Int(0));
  Loop loop;
  loop.range = nest_.NewRange(std::max(extent.full, extent.last));
  if (!extent.constant()) loop.extent = nest_.Count(extent);
  loop.body = inside(loop.range);
  Body body;
  body.push_back(Statement{std::move(loop)});
  return body;
}

Body OperandPacker::PackLanes(const StageOperand& directive, const StagedOperand& staged,
                              const State& state, const Node* index, const Node* square) {
  const Extent extent = DimensionExtent(staged.dimensions.back(), state);
  const int64_t lanes = directive.lanes;
  const int64_t extent_max = std::max(extent.full, extent.last);
  auto vector = [&](const Node* begin, int64_t count, const Node* condition) {
    return PackVector(staged, lanes, state, index, square, begin, count, condition);
  };
  Body body;
  const int64_t whole = extent_max / lanes;
  // With a constant extent, a shorter vector at the end is separate code. With a computed one,
  // every vector is masked in the same way.
  const Node* condition = extent.constant() ? nullptr : nest_.Count(extent);
  const int64_t serial = condition == nullptr ? whole : (extent_max + lanes - 1) / lanes;
  if (serial > 0) {
    Loop loop;
    // Squares already unroll their rows.
    loop.kind = serial <= 4 && square == nullptr ? LoopKind::kUnrolled : LoopKind::kSerial;
    loop.range = nest_.NewRange(serial);
    const Node* begin = serial == 1 ? folder_.Int(0) : folder_.Mul(loop.range, lanes);
    Statement inside = vector(begin, lanes, condition);
    if (serial == 1) {
      body.push_back(std::move(inside));
    } else {
      loop.body.push_back(std::move(inside));
      body.push_back(Statement{std::move(loop)});
    }
  }
  if (condition == nullptr && extent_max % lanes != 0) {
    body.push_back(vector(folder_.Int(whole * lanes), extent_max % lanes, nullptr));
  }
  return body;
}

// Packs one vector of the last dimension, from `begin` on. Its first `count` lanes are real, and of
// these only positions below `condition`, if it is not null.
Statement OperandPacker::PackVector(const StagedOperand& staged, int64_t lanes, const State& state,
                                    const Node* index, const Node* square, const Node* begin,
                                    int64_t count, const Node* condition) {
  Loop loop;
  loop.kind = LoopKind::kVector;
  loop.range = nest_.NewRange(lanes);
  State inner = state;
  const Node* position = folder_.Add(begin, loop.range);
  FixDimension(staged.dimensions.back(), position, &inner);
  if (count < lanes) inner.masks.push_back({loop.range, count, false});
  kernel::ExpressionFolder::Map memo = placer_.RangeValues(inner);
  Store store;
  store.buffer = staged.buffer;
  store.index = folder_.Add(index, position);
  store.value = placer_.Place(staged.operand, inner, &memo);
  if (condition != nullptr) {
    store.valid = folder_.Less(position, condition);
    store.value = MaskLoads(store.value, store.valid);
  }
  loop.body.push_back(Statement{store});
  if (square == nullptr) return Statement{std::move(loop)};
  Loop rows;
  rows.kind = LoopKind::kUnrolled;
  rows.range = square;
  rows.body.push_back(Statement{std::move(loop)});
  return Statement{std::move(rows)};
}

// Masks loads: where the copy ends early, the source may end as well, so lanes past that must not
// read.
const Node* OperandPacker::MaskLoads(const Node* root, const Node* valid) {
  kernel::ExpressionFolder::Map masked;
  for (const Node* node : ir::TopologicalOrder({root})) {
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(masked.at(operand));
    if (node->op() != ir::Op::kLoad) {
      masked[node] =
          operands.empty() ? node : folder_.context().WithOperands(node, std::move(operands));
      continue;
    }
    masked[node] =
        folder_.Load(node->dtype(), static_cast<int>(node->attr<ir::IntAttr>().value), operands[0],
                     folder_.And(operands.size() > 1 ? operands[1] : nullptr, valid));
  }
  return masked.at(root);
}

// Returns whether the lanes run along only the last dimension, in whole vectors.
bool OperandPacker::IsFilledUp(const StagedOperand& staged, const LaneMask& mask,
                               const State& state) {
  if (staged.lanes % mask.range->attr<ir::RangeAttr>().extent != 0) return false;
  const StagedOperand::Dimension& last = staged.dimensions.back();
  for (const StagedOperand::Dimension& dimension : staged.dimensions) {
    for (const StagedOperand::Term& term : dimension.terms) {
      if (!kernel::DependsOn(nest_.Value(term.part, state), mask.range)) continue;
      if (&dimension != &last || last.terms.size() > 1) return false;
    }
  }
  return true;
}

const Node* OperandPacker::Load(const StagedOperand& staged, const State& state) {
  const Node* index = folder_.Int(0);
  for (const StagedOperand::Dimension& dimension : staged.dimensions) {
    const Node* position = folder_.Mul(Low(dimension), -1);
    for (const StagedOperand::Term& term : dimension.terms) {
      position =
          folder_.Add(position, folder_.Mul(nest_.Value(term.part, state), term.coefficient));
    }
    index = folder_.Add(index, folder_.Mul(position, dimension.stride));
  }
  const Node* valid = nullptr;
  for (const LaneMask& mask : state.masks) {
    if (!kernel::DependsOn(index, mask.range) || IsFilledUp(staged, mask, state)) continue;
    valid = folder_.And(valid, folder_.Less(mask.range, folder_.Int(mask.count)));
  }
  return folder_.Load(staged.operand->dtype(), staged.buffer, index, valid);
}

}  // namespace kiln::schedule
