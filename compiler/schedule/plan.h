// A schedule resolved against its kernel: the axes, how they are split and bound, and the order of
// the loops. apply/apply.cc builds the loops from it.
#ifndef KILN_COMPILER_SCHEDULE_PLAN_H_
#define KILN_COMPILER_SCHEDULE_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"

namespace kiln::schedule {

struct Axis {
  int64_t extent = 0;
  bool reduce = false;
  bool ordered = false;             // its steps run in sequence, in one task
  int stage = -1;                   // -1: the grid
  const ir::Node* range = nullptr;  // the kernel's range, if the axis is one
  // Fused: the range's value is that of `fused_into` (the inner one) or 0 (the outer one) if the
  // two occur only as their sum. Otherwise (`digit` > 0) it is the rest or the quotient of that
  // value by `digit`, the inner one's extent.
  int fused_into = -1;
  bool fused_as_inner = false;
  int64_t digit = 0;
  // Split: value = outer * factor + inner.
  int outer = -1;
  int inner = -1;
  int64_t factor = 0;
  int parent = -1;  // the axis that was split into this one and another
  Binding binding = Binding::kSerial;
  bool partial = false;
  // A block of a long sum: the loops from this one on have their own accumulators, which are added
  // to those outside at the end (blocks_of_sums.h).
  bool block = false;
  bool peel_last = false;   // the last, shorter piece has its own code
  bool ahead = false;       // operands staged at it are staged one step earlier
  int64_t padded_from = 0;  // 0, or the extent before a Pad directive
  int64_t stride = 1;       // kThread: of its digit in the thread's number

  bool split() const { return outer >= 0; }
  bool padded() const { return padded_from > 0; }
  bool leaf() const { return !split() && fused_into < 0; }
};

// A Prefetch directive: the buffer's lines that are read when a range of the kernel is `steps`
// further.
struct PrefetchPlan {
  int buffer = 0;
  const ir::Node* range = nullptr;
  int64_t steps = 1;
};

// The axes that one instruction of a matrix unit computes; see matrix/plan.h.
struct MatrixAxes {
  int rows = -1;
  int columns = -1;
  int terms = -1;
  int group = -1;
  int member = -1;
};

struct StagePlan {
  std::vector<int> order;  // leaf axes, outermost first
  std::optional<MatrixAxes> matrix;
  std::vector<StageOperand> staged;
  std::vector<PrefetchPlan> prefetches;
  bool stream = false;
  bool skip = false;
};

struct Plan {
  std::vector<Axis> axes;
  std::vector<int> grid_order;  // for stages that share a grid; empty if the kernel has one stage
  std::vector<StagePlan> stages;
  int threads = 1;  // in a block: the maximum over the stages

  // Checks that axes and their parts name each other, and that each order has each of its stage's
  // leaves once.
  void Validate() const;
};

// Returns INVALID_ARGUMENT, which names the directive that does not fit.
absl::StatusOr<Plan> MakePlan(const kernel::Kernel& kernel, const Schedule& schedule);

// Returns whether the stages run inside shared loops; otherwise each stage has its own tasks.
bool SharesGrid(const kernel::Kernel& kernel);

// Returns whether outer and inner occur only as outer * extent + inner in the kernel's expressions.
bool IsContiguous(const kernel::Kernel& kernel, const ir::Node* outer, const ir::Node* inner,
                  int64_t extent);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_PLAN_H_
