#include "compiler/search/contraction/way.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/search/contraction/way_cost.h"

namespace kiln::search {
namespace {

// Fewer multiplications than this are fast enough without panels.
constexpr int64_t kWorkMin = 32768;
// The minimum number of rows for which packing a panel pays off.
constexpr int64_t kRowsMin = 12;
// The shortest vectors for loops that do not fill a vector.
constexpr int kShortLanesMin = 8;

class WayChooser {
 public:
  WayChooser(const StageView& view, const Contraction& contraction)
      : contraction_(contraction),
        target_(view.target),
        writer_(view.axes),
        cost_(view, contraction),
        lanes_(ContractionLanes(view, contraction)) {}

  // `pays`: considers only ways for which panels pay off.
  std::optional<ContractionWay> Choose(bool pays, const int64_t* leading) const {
    if (lanes_ < 2) return std::nullopt;
    std::optional<ContractionWay> best;
    for (int packed = 0; packed < 2; ++packed) {
      for (int axis : contraction_.only[packed]) {
        if (leading != nullptr && writer_.RangeOf(axis) != *leading) continue;
        const int loops_max = LaneLoopsMax(contraction_, axis);
        for (int loops = 1; loops <= loops_max; ++loops) {
          ContractionWay way;
          way.packed = packed;
          way.lane_axis = axis;
          way.lane_loops = loops;
          TryPanels(way, pays, &best);
        }
      }
    }
    return best;
  }

 private:
  // Tries the ways with these lane loops. Shorter vectors than the longest are for loops that do
  // not fill those.
  void TryPanels(ContractionWay way, bool pays, std::optional<ContractionWay>* best) const {
    const auto others = static_cast<int>(OtherLoops(contraction_, way).size());
    const int64_t extent = cost_.LaneExtent(way);
    for (way.panel_loops = 0; way.panel_loops <= others; ++way.panel_loops) {
      if (way.panel_loops > 0 && !cost_.SharesPanels(way)) continue;
      for (way.lanes = lanes_; way.lanes >= kShortLanesMin || way.lanes == lanes_; way.lanes /= 2) {
        if (way.lanes < lanes_ && extent > way.lanes) break;
        std::optional<ContractionWay> tried = Try(way, pays);
        if (tried && (!*best || tried->cycles < (*best)->cycles)) *best = tried;
      }
    }
  }

  // Returns the best way with these lanes and panels.
  std::optional<ContractionWay> Try(const ContractionWay& lanes_and_panels, bool pays) const {
    const int packed = lanes_and_panels.packed;
    const std::vector<int>& rows = contraction_.only[1 - packed];
    if (pays && !PanelPays(contraction_, packed, writer_)) return std::nullopt;
    std::optional<ContractionWay> best;
    for (int row : rows) {
      for (int more : rows) {
        // ChooseTile does not consider tasks; narrower tiles give more of them.
        for (int vectors_max : {4, 2, 1}) {
          ContractionWay way = lanes_and_panels;
          way.row_axis = row;
          way.more_row_axis = more == row ? -1 : more;
          Arrange(vectors_max, &way);
          if (way.panel_loops > 0 && !cost_.StaysCached(way)) continue;
          way.cycles = cost_.Cycles(way);
          const int64_t chunks_max =
              std::min<int64_t>(cost_.RowTiles(way), 4 * target_.limits.compute_units);
          for (int64_t chunks = 2; chunks <= chunks_max; chunks *= 2) {
            ContractionWay divided = way;
            divided.row_chunks = chunks;
            divided.cycles = cost_.Cycles(divided);
            if (divided.cycles < way.cycles) way = divided;
          }
          if (!best || way.cycles < best->cycles) best = way;
        }
      }
    }
    return best;
  }

  // Completes a way by its tile.
  void Arrange(int vectors_max, ContractionWay* way) const {
    way->tile =
        ChooseTile(cost_.LaneVectors(*way), vectors_max, writer_.extent(way->row_axis),
                   way->more_row_axis < 0 ? 1 : writer_.extent(way->more_row_axis), target_);
    if (way->tile.more_rows == 1) way->more_row_axis = -1;
    SetRoles(way);
    if (cost_.SameSetCycles(*way) == 0) return;
    // ChooseTile does not know where rows are.
    ContractionWay flat = *way;
    flat.more_row_axis = -1;
    flat.tile = {static_cast<int>(std::min<int64_t>(vectors_max, cost_.LaneVectors(flat))),
                 kSetRows - 1};
    if (!FitsRegisters(flat.tile, target_)) return;
    flat.tile.cycles =
        TileCycles(flat.tile, cost_.LaneVectors(flat), writer_.extent(flat.row_axis), 1, target_);
    SetRoles(&flat);
    if (cost_.Cycles(flat) < cost_.Cycles(*way)) *way = flat;
  }

