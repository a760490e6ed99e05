#include "compiler/schedule/apply/accumulators.h"

#include <string>

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/reduction.h"

namespace kiln::schedule {

using ir::Node;
using ir::Op;

std::shared_ptr<const Accumulators> AccumulatorBuilder::New(absl::Span<const int> tile,
                                                            const State& state, Space space,
                                                            int depth) {
  auto result = std::make_shared<Accumulators>();
  result->space = space;
  const bool registers = space == Space::kRegister;
  // The lanes may be open already, outside the tile.
  int vector = placer_.OpenVectorAxis(state);
  std::vector<int> others;
  for (int axis : tile) {
    if (plan_.axes[axis].binding == Binding::kVector) {
      vector = axis;
    } else if (!IsPrivate(space) || plan_.axes[axis].binding != Binding::kThread) {
      others.push_back(axis);
    }
    if (plan_.axes[axis].reduce) result->partial.push_back(axis);
  }
  // Each thread has its own registers and scratch; in shared memory, threads whose loops are open
  // need separate parts.
  for (size_t axis = 0; axis < plan_.axes.size() && !IsPrivate(space); ++axis) {
    const bool open = state.values[axis] != nullptr;
    if (open && plan_.axes[axis].binding == Binding::kThread)
      others.push_back(static_cast<int>(axis));
  }
  const int64_t lanes = vector < 0 ? 1 : plan_.axes[vector].extent;
  // A register slot holds all lanes; in scratch they are adjacent elements, so that a vector is one
  // load.
  int64_t elements = registers ? 1 : lanes;
  if (vector >= 0 && !registers) result->dimensions.push_back({vector, 1});
  for (auto it = others.rbegin(); it != others.rend(); ++it) {
    result->dimensions.push_back({*it, elements});
    elements *= plan_.axes[*it].extent;
  }
  const std::string purpose = depth == 0 ? "sum" : StrCat("block", depth, "_");
  for (size_t i = 0; i < reduces_.size(); ++i) {
    result->buffers.push_back(buffers_.Get(purpose, static_cast<int>(i), reduces_[i]->dtype(),
                                           elements, result->space,
                                           registers ? static_cast<int>(lanes) : 1));
  }
  return result;
}

const Node* AccumulatorBuilder::Index(const Accumulators& from, const State& state) {
  const Node* index = folder_.Int(0);
  for (const Accumulators::Dimension& dimension : from.dimensions) {
    index = folder_.Add(index, folder_.Mul(nest_.Value(dimension.axis, state), dimension.stride));
  }
  return index;
}

const Node* AccumulatorBuilder::Load(const Accumulators& from, size_t which, const State& state) {
  return folder_.Load(reduces_[which]->dtype(), from.buffers[which], Index(from, state), nullptr);
}

Body AccumulatorBuilder::Initialise(const State& state, const Accumulators& to) {
  Body body;
  for (size_t i = 0; i < reduces_.size(); ++i) {
    Store store;
    store.buffer = to.buffers[i];
    store.index = Index(to, state);
    store.value = IdentityOf(folder_.context(), reduces_[i]->attr<ir::ReduceAttr>().kind,
                             reduces_[i]->dtype());
    body.push_back(Statement{store});
  }
  return body;
}

Body AccumulatorBuilder::Copy(const State& state, const Accumulators& from,
                              const Accumulators& to) {
  Body body;
  for (size_t i = 0; i < reduces_.size(); ++i) {
    Store store;
    store.buffer = to.buffers[i];
    store.index = Index(to, state);
    store.value = Load(from, i, state);
    body.push_back(Statement{store});
  }
  return body;
}

Body AccumulatorBuilder::Add(const State& state, const Accumulators& from, const Accumulators& to) {
  Body body;
  for (size_t i = 0; i < reduces_.size(); ++i) {
    Store store;
    store.buffer = to.buffers[i];
    store.index = Index(to, state);
    store.value = Combine(folder_.context(), reduces_[i]->attr<ir::ReduceAttr>().kind,
                          Load(to, i, state), Load(from, i, state));
    body.push_back(Statement{store});
  }
  return body;
}

const Node* AccumulatorBuilder::SumOverPartial(size_t which, State state, const Accumulators& from,
                                               absl::Span<const int> partial) {
  if (partial.empty()) return Load(from, which, state);
  const Axis& axis = plan_.axes[partial[0]];
  const ir::ReduceKind kind = reduces_[which]->attr<ir::ReduceAttr>().kind;
  std::vector<const Node*> parts;
  for (int64_t i = 0; i < axis.extent; ++i) {
    state.values[partial[0]] = folder_.Int(i);
    parts.push_back(SumOverPartial(which, state, from, partial.subspan(1)));
  }
  // Combined as a tree, so that the chain of dependent operations is short.
  for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2)) {
    const size_t half = (parts.size() + 1) / 2;
    for (size_t i = half; i < parts.size(); ++i) {
      parts[i - half] = Combine(folder_.context(), kind, parts[i - half], parts[i]);
    }
  }
  return parts[0];
}

