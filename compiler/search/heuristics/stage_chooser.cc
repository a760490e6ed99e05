#include "compiler/search/heuristics/stage_chooser.h"

#include <algorithm>

#include "compiler/search/forms/lanes.h"
#include "compiler/search/forms/panel.h"
#include "compiler/search/forms/points.h"
#include "compiler/search/forms/skinny.h"
#include "compiler/search/stage/lane_chooser.h"
#include "compiler/search/stage/task_split.h"

namespace kiln::search {
namespace {

// A core does about this many of the instructions that CostOf counts in a cycle.
constexpr double kInstructionsPerCycle = 2;
// The models of different forms agree only roughly, so that a form must be this much cheaper.
constexpr double kClearlyCheaper = 0.8;

// Returns the cycles of ChooseLoops' form until the last thread has finished.
double LoopsCycles(const StageView& view) {
  const StageWork work = WorkOf(view.stage());
  double cost = CostAlong(view, work, -1, 1);
  for (const bool of_sum : {false, true}) {
    const LaneChoice choice = BestLanes(view, work, of_sum, nullptr);
    if (choice.axis >= 0) cost = std::min(cost, choice.cost);
  }
  const int64_t units = std::max(view.target.limits.compute_units, 1);
  return cost / kInstructionsPerCycle /
         static_cast<double>(std::min(units, TasksFor(cost, view.target)));
}

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
  const bool panel = PrefersPanel(view);
  if (const auto skinny = CheapestSkinny(view)) {
    const double other =
        panel ? EstimatePanel(view, *StartPanel(view, nullptr)) : LoopsCycles(view);
    if (skinny->cycles < kClearlyCheaper * other) return skinny->form;
  }
  if (panel) return Form::kPanel;
  return grid_lanes ? Form::kScalar : ChooseLoops(view);
}

}  // namespace kiln::search