  void SetRoles(ContractionWay* way) const {
    way->skips_padding = cost_.ComputedShare(*way) < 1;
    way->stage_rows = !cost_.ReadsInPlace(*way);
  }

  const Contraction& contraction_;
  const drivers::Target& target_;
  const ScheduleWriter& writer_;
  const WayCost cost_;
  const int lanes_;
};

}  // namespace

int64_t WorkIn(const Contraction& contraction, const ScheduleWriter& axes) {
  return axes.Product(contraction.only[0]) * axes.Product(contraction.only[1]) *
         axes.Product(contraction.batch) * axes.Product(contraction.reduce);
}

int LaneLoopsMax(const Contraction& contraction, int lane_axis) {
  for (const std::vector<int>& axes : contraction.only) {
    const auto found = std::find(axes.begin(), axes.end(), lane_axis);
    if (found != axes.end()) return static_cast<int>(found - axes.begin()) + 1;
  }
  return 1;
}

std::vector<int> OtherLoops(const Contraction& contraction, const ContractionWay& way) {
  std::vector<int> others = contraction.only[way.packed];
  const auto end = others.begin() + LaneLoopsMax(contraction, way.lane_axis);
  others.erase(end - way.lane_loops, end);
  return others;
}

std::vector<int> PanelLoops(const Contraction& contraction, const ContractionWay& way) {
  const std::vector<int> others = OtherLoops(contraction, way);
  return {others.end() - way.panel_loops, others.end()};
}

std::vector<schedule::StageOperand::Dimension> PanelLayout(const Contraction& contraction,
                                                           const ContractionWay& way,
                                                           const ScheduleWriter& axes) {
  std::vector<int> order = contraction.reduce;
  const std::vector<int> together = PanelLoops(contraction, way);
  order.insert(order.end(), together.begin(), together.end());
  return StagedLayout(contraction.factor[way.packed], axes, order, contraction);
}

std::vector<const ir::Node*> TileRanges(const Contraction& contraction, const ContractionWay& way,
                                        const ScheduleWriter& axes) {
  std::vector<const ir::Node*> ranges;
  for (const int axis : LaneLoops(contraction, way)) ranges.push_back(axes[axis].range);
  for (const int axis : {way.row_axis, way.more_row_axis}) {
    if (axis >= 0) ranges.push_back(axes[axis].range);
  }
  return ranges;
}

int64_t SizeOf(const schedule::StageOperand::Dimension& dimension, const ScheduleWriter& axes) {
  int64_t size = 1;
  for (const auto& [coefficient, axis] : dimension) {
    size += std::abs(coefficient) * (axes.extent(axis) - 1);
  }
  return size;
}

std::vector<int> LaneLoops(const Contraction& contraction, const ContractionWay& way) {
  const std::vector<int>& axes = contraction.only[way.packed];
  const auto end = axes.begin() + LaneLoopsMax(contraction, way.lane_axis);
  return {end - way.lane_loops, end};
}

int ContractionLanes(const StageView& view, const Contraction& contraction) {
  const int bytes = ir::SizeOf(contraction.factor[0]->dtype());
  return std::max(view.target.limits.vector_bytes / std::max(bytes, 1), 1);
}

bool PanelPays(const Contraction& contraction, int packed, const ScheduleWriter& axes) {
  return WorkIn(contraction, axes) >= kWorkMin &&
         axes.Product(contraction.only[1 - packed]) >= kRowsMin;
}

std::optional<ContractionWay> ChooseWay(const StageView& view, const Contraction& contraction,
                                        const int64_t* leading) {
  const WayChooser chooser(view, contraction);
  std::optional<ContractionWay> way = chooser.Choose(true, leading);
  return way ? way : chooser.Choose(false, leading);
}

double WayCycles(const StageView& view, const Contraction& contraction, const ContractionWay& way) {
  return WayCost(view, contraction).Cycles(way);
}

}  // namespace kiln::search