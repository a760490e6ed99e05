#include "compiler/search/heuristics/stage_chooser.h"

#include "compiler/search/forms/lanes.h"
#include "compiler/search/forms/panel.h"
#include "compiler/search/forms/points.h"
#include "compiler/search/forms/skinny.h"
#include "compiler/search/stage/lane_chooser.h"

namespace kiln::search {
namespace {

// Returns the form for lanes along the cheapest loop of a stage that is no contraction.
Form ChooseLoops(const StageView& view) {
  const StageWork work = WorkOf(view.stage());
  const double scalar = CostAlong(view, work, -1, 1);
  const LaneChoice points = BestLanes(view, work, false, nullptr);
  const LaneChoice sum = BestLanes(view, work, true, nullptr);
  const bool has_points = points.axis >= 0 && points.cost <= scalar;
  if (sum.axis >= 0 && sum.cost <= (has_points ? points.cost : scalar)) return Form::kSumLanes;
  if (!has_points) return Form::kScalar;
  if (!view.reduce.empty() && !UnrollsSum(view, work)) return Form::kColumnLanes;
  return PrefersSquares(view, work, points.axis) ? Form::kSquares : Form::kPointLanes;
}

}  // namespace

Form ChooseStageForm(const StageView& view, bool grid_lanes) {
  if (!view.stage().ordered_ranges.empty()) return Form::kScatter;
  if (const std::optional<Form> skinny = PreferSkinny(view)) return *skinny;
  if (PrefersPanel(view)) return Form::kPanel;
  return grid_lanes ? Form::kScalar : ChooseLoops(view);
}

}  // namespace kiln::search
