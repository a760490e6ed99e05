#include "compiler/search/lane_chooser.h"

#include <algorithm>

namespace kiln::search {
namespace {

// Returns whether all steps of a parallel axis store to one element.
bool StoresOverAndOver(const StageWork& work, const AxisInfo& axis) {
  return std::any_of(work.accesses.begin(), work.accesses.end(), [&](const auto& access) {
    return access.store && AccessAlong(access.index, axis.range) == LaneAccess::kUniform;
  });
}

}  // namespace

LaneChoice ChooseLanes(const StageWork& work, const std::vector<int>& parallel,
                       const std::vector<int>& reduce, int lanes,
                       const drivers::InstructionCosts& costs, const ScheduleWriter& writer) {
  const int64_t points = writer.Product(parallel);
  const int64_t reduce_points = writer.Product(reduce);
  LaneChoice best{-1, CostOf(work, points, reduce_points, LaneAxis(), lanes, costs)};
  if (lanes == 1) return best;
  for (const bool of_sum : {false, true}) {
    // An empty reduction adds nothing up, and all of its steps store to one element.
    if (of_sum && work.reductions == 0) continue;
    for (const int axis : of_sum ? reduce : parallel) {
      if (writer.extent(axis) < 2 || (!of_sum && StoresOverAndOver(work, writer[axis]))) continue;
      const LaneAxis along{writer[axis].range, writer.extent(axis), of_sum};
      const double cost = CostOf(work, points, reduce_points, along, lanes, costs);
      if (cost <= best.cost) best = {axis, cost};
    }
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
