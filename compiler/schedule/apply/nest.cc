#include "compiler/schedule/apply/nest.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"

namespace kiln::schedule {
namespace {

using ir::Node;

LoopKind KindOf(Binding binding) {
  switch (binding) {
    case Binding::kUnroll:
    case Binding::kMatrix:
      return LoopKind::kUnrolled;
    case Binding::kVector:
      return LoopKind::kVector;
    case Binding::kThread:
      return LoopKind::kThread;
    default:
      return LoopKind::kSerial;
  }
}

// Returns whether such a loop may compute its number of iterations; other bodies need a constant.
bool TakesComputedExtent(Binding binding) {
  return binding == Binding::kSerial || binding == Binding::kThread;
}

Body Single(Loop loop) {
  Body body;
  body.push_back(Statement{std::move(loop)});
  return body;
}

}  // namespace

void Append(Body* body, Body more) {
  for (Statement& statement : more) body->push_back(std::move(statement));
}

const Node* Nest::NewRange(int64_t extent, int axis) {
  const Node* range = folder_.Range(next_range_++, extent);
  if (axis >= 0) {
    const bool is_new = range_axes_.emplace(range, axis).second;
    KILN_CHECK(is_new) << "a range opens two axes, the second is " << axis;
  }
  return range;
}

State Nest::Start() const {
  State state;
  state.values.resize(plan_.axes.size());
  state.extents.resize(plan_.axes.size());
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Axis& axis = plan_.axes[i];
    state.extents[i] = Extent{axis.extent, axis.extent, nullptr};
  }
  return state;
}

// A new extent of a split axis does not change its parts: they are derived when the outer part
// opens.
void Nest::SetExtent(int axis, State* state, const Extent& extent) const {
  state->extents[axis] = extent;
}

const Node* Nest::Count(const Extent& extent) {
  return folder_.Where(extent.is_last, folder_.Int(extent.last), folder_.Int(extent.full));
}

const Node* Nest::Value(int number, const State& state) {
  const Axis& axis = plan_.axes[number];
  if (state.values[number] != nullptr) return state.values[number];
  if (axis.digit > 0) {
    const Node* fused = Value(axis.fused_into, state);
    const Node* quotient = folder_.Quotient(fused, axis.digit);
    // Where the two are adjacent in memory, the quotient cancels from the index.
    return axis.fused_as_inner ? folder_.Add(fused, folder_.Mul(quotient, -axis.digit)) : quotient;
  }
  // The two ranges occur only as outer * extent(inner) + inner. So the inner one can stand for the
  // whole value, and the outer one for 0.
  if (axis.fused_into >= 0) {
    return axis.fused_as_inner ? Value(axis.fused_into, state) : folder_.Int(0);
  }
  if (axis.split()) {
    return folder_.Add(folder_.Mul(Value(axis.outer, state), axis.factor),
                       Value(axis.inner, state));
  }
  return folder_.Int(0);
}

int Nest::UnopenedPart(int number, const State& state) const {
  const Axis& axis = plan_.axes[number];
  if (axis.fused_into >= 0) return UnopenedPart(axis.fused_into, state);
  if (state.values[number] != nullptr) return -1;
  if (!axis.split()) return number;
  // The outer part is before the inner one: once it is open, only the inner part can be left.
  return UnopenedPart(axis.outer, state) < 0 ? UnopenedPart(axis.inner, state) : number;
}

int64_t Nest::NominalExtent(int number) const {
  const Axis& axis = plan_.axes[number];
  if (!axis.split()) return axis.extent;
  return NominalExtent(axis.outer) * NominalExtent(axis.inner);
}

Body Nest::Loops(absl::Span<const int> axes, State state, const Inside& inside) {
  if (axes.empty()) return inside(std::move(state));
  return Open(axes[0], std::move(state), [&, axes](State opened) {
    return Loops(axes.subspan(1), std::move(opened), inside);
  });
}

const Node* Nest::OpenTask(int axis, State* state) {
  // A constant: CheckOrder refuses tasks of pieces that may be shorter.
  KILN_CHECK(state->extents[axis].constant() && state->values[axis] == nullptr) << axis;
  const int64_t extent = state->extents[axis].full;
  const Node* range = NewRange(extent, axis);
  state->values[axis] = extent == 1 ? folder_.Int(0) : range;
  int inner;
  DeriveInner(axis, state, &inner);
  return range;
}

// Returns the part of an axis that is opened first; its binding decides what kind of extent the
// axis needs.
int Nest::Consumer(int axis) const {
  while (plan_.axes[axis].split()) axis = plan_.axes[axis].outer;
  return axis;
}

Body Nest::Decided(State state, const Inside& inside) {
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const int axis = static_cast<int>(i);
    if (state.extents[i].constant()) continue;
    if (TakesComputedExtent(plan_.axes[Consumer(axis)].binding)) continue;
    const Node* is_last = state.extents[i].is_last;
    return Branched(axis, std::move(state), is_last,
                    [&](State decided) { return Decided(std::move(decided), inside); });
  }
  return inside(std::move(state));
}

