#include "compiler/search/forms/panel.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "compiler/search/contraction/padding.h"
#include "compiler/search/forms/lanes.h"
#include "compiler/search/forms/panel_loops.h"

namespace kiln::search {
namespace {

// Bounds of what a search tries.
constexpr int64_t kTriedUnrolledMax = 320;
constexpr int64_t kTriedStepsMax = 8;
constexpr int kPanelVectorsMax = 4;

std::optional<Contraction> PanelContraction(const StageView& view) {
  if (view.shared || view.reduce.empty()) return std::nullopt;
  return FindContraction(view.stage(), view.axes, view.parallel, view.reduce);
}

Values ValuesOf(const Panel& panel, const ScheduleWriter& axes) {
  const ContractionWay& way = panel.way;
  return {{Knob::kLaneAxis, axes.RangeOf(way.lane_axis)},
          {Knob::kLaneLoops, way.lane_loops},
          {Knob::kLanes, way.lanes},
          {Knob::kVectors, way.tile.vectors},
          {Knob::kRowAxis, axes.RangeOf(way.row_axis)},
          {Knob::kRows, way.tile.rows},
          {Knob::kMoreRowAxis, way.more_row_axis < 0 ? -1 : axes.RangeOf(way.more_row_axis)},
          {Knob::kMoreRows, way.tile.more_rows},
          {Knob::kTerms, panel.terms},
          {Knob::kUnrolledTerms, panel.unrolled},
          {Knob::kSumOrder, static_cast<int64_t>(panel.sum_order)},
          {Knob::kSkipPadding, way.skips_padding},
          {Knob::kPanelLoops, way.panel_loops},
          {Knob::kOuterRows, panel.outer_rows},
          {Knob::kStagedRows, panel.staged_rows},
          {Knob::kRowChunks, way.row_chunks},
          {Knob::kTaskOrder, panel.lanes_first}};
}

// Requires: the values are legal; CheckPanel says whether they fit each other.
Panel PanelOf(const StageView& view, const Values& values) {
  Panel panel;
  panel.contraction = *PanelContraction(view);
  ContractionWay& way = panel.way;
  way.lane_axis = view.Find(view.parallel, values[Knob::kLaneAxis]);
  way.packed = absl::c_linear_search(panel.contraction.only[0], way.lane_axis) ? 0 : 1;
  way.lane_loops = static_cast<int>(values[Knob::kLaneLoops]);
  way.panel_loops = static_cast<int>(values[Knob::kPanelLoops]);
  way.lanes = static_cast<int>(values[Knob::kLanes]);
  way.row_axis = view.Find(view.parallel, values[Knob::kRowAxis]);
  way.more_row_axis = view.Find(view.parallel, values[Knob::kMoreRowAxis]);
  way.tile.vectors = static_cast<int>(values[Knob::kVectors]);
  way.tile.rows = values[Knob::kRows];
  way.tile.more_rows = values[Knob::kMoreRows];
  way.row_chunks = values[Knob::kRowChunks];
  way.stage_rows = values[Knob::kStagedRows] >= 0;
  way.skips_padding = values[Knob::kSkipPadding] == 1;
  panel.terms = values[Knob::kTerms];
  panel.unrolled = values[Knob::kUnrolledTerms];
  panel.outer_rows = values[Knob::kOuterRows];
  panel.staged_rows = values[Knob::kStagedRows];
  panel.lanes_first = values[Knob::kTaskOrder] == 1;
  OrderSums(view, static_cast<SumOrder>(values[Knob::kSumOrder]), &panel);
  return panel;
}

// The knobs of a lane axis depend neither on the rows nor on the order that the heuristic chooses.
// Rows may be along any loop, so all tests may be possible.
Panel WithoutRows(const StageView& view, Panel panel) {
  panel.contraction.reduce = view.reduce;
  panel.way.row_axis = panel.way.more_row_axis = -1;
  return panel;
}

bool MaySkipPadding(const StageView& view, const Panel& start) {
  const Panel panel = WithoutRows(view, start);
  return Padding(view.stage()).ComputedShare(TileRanges(panel.contraction, panel.way, view.axes)) <
         1;
}

KnobValues SumOrders(const StageView& view, const Panel& start) {
  KnobValues orders = Only(Knob::kSumOrder, 0);
  for (const SumOrder order : {SumOrder::kSteps, SumOrder::kTests}) {
    Panel panel = WithoutRows(view, start);
    if (OrderSums(view, order, &panel)) orders.values.push_back(static_cast<int64_t>(order));
  }
  return orders;
}

absl::Status CheckAxes(const Panel& panel) {
  const ContractionWay& way = panel.way;
  if (!absl::c_linear_search(panel.rows(), way.row_axis) ||
      (way.more_row_axis >= 0 && !absl::c_linear_search(panel.rows(), way.more_row_axis))) {
    return Unfit("the loops of rows belong to the factor that is packed");
  }
  if (way.more_row_axis == way.row_axis) return Unfit("one loop gives rows twice");
  if (way.more_row_axis < 0 && way.tile.more_rows > 1) return Unfit("no second loop gives rows");
  return absl::OkStatus();
}

int64_t LaneExtent(const StageView& view, const Panel& panel) {
  return view.axes.Product(LaneLoops(panel.contraction, panel.way));
}

absl::Status CheckTile(const StageView& view, const Panel& panel) {
  const ContractionWay& way = panel.way;
  const RegisterTile& tile = way.tile;
  if (!FitsRegisters(tile, view.target)) return Unfit("the tile does not fit the registers");
  if (tile.vectors * tile.rows * tile.more_rows * panel.unrolled > kTriedUnrolledMax) {
    return Unfit("too many multiplications would be unrolled");
  }
  if (tile.rows > view.axes.extent(way.row_axis) ||
      (way.more_row_axis >= 0 && tile.more_rows > view.axes.extent(way.more_row_axis))) {
    return Unfit("the tile has more rows than its loop");
  }
  if (panel.block() >= LaneExtent(view, panel) + way.lanes) {
    return Unfit("the tile has more vectors than its loop");
  }
  return absl::OkStatus();
}

absl::Status CheckLoops(const StageView& view, const Panel& panel) {
  const std::vector<int> others = OtherLoops(panel.contraction, panel.way);
  if (panel.way.panel_loops > static_cast<int>(others.size())) {
    return Unfit("the packed factor does not have that many other loops");
  }
  const auto loops = static_cast<int64_t>(panel.rows().size());
  const SumBlocks blocks = CutSum(panel.contraction.reduce, panel.terms, view.axes);
  if (panel.unrolled > blocks.inner) return Unfit("a step has more terms than a panel");
  if (panel.outer_rows >= (blocks.whole > 0 ? loops : 1)) {
    return Unfit("no loop of a sum is inside that many loops of rows");
  }
  if (panel.staged_rows > loops ||
      (panel.staged_rows >= 0 && panel.staged_rows < panel.outer_rows)) {
    return Unfit("rows are staged inside the loops of sums, and outside the last loops of rows");
  }
  return absl::OkStatus();
}

}  // namespace

bool PrefersPanel(const StageView& view) {
  const auto contraction = PanelContraction(view);
  if (!contraction || ContractionLanes(view, *contraction) < 2) return false;
  return (!contraction->only[0].empty() && PanelPays(*contraction, 0, view.axes)) ||
         (!contraction->only[1].empty() && PanelPays(*contraction, 1, view.axes));
}

std::optional<Values> StartPanel(const StageView& view, const int64_t* leading) {
  auto contraction = PanelContraction(view);
  if (!contraction) return std::nullopt;
  const auto way = ChooseWay(view, *contraction, leading);
  if (!way) return std::nullopt;
  Panel panel;
  panel.contraction = *std::move(contraction);
  panel.way = *way;
  FitPanel(view, &panel);
  return ValuesOf(panel, view.axes);
}

std::vector<KnobValues> PanelKnobs(const StageView& view, const Values& start) {
  const Panel panel = PanelOf(view, start);
  const int64_t registers = view.target.limits.vector_registers;
  std::vector<int> lane_axes;
  for (const int factor : {0, 1}) {
    if (!panel.contraction.only[1 - factor].empty()) {
      AppendAxes(panel.contraction.only[factor], &lane_axes);
    }
  }
  KnobValues more_rows = Axes(Knob::kMoreRowAxis, view, panel.rows());
  more_rows.values.push_back(-1);
  const int lanes = ContractionLanes(view, panel.contraction);
  const auto loops = static_cast<int64_t>(panel.rows().size());
  return {Axes(Knob::kLaneAxis, view, lane_axes),
          Counting(Knob::kLaneLoops, start[Knob::kLaneLoops], 1,
                   LaneLoopsMax(panel.contraction, panel.way.lane_axis)),
          Powers(Knob::kLanes, std::max(lanes / 2, 2), lanes),
          Counting(Knob::kVectors, start[Knob::kVectors], 1, kPanelVectorsMax),
          Axes(Knob::kRowAxis, view, panel.rows()),
          Counting(Knob::kRows, start[Knob::kRows], 1, registers),
          more_rows,
          Counting(Knob::kMoreRows, start[Knob::kMoreRows], 1, registers),
          Doubling(Knob::kTerms, start[Knob::kTerms], kPanelTermsMin,
                   view.axes.Product(panel.contraction.reduce)),
          Counting(Knob::kUnrolledTerms, start[Knob::kUnrolledTerms], 1, kTriedStepsMax),
          SumOrders(view, panel),
          Switch(Knob::kSkipPadding, MaySkipPadding(view, panel)),
          Counting(Knob::kPanelLoops, start[Knob::kPanelLoops], 0,
                   static_cast<int64_t>(panel.contraction.only[panel.way.packed].size()) - 1),
          Counting(Knob::kOuterRows, start[Knob::kOuterRows], 0, loops - 1),
          Counting(Knob::kStagedRows, start[Knob::kStagedRows], -1, loops),
          Doubling(Knob::kRowChunks, start[Knob::kRowChunks], 1, view.axes.Product(panel.rows())),
          Switch(Knob::kTaskOrder, true)};
}

absl::Status CheckPanel(const StageView& view, const Values& values) {
  const Panel panel = PanelOf(view, values);
  absl::Status status = CheckAxes(panel);
  if (status.ok()) status = CheckTile(view, panel);
  return status.ok() ? CheckLoops(view, panel) : status;
}

void WritePanel(const StageView& view, const Values& values, ScheduleWriter* writer) {
  WritePanelLoops(view.number, PanelOf(view, values), writer);
}

double EstimatePanel(const StageView& view, const Values& values) {
  Panel panel = PanelOf(view, values);
  ContractionWay& way = panel.way;
  if (way.tile.more_rows == 1) way.more_row_axis = -1;
  const int64_t vectors = (LaneExtent(view, panel) + way.lanes - 1) / way.lanes;
  const int64_t more = way.more_row_axis < 0 ? 1 : view.axes.extent(way.more_row_axis);
  way.tile.cycles =
      TileCycles(way.tile, vectors, view.axes.extent(way.row_axis), more, view.target);
  return WayCycles(view, panel.contraction, way);
}

}  // namespace kiln::search
