// Opens the loops of a nest one after another, with the ragged ends of splits: the common part of
// all that apply.cc builds.
#ifndef KILN_COMPILER_SCHEDULE_NEST_H_
#define KILN_COMPILER_SCHEDULE_NEST_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

using Body = std::vector<Statement>;

void Append(Body* body, Body more);

// How many iterations an axis has here: `full`, except where `is_last` (a bool node; null: never)
// holds, then `last`.
struct Extent {
  int64_t full = 0;
  int64_t last = 0;
  const ir::Node* is_last = nullptr;
  bool constant() const { return is_last == nullptr; }
};

// A lane condition: this vector axis has only `count` lanes here.
struct LaneMask {
  const ir::Node* range = nullptr;
  int64_t count = 0;
  bool reduce = false;
};

// What is known at one place of a nest; copied on the way down.
struct State {
  std::vector<const ir::Node*> values;  // by axis; null: its loop is not open
  std::vector<Extent>
      extents;  // by axis; of a split's parts only after their outer part was opened
  std::vector<LaneMask> masks;
  bool rolled = false;  // unrolled axes become loops: what they index stands in memory
};

class Nest {
 public:
  // New ranges are numbered from `next_range` on.
  Nest(const Plan& plan, kernel::ExpressionFolder& folder, int64_t next_range)
      : plan_(plan), folder_(folder), next_range_(next_range) {}

  // No loop open.
  State Start() const;

  using Inside = std::function<Body(State)>;
  // Loops over all `axes`, outermost first, with `inside` at the innermost place (several times
  // where ends are peeled).
  Body Loops(absl::Span<const int> axes, State state, const Inside& inside);
  // As Loops for one axis.
  Body Open(int axis, State state, const Inside& inside);
  // Opens a task axis: `range` becomes a range of the grid.
  const ir::Node* OpenTask(int axis, State* state);

  // `inside` once for each combination of the extents that tasks left undecided and that unrolled
  // loops and lanes need to know: branches, as far out as possible.
  Body Decided(State state, const Inside& inside);

  // The value of any axis or split or fused axis, its unopened parts as 0.
  const ir::Node* Value(int axis, const State& state);
  // The part of an axis whose loops are not open yet: -1 if there is none.
  int UnopenedPart(int axis, const State& state) const;
  // How many values the unopened part has at most (a bound that counts ragged parts as full).
  int64_t NominalExtent(int axis) const;
  // A range that opens `axis`, or, without one, that of a copy.
  const ir::Node* NewRange(int64_t extent, int axis = -1);
  // The axis that the range opens; -1: none.
  int AxisOf(const ir::Node* range) const {
    const auto found = range_axes_.find(range);
    return found == range_axes_.end() ? -1 : found->second;
  }
  // Which axis each range opens.
  RangeAxes TakeRangeAxes() { return std::move(range_axes_); }
  // An extent that is not constant, as an int64 node.
  const ir::Node* Count(const Extent& extent);

 private:
  Body OpenConstant(int axis, int64_t count, State state, const Inside& inside);
  Body OpenOuter(int axis, int parent, State state, const Inside& inside);
  Body OpenOuterDynamic(int axis, int parent, const Extent& whole, State state,
                        const Inside& inside);
  Body OpenOuterInThreads(int axis, const Extent& pieces, int inner, int64_t rest, State state,
                          const Inside& inside);
  Loop LoopOf(int axis, int64_t extent, const State& state);
  Body OpenAt(int axis, const ir::Node* value, State state, const Inside& inside);
  Body Branched(int decided, State state, const ir::Node* condition,
                const std::function<Body(State)>& rest);
  bool DeriveInner(int axis, State* state, int* inner);
  Body OpenAxis(int number, State state, const Inside& inside);
  Binding BindingOf(int axis, const State& state) const;
  int Consumer(int axis) const;
  void SetExtent(int axis, State* state, const Extent& extent) const;

  const Plan& plan_;
  kernel::ExpressionFolder& folder_;
  int64_t next_range_;
  RangeAxes range_axes_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_NEST_H_
