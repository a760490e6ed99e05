#include "compiler/search/stage/view.h"

#include "compiler/schedule/plan.h"

namespace kiln::search {

int StageView::Find(const std::vector<int>& among, int64_t range) const {
  for (const int axis : among) {
    if (axes.RangeOf(axis) == range) return axis;
  }
  return -1;
}

std::vector<int64_t> StageView::Names(const std::vector<int>& of) const {
  std::vector<int64_t> names;
  for (const int axis : of) names.push_back(axes.RangeOf(axis));
  return names;
}

StageView ViewStage(const kernel::Kernel& kernel, int stage, const drivers::Target& target,
                    const ScheduleWriter& writer) {
  const bool shared = schedule::SharesGrid(kernel);
  std::vector<int> parallel = writer.ranges(stage);
  if (!shared) parallel.insert(parallel.begin(), writer.grid().begin(), writer.grid().end());
  return {kernel, stage, target, writer, shared, std::move(parallel), writer.reduce_ranges(stage)};
}

StageView FuseStage(const kernel::Kernel& kernel, int stage, const drivers::Target& target,
                    ScheduleWriter* writer) {
  StageView view = ViewStage(kernel, stage, target, *writer);
  view.parallel = writer->FuseAll(view.parallel);
  view.reduce = writer->FuseAll(view.reduce);
  return view;
}

}  // namespace kiln::search
