#include "compiler/schedule/threads/expand_reductions.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/reduction.h"
#include "compiler/schedule/threads/loop_ranges.h"

namespace kiln::schedule {
namespace {

using ir::Node;
using Body = std::vector<Statement>;

// Returns the ThreadReduce in a statement, or null.
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

// Returns whether the body has only ThreadReduces and the loops and branches around them; these are
// expanded together.
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
  ReductionExpander(LoopProgram& program, int shuffling)
      : shuffling_(shuffling), folder_(*program.context), next_range_(NextRange(program)) {}

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
        // Not a loop of threads: such loops contain only ThreadReduces (plan.cc).
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

  // Copies the nest, with other statements in place of its ThreadReduces.
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

  // Requires: all ThreadReduces of the nest are of one reduction, so over equally many threads.
  void ExpandNest(const Body& nest, Body* out) {
    const ThreadReduce& first = *FindReduce(nest[0]);
    const int64_t places = ir::ExtentOf(first.value->operand(1));
    // The groups of neighbours are whole then, whatever the higher digits of their numbers are.
    if (shuffling_ > 1 && first.stride == 1 && places % shuffling_ == 0) {
      return ExpandGroups(nest, places, out);
    }
    Replace(
        nest,
        [&](const ThreadReduce& here) {
          const Node* range = NewRange(places);
          kernel::ExpressionFolder::Map memo = {{here.value->operand(1), range}};
          Store store;
          store.buffer = here.buffer;
          store.index = folder_.Add(here.index, range);
          store.value = folder_.Substitute(here.value->operand(0), &memo);
          return InThreads(range, here.stride, places, Statement{store});
        },
        out);
    for (int64_t half = places / 2; half >= 1; half /= 2) {
      Replace(
          nest,
          [&](const ThreadReduce& here) {
            const Node* range = NewRange(half);
            return InThreads(range, here.stride, places, Statement{AddOther(here, range, half)});
          },
          out);
    }
  }

  // A new range for each loop, since emitters remember where a range was opened.
  const Node* NewRange(int64_t extent) { return folder_.Range(next_range_++, extent); }

  // Reduces each group of neighbours by shuffles, then adds up the groups' results.
  void ExpandGroups(const Body& nest, int64_t places, Body* out) {
    const int64_t groups = places / shuffling_;
    Replace(
        nest,
        [&](const ThreadReduce& here) {
          const Node* group = NewRange(groups);
          const Node* member = NewRange(shuffling_);
          kernel::ExpressionFolder::Map memo = {
              {here.value->operand(1), folder_.Add(folder_.Mul(group, shuffling_), member)}};
          ThreadReduce inside = here;
          inside.index = folder_.Add(here.index, group);
          inside.value = folder_.context().Get(
              ir::Op::kReduce, here.value->dtype(), {},
              {folder_.Substitute(here.value->operand(0), &memo), member}, here.value->attribute());
          return InThreads(group, shuffling_, groups, Statement{inside});
        },
        out);
    if (groups == 1) return;
    Replace(
        nest,
        [&](const ThreadReduce& here) {
          Store store;
          store.buffer = here.buffer;
          store.index = here.index;
          store.value = SumOf(here, 0, groups);
          return InThreads(NewRange(1), 1, places, Statement{store});
        },
        out);
  }

  // Returns the sum of `count` elements of shared memory, as a tree.
  const Node* SumOf(const ThreadReduce& reduce, int64_t first, int64_t count) {
    if (count == 1) {
      return folder_.Load(reduce.value->dtype(), reduce.buffer,
                          folder_.Add(reduce.index, folder_.Int(first)), nullptr);
    }
    return Combine(folder_.context(), reduce.value->attr<ir::ReduceAttr>().kind,
                   SumOf(reduce, first, count / 2), SumOf(reduce, first + count / 2, count / 2));
  }

  static Statement InThreads(const Node* range, int64_t stride, int64_t places, Statement inside) {
    Loop threads;
    threads.kind = LoopKind::kThread;
    threads.range = range;
    threads.stride = stride;
    threads.places = places;
    threads.body.push_back(std::move(inside));
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

  const int64_t shuffling_;
  kernel::ExpressionFolder folder_;
  int64_t next_range_;
};

}  // namespace

void ExpandReductions(LoopProgram* program, int shuffling) {
  ReductionExpander expander(*program, shuffling);
  for (Section& section : program->sections) {
    section.body = expander.Expand(std::move(section.body));
  }
}

}  // namespace kiln::schedule
