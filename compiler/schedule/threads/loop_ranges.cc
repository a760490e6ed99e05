#include "compiler/schedule/threads/loop_ranges.h"

#include <algorithm>

namespace kiln::schedule {
namespace {

int64_t After(const ir::Node* range) { return range->attr<ir::RangeAttr>().id + 1; }

int64_t AfterAll(const std::vector<Statement>& body) {
  int64_t next = 0;
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      next = std::max({next, After(loop->range), AfterAll(loop->body)});
    } else if (const auto* branch = std::get_if<Branch>(&statement.node)) {
      next = std::max({next, AfterAll(branch->then_body), AfterAll(branch->else_body)});
    } else if (const auto* reduce = std::get_if<ThreadReduce>(&statement.node)) {
      next = std::max(next, After(reduce->value->operand(1)));
    }
  }
  return next;
}

}  // namespace

int64_t NextRange(const LoopProgram& program) {
  int64_t next = 0;
  for (const auto& [range, axis] : program.axes) next = std::max(next, After(range));
  for (const Section& section : program.sections) next = std::max(next, AfterAll(section.body));
  return next;
}

}  // namespace kiln::schedule
