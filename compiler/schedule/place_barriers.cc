#include "compiler/schedule/place_barriers.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/walk.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using Body = std::vector<Statement>;

// Which buffers were read and written since all threads met, and whether by the first thread alone.
// Of stores also where: at the same index, a later iteration writes other elements or what the same
// thread wrote.
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
  // Whether a buffer is written at several indices here and in `next`.
  bool AreOthers(const Accesses& next) const {
    return std::any_of(next.places.begin(), next.places.end(), [this](const auto& place) {
      return std::any_of(places.begin(), places.end(), [&place](const auto& before) {
        return before.first == place.first && before.second != place.second;
      });
    });
  }

  // The first thread does one thing after the other.
  static bool Meet(const Buffers& a, const Buffers& b) {
    return std::any_of(a.begin(), a.end(), [&b](const std::pair<int, bool>& one) {
      return b.contains({one.first, false}) || (!one.second && b.contains({one.first, true}));
    });
  }
};

class BarrierPlacer {
 public:
  explicit BarrierPlacer(const LoopProgram& program) : program_(program) {}

  // `open`: what was accessed since the last barrier, before and then behind the body.
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
  // Loops of threads and what is no loop are gone through without a stop.
  bool IsOnePhase(const Statement& statement) const {
    const auto* loop = std::get_if<Loop>(&statement.node);
    if (loop != nullptr) return loop->kind == LoopKind::kThread;
    return !std::holds_alternative<Branch>(statement.node);
  }

  // What is better waited for in front of the statement, all that is accessed in it: inside of a
  // loop a barrier would be met in each iteration, and in branches PoCL's compiler (3.1) fails for
  // some.
  Accesses AccessesBefore(const Statement& statement) const {
    Accesses all;
    See(statement, false, &all);
    return all;
  }

  // What is accessed before the first place inside where a barrier could stand.
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
    // It may run not even once.
    const Accesses before = *open;
    *open = AtIteration(body, before);
    Place(&body, open);
    open->Add(before);
  }

  // What is open where an iteration begins: what was before the loop, and what one before it left.
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

  // What Place would leave open, without placing anything.
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
      // Of an outermost digit of all places, the first is the first thread.
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
      const bool memory = program_.buffers[store->buffer].space != Space::kRegister;
      const bool first = memory && !in_threads;
      for (const Node* root : {store->index, store->value, store->valid}) {
        SeeLoads(root, first, accesses);
      }
      if (memory) {
        // Without a barrier, not even the thread that copies sees the copy.
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
      if (program_.buffers[buffer].space != Space::kRegister) {
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