// Emits the same code twice, each with a constant extent for the axis.
Body Nest::Branched(int decided, State state, const Node* condition,
                    const std::function<Body(State)>& rest) {
  const Extent extent = state.extents[decided];
  Branch branch;
  branch.condition = condition;
  State last = state;
  last.extents[decided] = Extent{extent.last, extent.last, nullptr};
  state.extents[decided] = Extent{extent.full, extent.full, nullptr};
  branch.then_body = rest(std::move(last));
  branch.else_body = rest(std::move(state));
  Body body;
  body.push_back(Statement{std::move(branch)});
  return body;
}

Binding Nest::BindingOf(int axis, const State& state) const {
  const Binding binding = plan_.axes[axis].binding;
  const bool unrolled = binding == Binding::kUnroll || binding == Binding::kMatrix;
  return state.rolled && unrolled ? Binding::kSerial : binding;
}

// Sets the extent of the inner part once all parts of the outer part are open. Returns true if the
// extent depends on the place.
bool Nest::DeriveInner(int axis, State* state, int* inner) {
  // Outer parts are before inner ones, so the innermost part of an outer part is the last to open.
  while (plan_.axes[axis].parent >= 0 && plan_.axes[plan_.axes[axis].parent].inner == axis) {
    axis = plan_.axes[axis].parent;
  }
  const int parent = plan_.axes[axis].parent;
  if (parent < 0) return false;
  *inner = plan_.axes[parent].inner;
  const int64_t whole = state->extents[parent].full;
  const int64_t factor = plan_.axes[parent].factor;
  Extent extent{factor, factor, nullptr};
  // The only piece may be shorter than the factor.
  if (whole < factor) extent = Extent{whole, whole, nullptr};
  if (whole > factor && whole % factor != 0) {
    extent.last = whole % factor;
    extent.is_last = folder_.Equal(Value(axis, *state), folder_.Int(whole / factor));
  }
  SetExtent(*inner, state, extent);
  return !extent.constant();
}

Body Nest::Open(int number, State state, const Inside& inside) {
  const int parent = plan_.axes[number].parent;
  if (parent < 0 || plan_.axes[parent].outer == number) {
    return OpenAxis(number, std::move(state), inside);
  }
  // An inner part may be the last one of an outer part.
  int above = parent;
  while (plan_.axes[above].parent >= 0 && plan_.axes[plan_.axes[above].parent].inner == above) {
    above = plan_.axes[above].parent;
  }
  if (plan_.axes[above].parent < 0) return OpenAxis(number, std::move(state), inside);
  return OpenAxis(number, std::move(state), [&, number](State opened) {
    int inner;
    if (!DeriveInner(number, &opened, &inner) ||
        TakesComputedExtent(BindingOf(Consumer(inner), opened))) {
      return inside(std::move(opened));
    }
    const Node* is_last = opened.extents[inner].is_last;
    return Branched(inner, std::move(opened), is_last, inside);
  });
}

Body Nest::OpenAxis(int number, State state, const Inside& inside) {
  const Axis& axis = plan_.axes[number];
  KILN_CHECK(state.values[number] == nullptr) << "axis " << number << " is opened twice";
  if (axis.parent >= 0 && plan_.axes[axis.parent].outer == number) {
    return OpenOuter(number, axis.parent, std::move(state), inside);
  }
  const Extent extent = state.extents[number];
  if (extent.constant()) return OpenConstant(number, extent.full, std::move(state), inside);
  // Decided and Open have branched on the extents that must be constant.
  Loop loop = LoopOf(number, std::max(extent.full, extent.last), state);
  loop.extent = Count(extent);
  state.values[number] = loop.range;
  loop.body = inside(std::move(state));
  return Single(std::move(loop));
}

Body Nest::OpenConstant(int number, int64_t count, State state, const Inside& inside) {
  if (count == 0) return {};
  const Axis& axis = plan_.axes[number];
  const bool vector = axis.binding == Binding::kVector;
  // A vector axis keeps its loop even for one lane, since its accumulators are vectors. A loop of
  // threads is kept since only the first thread has the one iteration.
  const bool kept = vector || axis.binding == Binding::kThread;
  if (count == 1 && !(kept && axis.extent > 1)) {
    return OpenAt(number, folder_.Int(0), std::move(state), inside);
  }
  Loop loop = LoopOf(number, vector ? axis.extent : count, state);
  state.values[number] = loop.range;
  // Excess lanes run as well, with masks.
  if (vector && count < axis.extent) state.masks.push_back({loop.range, count, axis.reduce});
  loop.body = inside(std::move(state));
  return Single(std::move(loop));
}

