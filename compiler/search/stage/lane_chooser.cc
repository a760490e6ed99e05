#include "compiler/search/stage/lane_chooser.h"

#include <algorithm>

#include "absl/algorithm/container.h"

namespace kiln::search {
namespace {

// Returns whether all steps of a parallel axis store to one element.
bool StoresOverAndOver(const StageWork& work, const AxisInfo& axis) {
  return std::any_of(work.accesses.begin(), work.accesses.end(), [&](const auto& access) {
    return access.store && AccessAlong(access.index, axis.range) == LaneAccess::kUniform;
  });
}

}  // namespace

int LanesFor(const StageView& view, const StageWork& work, int axis) {
  // Arithmetic uses four bytes or more; values that are only moved fill a vector with as few as
  // two.
  const bool moves = work.inside_operations + work.outside_operations == 0;
  const int widest = WidestAlong(work, view.axes[axis].range);
  return std::max(view.target.limits.vector_bytes / std::max(widest, moves ? 2 : 4), 1);
}

std::vector<int> LaneAxes(const StageView& view, const StageWork& work, bool of_sum) {
  std::vector<int> axes;
  // An empty reduction adds nothing up, and all of its steps store to one element.
  if (of_sum && work.reductions == 0) return axes;
  for (const int axis : of_sum ? view.reduce : view.parallel) {
    if (view.axes.extent(axis) < 2) continue;
    if (of_sum || !StoresOverAndOver(work, view.axes[axis])) axes.push_back(axis);
  }
  return axes;
}

double CostAlong(const StageView& view, const StageWork& work, int axis, int lanes) {
  LaneAxis along;
  if (axis >= 0) {
    along = {view.axes[axis].range, view.axes.extent(axis),
             absl::c_linear_search(view.reduce, axis)};
  }
  return CostOf(work, view.axes.Product(view.parallel), view.axes.Product(view.reduce), along,
                lanes, view.target.costs.instructions);
}

LaneChoice BestLanes(const StageView& view, const StageWork& work, bool of_sum,
                     const int64_t* leading) {
  LaneChoice best;
  for (const int axis : LaneAxes(view, work, of_sum)) {
    if (leading != nullptr && view.axes.RangeOf(axis) != *leading) continue;
    const int lanes = LanesFor(view, work, axis);
    if (lanes == 1) continue;
    const double cost = CostAlong(view, work, axis, lanes);
    if (best.axis < 0 || cost <= best.cost) best = {axis, cost};
  }
  return best;
}

int ContiguousElsewhere(const StageWork& work, int lane_axis, const std::vector<int>& others,
                        const ScheduleWriter& writer) {
  for (const StageWork::Access& access : work.accesses) {
    if (AccessAlong(access.index, writer[lane_axis].range) != LaneAccess::kScattered) continue;
    for (const int axis : others) {
      if (writer.extent(axis) > 1 &&
          AccessAlong(access.index, writer[axis].range) == LaneAccess::kWhole) {
        return axis;
      }
    }
  }
  return -1;
}

}  // namespace kiln::search
