#include "compiler/schedule/threads/place_barriers.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/walk.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using Body = std::vector<Statement>;

// The buffers that were read and written since the last barrier, and whether only by the first
// thread. For stores also the indices: at the same index, a later iteration writes other elements,
// or each thread writes its own again.
struct Accesses {
  using Buffers = std::set<std::pair<int, bool>>;
  Buffers read;
  Buffers written;
  std::set<std::pair<int, const Node*>> places;

  void Add(const Accesses& more) {
    read.insert(more.read.begin(), more.read.end());
    written.insert(more.written.begin(), more.written.end());
    places.insert(more.places.begin(), more.places.end());
  }
  bool Conflicts(const Accesses& next) const {
    return Meet(written, next.read) || Meet(read, next.written) ||
           (Meet(written, next.written) && AreOthers(next));
  }
  bool operator==(const Accesses&) const = default;

 private:
  // Returns whether a buffer is written at different indices here and in `next`.
  bool AreOthers(const Accesses& next) const {
    return std::any_of(next.places.begin(), next.places.end(), [this](const auto& place) {
      return std::any_of(places.begin(), places.end(), [&place](const auto& before) {
        return before.first == place.first && before.second != place.second;
      });
    });
  }

  // Two accesses by only the first thread never conflict: it executes them in order.
  static bool Meet(const Buffers& a, const Buffers& b) {
    return std::any_of(a.begin(), a.end(), [&b](const std::pair<int, bool>& one) {
      return b.contains({one.first, false}) || (!one.second && b.contains({one.first, true}));
    });
  }
};

class BarrierPlacer {
 public:
  explicit BarrierPlacer(const LoopProgram& program) : program_(program) {}

  // `open`: the accesses since the last barrier; first those before the body, on return those after
  // it.
  void Place(Body* body, Accesses* open) {
    Body result;
    for (Statement& statement : *body) {
      if (open->Conflicts(AccessesBefore(statement))) {
        result.push_back(Statement{Barrier{}});
        *open = {};
      }
      open->Add(FirstAccesses(statement));
      PlaceInside(&statement, open);
      result.push_back(std::move(statement));
    }
    *body = std::move(result);
  }

 private:
  // Returns whether no barrier can be inside: loops of threads, and statements other than loops and
  // branches.
  bool IsOnePhase(const Statement& statement) const {
    const auto* loop = std::get_if<Loop>(&statement.node);
    if (loop != nullptr) return loop->kind == LoopKind::kThread;
    return !std::holds_alternative<Branch>(statement.node);
  }

  // Returns the accesses that need a barrier before the statement: all accesses in it. A barrier
  // inside a loop would run in each iteration, and for some barriers in branches PoCL's compiler
  // (3.1) fails.
  Accesses AccessesBefore(const Statement& statement) const {
    Accesses all;
    See(statement, false, &all);
    return all;
  }

  // Returns the accesses before the first place inside the statement that can have a barrier.
  Accesses FirstAccesses(const Statement& statement) const {
    Accesses first;
    if (IsOnePhase(statement)) {
      See(statement, false, &first);
    } else if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      SeeLoads(loop->extent, false, &first);
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      SeeLoads(branch->condition, false, &first);
    }
    return first;
  }

  void PlaceInside(Statement* statement, Accesses* open) {
    if (IsOnePhase(*statement)) return;
    if (auto* branch = std::get_if<Branch>(&statement->node)) {
      Accesses other = *open;
      Place(&branch->then_body, open);
      Place(&branch->else_body, &other);
      return open->Add(other);
    }
    Body& body = std::get<Loop>(statement->node).body;
    // The loop may have no iteration.
    const Accesses before = *open;
    *open = AtIteration(body, before);
    Place(&body, open);
    open->Add(before);
  }

  // Returns the open accesses at the start of an iteration: from before the loop, and from the
  // previous iteration.
  Accesses AtIteration(const Body& body, Accesses begin) const {
    while (true) {
      Accesses end = begin;
      PassOver(body, &end);
      Accesses joined = begin;
      joined.Add(end);
      if (joined == begin) return begin;
      begin = std::move(joined);
    }
  }

  // Computes the accesses that Place would leave open, without placing barriers.
  void PassOver(const Body& body, Accesses* open) const {
    for (const Statement& statement : body) {
      if (open->Conflicts(AccessesBefore(statement))) *open = {};
      open->Add(FirstAccesses(statement));
      if (IsOnePhase(statement)) continue;
      if (const auto* branch = std::get_if<Branch>(&statement.node)) {
        Accesses other = *open;
        PassOver(branch->then_body, open);
        PassOver(branch->else_body, &other);
        open->Add(other);
        continue;
      }
      const Body& inner = std::get<Loop>(statement.node).body;
      const Accesses before = *open;
      *open = AtIteration(inner, before);
      PassOver(inner, open);
      open->Add(before);
    }
  }

  // `in_threads`: inside a loop of threads.
  void See(const Statement& statement, bool in_threads, Accesses* accesses) const {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      const bool thread = loop->kind == LoopKind::kThread;
      SeeLoads(loop->extent, false, accesses);
      // With one iteration of the outermost digit, only the first thread runs it.
      const bool first =
          thread && !in_threads && loop->stride == 1 && ir::ExtentOf(loop->range) == 1;
      Accesses inside;
      for (const Statement& inner : loop->body) See(inner, in_threads || thread, &inside);
      for (Accesses::Buffers* buffers : {&inside.read, &inside.written}) {
        if (!first) continue;
        Accesses::Buffers by_first;
        for (const auto& [buffer, any] : *buffers) by_first.insert({buffer, true});
        *buffers = std::move(by_first);
      }
      accesses->Add(inside);
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      SeeLoads(branch->condition, false, accesses);
      for (const Statement& inner : branch->then_body) See(inner, in_threads, accesses);
      for (const Statement& inner : branch->else_body) See(inner, in_threads, accesses);
    } else if (const auto* reduce = std::get_if<ThreadReduce>(&statement.node)) {
      SeeReduce(*reduce, accesses);
    } else if (const auto* store = std::get_if<Store>(&statement.node)) {
      const bool memory = !IsPrivate(program_.buffers[store->buffer].space);
      const bool first = memory && !in_threads;
      for (const Node* root : {store->index, store->value, store->valid}) {
        SeeLoads(root, first, accesses);
      }
      if (memory) {
        // The copy is visible only after a barrier, even to the thread that makes it.
        accesses->written.insert({store->buffer, first && !store->async});
        accesses->places.insert({store->buffer, store->index});
      }
    }
  }

  void SeeReduce(const ThreadReduce& reduce, Accesses* accesses) const {
    for (const Node* root : {reduce.index, reduce.value}) SeeLoads(root, false, accesses);
    accesses->written.insert({reduce.buffer, false});
    accesses->places.insert({reduce.buffer, reduce.index});
  }

  void SeeLoads(const Node* root, bool by_first, Accesses* accesses) const {
    if (root == nullptr) return;
    for (const Node* node : ir::TopologicalOrder({&root, 1})) {
      if (node->op() != ir::Op::kLoad) continue;
      const auto buffer = static_cast<int>(node->attr<ir::IntAttr>().value);
      if (!IsPrivate(program_.buffers[buffer].space)) {
        accesses->read.insert({buffer, by_first});
      }
    }
  }

  const LoopProgram& program_;
};

}  // namespace

void PlaceBarriers(LoopProgram* program) {
  BarrierPlacer placer(*program);
  for (Section& section : program->sections) {
    Accesses open;
    placer.Place(&section.body, &open);
  }
}

}  // namespace kiln::schedule