// Returns a loop without a body, of the axis's kind.
Loop Nest::LoopOf(int number, int64_t extent, const State& state) {
  Loop loop;
  loop.kind = KindOf(BindingOf(number, state));
  loop.range = NewRange(extent, number);
  if (loop.kind == LoopKind::kThread) {
    loop.stride = plan_.axes[number].stride;
    loop.places = plan_.axes[number].extent;
  }
  return loop;
}

Body Nest::OpenAt(int axis, const Node* value, State state, const Inside& inside) {
  state.values[axis] = value;
  return inside(std::move(state));
}

Body Nest::OpenOuter(int number, int parent, State state, const Inside& inside) {
  const Extent whole = state.extents[parent];
  const int inner = plan_.axes[parent].inner;
  const int64_t factor = plan_.axes[parent].factor;
  if (!whole.constant()) return OpenOuterDynamic(number, parent, whole, std::move(state), inside);
  const int64_t tiles = whole.full / factor;
  const int64_t rest = whole.full % factor;
  SetExtent(inner, &state, Extent{factor, factor, nullptr});
  if (rest == 0) return OpenConstant(number, tiles, std::move(state), inside);
  // A loop runs over the shorter last piece as well if the loop inside can take a computed extent.
  // Otherwise the last piece is peeled off into separate code.
  const Binding binding = BindingOf(number, state);
  const bool peel = !TakesComputedExtent(binding) || tiles == 0 || plan_.axes[number].peel_last ||
                    !TakesComputedExtent(plan_.axes[Consumer(inner)].binding);
  if (!peel) {
    Loop loop = LoopOf(number, tiles + 1, state);
    state.values[number] = loop.range;
    SetExtent(inner, &state, Extent{factor, rest, folder_.Equal(loop.range, folder_.Int(tiles))});
    loop.body = inside(std::move(state));
    return Single(std::move(loop));
  }
  if (binding == Binding::kThread) {
    return OpenOuterInThreads(number, {tiles + 1, tiles + 1, nullptr}, inner, rest,
                              std::move(state), inside);
  }
  Body body = OpenConstant(number, tiles, state, inside);
  SetExtent(inner, &state, Extent{rest, rest, nullptr});
  Append(&body, OpenAt(number, folder_.Int(tiles), std::move(state), inside));
  return body;
}

// Builds pieces with one thread each. The last piece is shorter: always, or where `pieces.is_last`
// holds if that is not null.
Body Nest::OpenOuterInThreads(int number, const Extent& pieces, int inner, int64_t rest,
                              State state, const Inside& inside) {
  State last = state;
  SetExtent(inner, &last, Extent{rest, rest, nullptr});
  SetExtent(inner, &state, Extent{plan_.axes[inner].extent, plan_.axes[inner].extent, nullptr});
  if (pieces.constant() && pieces.full == 1)
    return OpenConstant(number, 1, std::move(last), inside);
  Loop loop = LoopOf(number, std::max(pieces.full, pieces.last), state);
  if (!pieces.constant()) loop.extent = Count(pieces);
  state.values[number] = loop.range;
  last.values[number] = folder_.Int(pieces.last - 1);
  Branch branch;
  branch.condition =
      folder_.And(pieces.is_last, folder_.Equal(loop.range, folder_.Int(pieces.last - 1)));
  branch.then_body = inside(std::move(last));
  branch.else_body = inside(std::move(state));
  loop.body.push_back(Statement{std::move(branch)});
  return Single(std::move(loop));
}

Body Nest::OpenOuterDynamic(int number, int parent, const Extent& whole, State state,
                            const Inside& inside) {
  const int inner = plan_.axes[parent].inner;
  const int64_t factor = plan_.axes[parent].factor;
  // A full piece would need its own shorter end, so the two cases become separate code.
  if (whole.full % factor != 0) {
    return Branched(parent, std::move(state), whole.is_last, [&, number](State decided) {
      return Open(number, std::move(decided), inside);
    });
  }
  const int64_t rest = whole.last % factor;
  Extent tiles{whole.full / factor, whole.last / factor, whole.is_last};
  const bool in_threads = BindingOf(number, state) == Binding::kThread;
  if (in_threads && rest != 0) {
    // One more thread has the rest.
    ++tiles.last;
    return OpenOuterInThreads(number, tiles, inner, rest, std::move(state), inside);
  }
  Loop loop = LoopOf(number, std::max(tiles.full, tiles.last), state);
  loop.extent = Count(tiles);
  State full = state;
  full.values[number] = loop.range;
  SetExtent(inner, &full, Extent{factor, factor, nullptr});
  loop.body = inside(std::move(full));
  // Only the last of the enclosing pieces has a rest.
  Body body = Single(std::move(loop));
  if (rest == 0) return body;
  Branch branch;
  branch.condition = whole.is_last;
  SetExtent(inner, &state, Extent{rest, rest, nullptr});
  branch.then_body = OpenAt(number, folder_.Int(tiles.last), std::move(state), inside);
  body.push_back(Statement{std::move(branch)});
  return body;
}

}  // namespace kiln::schedule
