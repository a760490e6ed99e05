#include "compiler/schedule/synchronize.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/walk.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/reduction.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using Body = std::vector<Statement>;

// The ThreadReduce in a statement; null: none.
const ThreadReduce* FindReduce(const Statement& statement) {
  const auto in = [](const Body& body) -> const ThreadReduce* {
    for (const Statement& inner : body) {
      if (const ThreadReduce* found = FindReduce(inner)) return found;
    }
    return nullptr;
  };
  if (const auto* reduce = std::get_if<ThreadReduce>(&statement.node)) return reduce;
  if (const auto* loop = std::get_if<Loop>(&statement.node)) return in(loop->body);
  const auto* branch = std::get_if<Branch>(&statement.node);
  if (branch == nullptr) return nullptr;
  const ThreadReduce* found = in(branch->then_body);
  return found != nullptr ? found : in(branch->else_body);
}

// Whether these are ThreadReduces and what stands around them: all of it is taken apart at once.
bool AreReductions(const Body& body) {
  return std::all_of(body.begin(), body.end(), [](const Statement& statement) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) return AreReductions(loop->body);
    if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      return AreReductions(branch->then_body) && AreReductions(branch->else_body);
    }
    return std::holds_alternative<ThreadReduce>(statement.node);
  });
}

class ReductionExpander {
 public:
  explicit ReductionExpander(LoopProgram& program) : program_(program), folder_(*program.context) {}

  Body Expand(Body body) {
    Body result;
    for (Statement& statement : body) {
      if (FindReduce(statement) == nullptr) {
        result.push_back(std::move(statement));
        continue;
      }
      Body nest;
      nest.push_back(std::move(statement));
      if (AreReductions(nest)) {
        ExpandNest(nest, &result);
      } else {
        // No loop of threads: in these there are ThreadReduces alone (plan_threads.cc).
        Statement& around = nest[0];
        if (auto* loop = std::get_if<Loop>(&around.node)) {
          loop->body = Expand(std::move(loop->body));
        } else if (auto* branch = std::get_if<Branch>(&around.node)) {
          branch->then_body = Expand(std::move(branch->then_body));
          branch->else_body = Expand(std::move(branch->else_body));
        }
        result.push_back(std::move(around));
      }
    }
    return result;
  }

 private:
  using Make = std::function<Statement(const ThreadReduce&)>;

  // The nest with other statements in place of its ThreadReduces.
  static void Replace(const Body& nest, const Make& make, Body* out) {
    for (const Statement& statement : nest) {
      if (const auto* reduce = std::get_if<ThreadReduce>(&statement.node)) {
        out->push_back(make(*reduce));
      } else if (const auto* loop = std::get_if<Loop>(&statement.node)) {
        Loop copy{loop->range, loop->extent, loop->kind, {}, loop->stride, loop->places};
        Replace(loop->body, make, &copy.body);
        out->push_back(Statement{std::move(copy)});
      } else {
        const auto& branch = std::get<Branch>(statement.node);
        Branch copy{branch.condition, {}, {}};
        Replace(branch.then_body, make, &copy.then_body);
        Replace(branch.else_body, make, &copy.else_body);
        out->push_back(Statement{std::move(copy)});
      }
    }
  }

  // All of the nest are of one reduction, and so of as many threads.
  void ExpandNest(const Body& nest, Body* out) {
    const int64_t places = ir::ExtentOf(FindReduce(nest[0])->value->operand(1));
    Replace(
        nest,
        [&](const ThreadReduce& here) {
          const Node* range = here.value->operand(1);
          Store store;
          store.buffer = here.buffer;
          store.index = folder_.Add(here.index, range);
          store.value = here.value->operand(0);
          return InThreads(range, here.stride, places, store);
        },
        out);
    for (int64_t half = places / 2; half >= 1; half /= 2) {
      const Node* range = folder_.Range(NextRange(), half);
      Replace(
          nest,
          [&](const ThreadReduce& here) {
            return InThreads(range, here.stride, places, AddOther(here, range, half));
          },
          out);
    }
  }

  static Statement InThreads(const Node* range, int64_t stride, int64_t places, Store store) {
    Loop threads;
    threads.kind = LoopKind::kThread;
    threads.range = range;
    threads.stride = stride;
    threads.places = places;
    threads.body.push_back(Statement{store});
    return Statement{std::move(threads)};
  }

