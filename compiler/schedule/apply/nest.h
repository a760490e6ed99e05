// Opens the loops of a nest one after another, with the ragged ends of splits; shared by all nests
// that apply.cc builds.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_NEST_H_
#define KILN_COMPILER_SCHEDULE_APPLY_NEST_H_

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

// The number of iterations of an axis at one place: `last` where `is_last` (a bool node; null:
// never) holds, otherwise `full`.
struct Extent {
  int64_t full = 0;
  int64_t last = 0;
  const ir::Node* is_last = nullptr;
  bool constant() const { return is_last == nullptr; }
};

// A lane condition: this vector axis has only `count` real lanes here.
struct LaneMask {
  const ir::Node* range = nullptr;
  int64_t count = 0;
  bool reduce = false;
};

// The knowledge at one place of a nest; copied on the way down.
struct State {
  std::vector<const ir::Node*> values;  // by axis; null: its loop is not open
  std::vector<Extent> extents;  // by axis; for a split's parts set when their outer part is opened
  std::vector<LaneMask> masks;
  bool rolled = false;  // unrolled axes become loops: the elements that they index are in memory
};

class Nest {
 public:
  // New ranges are numbered from `next_range` on.
  Nest(const Plan& plan, kernel::ExpressionFolder& folder, int64_t next_range)
      : plan_(plan), folder_(folder), next_range_(next_range) {}

  // Returns the state with no loop open.
  State Start() const;

  using Inside = std::function<Body(State)>;
  // Builds loops over all `axes`, outermost first, with `inside` at the innermost place (several
  // times where ends are peeled).
  Body Loops(absl::Span<const int> axes, State state, const Inside& inside);
  // Like Loops, for one axis.
  Body Open(int axis, State state, const Inside& inside);
  // Opens a task axis: `range` becomes a range of the grid.
  const ir::Node* OpenTask(int axis, State* state);

  // Builds `inside` once for each combination of the extents that depend on the task and that
  // unrolled loops and lanes need as constants. The branches are as far out as possible.
  Body Decided(State state, const Inside& inside);

  // Returns the value of any axis, split and fused ones included, with unopened parts as 0.
  const ir::Node* Value(int axis, const State& state);
  // Returns the part of an axis whose loops are not open yet, or -1.
  int UnopenedPart(int axis, const State& state) const;
  // Returns the maximum number of values of the unopened part (counting ragged parts as full).
  int64_t NominalExtent(int axis) const;
  // Returns a new range that opens `axis` or, without one, that of a copy.
  const ir::Node* NewRange(int64_t extent, int axis = -1);
  // Returns the axis that the range opens, or -1.
  int AxisOf(const ir::Node* range) const {
    const auto found = range_axes_.find(range);
    return found == range_axes_.end() ? -1 : found->second;
  }
  // Returns which axis each range opens.
  RangeAxes TakeRangeAxes() { return std::move(range_axes_); }
  // Returns an extent that is not constant, as an int64 node.
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

#endif  // KILN_COMPILER_SCHEDULE_APPLY_NEST_H_