int AccumulatorBuilder::ThreadAxis(const Accumulators& from) const {
  for (const int axis : from.partial) {
    const bool threads = plan_.axes[axis].binding == Binding::kThread;
    if (threads && plan_.axes[axis].extent > 1) return axis;
  }
  return -1;
}

std::shared_ptr<const Accumulators> AccumulatorBuilder::NewTotals(absl::Span<const int> tile,
                                                                  int thread_axis) {
  auto totals = std::make_shared<Accumulators>();
  totals->space = buffers_.memory();
  // The threads' parts are adjacent until they are combined.
  int64_t elements = plan_.axes[thread_axis].extent;
  for (auto axis = tile.rbegin(); axis != tile.rend(); ++axis) {
    if (plan_.axes[*axis].reduce) continue;
    totals->dimensions.push_back({*axis, elements});
    elements *= plan_.axes[*axis].extent;
  }
  for (size_t i = 0; i < reduces_.size(); ++i) {
    totals->buffers.push_back(buffers_.Get("total", static_cast<int>(i), reduces_[i]->dtype(),
                                           elements, totals->space, 1));
  }
  return totals;
}

Statement AccumulatorBuilder::CombineThreads(size_t which, const State& state,
                                             const Accumulators& from, const Accumulators& totals) {
  const int axis = ThreadAxis(from);
  State thread = state;
  const Node* range = nest_.NewRange(plan_.axes[axis].extent, axis);
  thread.values[axis] = range;
  const Node* value = Total(which, thread, from);
  ThreadReduce reduce;
  reduce.buffer = totals.buffers[which];
  reduce.index = Index(totals, state);
  reduce.value = folder_.context().Get(Op::kReduce, value->dtype(), {}, {value, range},
                                       reduces_[which]->attribute());
  reduce.stride = plan_.axes[axis].stride;
  return Statement{reduce};
}

const Node* AccumulatorBuilder::Total(size_t which, State state, const Accumulators& from) {
  std::vector<int> unrolled;
  int vector = -1;
  for (int axis : from.partial) {
    if (plan_.axes[axis].binding == Binding::kVector) {
      vector = axis;
    } else if (plan_.axes[axis].binding != Binding::kThread) {
      unrolled.push_back(axis);
    }
  }
  if (vector < 0) return SumOverPartial(which, state, from, unrolled);
  // Combines the copies lane by lane first, so that only one vector is reduced across its lanes.
  const Node* range = nest_.NewRange(plan_.axes[vector].extent, vector);
  state.values[vector] = range;
  const Node* value = SumOverPartial(which, state, from, unrolled);
  return folder_.context().Get(Op::kReduce, value->dtype(), {}, {value, range},
                               reduces_[which]->attribute());
}

}  // namespace kiln::schedule