  Store AddOther(const ThreadReduce& reduce, const Node* range, int64_t half) {
    Store store;
    store.buffer = reduce.buffer;
    store.index = folder_.Add(reduce.index, range);
    const ir::DType dtype = reduce.value->dtype();
    const Node* mine = folder_.Load(dtype, reduce.buffer, store.index, nullptr);
    const Node* other =
        folder_.Load(dtype, reduce.buffer, folder_.Add(store.index, folder_.Int(half)), nullptr);
    store.value =
        Combine(folder_.context(), reduce.value->attr<ir::ReduceAttr>().kind, mine, other);
    return store;
  }

  int64_t NextRange() {
    if (next_range_ == 0) {
      for (const auto& [range, axis] : program_.axes) See(range);
      for (const Section& section : program_.sections) SeeAll(section.body);
    }
    return next_range_++;
  }
  void See(const Node* range) {
    next_range_ = std::max(next_range_, range->attr<ir::RangeAttr>().id + 1);
  }
  void SeeAll(const Body& body) {
    for (const Statement& statement : body) {
      if (const auto* loop = std::get_if<Loop>(&statement.node)) {
        See(loop->range);
        SeeAll(loop->body);
      } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
        SeeAll(branch->then_body);
        SeeAll(branch->else_body);
      }
    }
  }

  const LoopProgram& program_;
  kernel::ExpressionFolder folder_;
  int64_t next_range_ = 0;
};

// Sets how many places the outermost digits have, and leaves what threads that differ in further
// digits alone would write alike to the first of them.
class DigitFinisher {
 public:
  explicit DigitFinisher(LoopProgram& program) : program_(program) {}

  // `stride`: of the innermost loop of threads around; 0: none.
  void Finish(Body& body, int64_t stride) {
    for (Statement& statement : body) {
      if (auto* loop = std::get_if<Loop>(&statement.node)) {
        const bool thread = loop->kind == LoopKind::kThread;
        if (thread && stride == 0) {
          loop->places = (program_.threads + loop->stride - 1) / loop->stride;
        }
        Finish(loop->body, thread ? loop->stride : stride);
      } else if (auto* branch = std::get_if<Branch>(&statement.node)) {
        Finish(branch->then_body, stride);
        Finish(branch->else_body, stride);
      } else if (stride > 1 && WritesMemory(statement)) {
        Loop first;
        first.kind = LoopKind::kThread;
        first.range = kernel::ExpressionFolder(*program_.context).Range(kFirst, 1);
        first.places = stride;
        first.body.push_back(std::move(statement));
        statement.node = std::move(first);
      }
    }
  }

 private:
  // A range of one value is told from others by nobody.
  static constexpr int64_t kFirst = int64_t{1} << 40;

  bool WritesMemory(const Statement& statement) const {
    const auto* store = std::get_if<Store>(&statement.node);
    return store != nullptr && program_.buffers[store->buffer].space != Space::kRegister;
  }

  LoopProgram& program_;
};

// Which buffers were read and written since all threads met, and whether by the first thread alone.
struct Accesses {
  using Buffers = std::set<std::pair<int, bool>>;
  Buffers read;
  Buffers written;

  void Add(const Accesses& more) {
    read.insert(more.read.begin(), more.read.end());
    written.insert(more.written.begin(), more.written.end());
  }
  bool Conflicts(const Accesses& next) const {
    return Meet(written, next.read) || Meet(written, next.written) || Meet(read, next.written);
  }
  bool operator==(const Accesses&) const = default;

 private:
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
    } else if (const auto* store = std::get_if<Store>(&statement.node)) {
      const bool memory = program_.buffers[store->buffer].space != Space::kRegister;
      const bool first = memory && !in_threads;
      for (const Node* root : {store->index, store->value, store->valid}) {
        SeeLoads(root, first, accesses);
      }
      if (memory) accesses->written.insert({store->buffer, first});
    }
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

bool StandsInBranch(const Body& body, bool in_branch) {
  return std::any_of(body.begin(), body.end(), [in_branch](const Statement& statement) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      return StandsInBranch(loop->body, in_branch);
    }
    if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      return StandsInBranch(branch->then_body, true) || StandsInBranch(branch->else_body, true);
    }
    return in_branch && std::holds_alternative<Barrier>(statement.node);
  });
}

}  // namespace

bool HasBarrierInBranch(const LoopProgram& program) {
  return std::any_of(program.sections.begin(), program.sections.end(), [](const Section& section) {
    return StandsInBranch(section.body, false);
  });
}

LoopProgram Synchronize(LoopProgram program) {
  if (program.threads == 1) return program;
  ReductionExpander reductions(program);
  for (Section& section : program.sections) {
    section.body = reductions.Expand(std::move(section.body));
    DigitFinisher(program).Finish(section.body, 0);
    Accesses open;
    BarrierPlacer(program).Place(&section.body, &open);
  }
  return program;
}

}  // namespace kiln::schedule
