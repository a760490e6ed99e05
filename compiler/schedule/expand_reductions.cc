#include "compiler/schedule/expand_reductions.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

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

}  // namespace

void ExpandReductions(LoopProgram* program) {
  ReductionExpander expander(*program);
  for (Section& section : program->sections) {
    section.body = expander.Expand(std::move(section.body));
  }
}

}  // namespace kiln::schedule
