#include "compiler/schedule/threads/synchronize.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/threads/expand_reductions.h"
#include "compiler/schedule/threads/place_barriers.h"
#include "compiler/schedule/threads/run_ahead.h"
#include "proto/check/check.h"

namespace kiln::schedule {
namespace {

using Body = std::vector<Statement>;

// Sets the number of places of the outermost digits. Where threads that differ only in lower digits
// would all write the same value, lets only the first of them write.
class DigitFinisher {
 public:
  explicit DigitFinisher(LoopProgram& program) : program_(program) {}

  // `stride`: of the innermost enclosing loop of threads; 0: none.
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
  // All of these ranges share one number: their only value is 0, so they need not be distinguished.
  static constexpr int64_t kFirst = int64_t{1} << 40;

  bool WritesMemory(const Statement& statement) const {
    const auto* store = std::get_if<Store>(&statement.node);
    return store != nullptr && !IsPrivate(program_.buffers[store->buffer].space);
  }

  LoopProgram& program_;
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
  return std::any_of(program.sections.begin(), program.sections.end(),
                     [](const Section& section) { return StandsInBranch(section.body, false); });
}

LoopProgram Synchronize(LoopProgram program, int shuffling) {
  if (program.threads == 1) return program;
  RunAhead(&program);
  ExpandReductions(&program, shuffling);
  DigitFinisher digits(program);
  for (Section& section : program.sections) digits.Finish(section.body, 0);
  PlaceBarriers(&program);
  // As much work as building it.
  KILN_VALIDATE(program, 1);
  return program;
}

}  // namespace kiln::schedule
