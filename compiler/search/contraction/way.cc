#include "compiler/search/contraction/way.h"

#include <algorithm>
#include <vector>

#include "compiler/kernel/index_sum.h"

namespace kiln::search {
namespace {

using ir::Node;

// Fewer multiplications than this are fast enough without panels.
constexpr int64_t kWorkMin = 32768;
// The minimum number of rows for which packing a panel pays off.
constexpr int64_t kRowsMin = 12;
// The cost of tasks of unequal length and threads of unequal speed, if there is one task for each
// thread.
constexpr double kImbalance = 0.1;

int64_t WorkIn(const Contraction& contraction, const ScheduleWriter& axes) {
  return axes.Product(contraction.only[0]) * axes.Product(contraction.only[1]) *
         axes.Product(contraction.batch) * axes.Product(contraction.reduce);
}

class WayChooser {
 public:
  WayChooser(const StageView& view, const Contraction& contraction)
      : stage_(view.stage()),
        contraction_(contraction),
        target_(view.target),
        writer_(view.axes),
        lanes_(ContractionLanes(view, contraction)) {}

  // `pays`: considers only ways for which panels pay off.
  std::optional<ContractionWay> Choose(bool pays, const int64_t* leading) const {
    if (lanes_ < 2) return std::nullopt;
    std::optional<ContractionWay> best;
    for (int packed = 0; packed < 2; ++packed) {
      for (int axis : contraction_.only[packed]) {
        if (leading != nullptr && writer_.RangeOf(axis) != *leading) continue;
        std::optional<ContractionWay> way = Try(packed, axis, pays);
        if (way && (!best || way->cycles < best->cycles)) best = way;
      }
    }
    return best;
  }

  double Cycles(const ContractionWay& way) const {
    // The tile's estimate is for all rows of its two axes and all lanes.
    double repeats =
        static_cast<double>(Work()) /
        static_cast<double>(writer_.extent(way.lane_axis) * writer_.extent(way.row_axis));
    if (way.more_row_axis >= 0) repeats /= static_cast<double>(writer_.extent(way.more_row_axis));
    // Each chunk of rows packs the panel again.
    double cycles = repeats * way.tile.cycles * Locality(way) +
                    PackingCycles(way.packed, way.lane_axis) * static_cast<double>(way.row_chunks) +
                    StoringCycles(way.lane_axis);
    if (way.stage_rows) cycles += StagingCycles(1 - way.packed);
    const int64_t units = std::max(target_.limits.compute_units, 1);
    const int64_t tasks = Tasks(way);
    // The last round takes as long as a full one.
    const int64_t rounds = (tasks + units - 1) / units;
    cycles *= static_cast<double>(rounds) / static_cast<double>(tasks);
    return units == 1 ? cycles
                      : cycles * (1 + kImbalance * static_cast<double>(units) /
                                          static_cast<double>(tasks));
  }

 private:
  int64_t Work() const { return WorkIn(contraction_, writer_); }
  const Node* Range(int axis) const { return writer_[axis].range; }

  std::optional<ContractionWay> Try(int packed, int lane_axis, bool pays) const {
    const std::vector<int>& rows = contraction_.only[1 - packed];
    if (pays && !PanelPays(contraction_, packed, writer_)) return std::nullopt;
    std::optional<ContractionWay> best;
    for (int row : rows) {
      for (int more : rows) {
        // ChooseTile does not consider tasks; narrower tiles give more of them.
        for (int vectors_max : {4, 2, 1}) {
          ContractionWay way =
              Arrange(packed, lane_axis, row, more == row ? -1 : more, vectors_max);
          way.cycles = Cycles(way);
          const int64_t chunks_max =
              std::min<int64_t>(RowTiles(way), 4 * target_.limits.compute_units);
          for (int64_t chunks = 2; chunks <= chunks_max; chunks *= 2) {
            ContractionWay divided = way;
            divided.row_chunks = chunks;
            divided.cycles = Cycles(divided);
            if (divided.cycles < way.cycles) way = divided;
          }
          if (!best || way.cycles < best->cycles) best = way;
        }
      }
    }
    return best;
  }

  ContractionWay Arrange(int packed, int lane_axis, int row, int more, int vectors_max) const {
    ContractionWay way;
    way.packed = packed;
    way.lanes = lanes_;
    way.lane_axis = lane_axis;
    way.row_axis = row;
    way.more_row_axis = more;
    way.stage_rows = !IsPlainLoad(contraction_.factor[1 - packed]);
    way.tile = ChooseTile(LaneVectors(way), vectors_max, writer_.extent(row),
                          more < 0 ? 1 : writer_.extent(more), target_);
    if (way.tile.more_rows == 1) way.more_row_axis = -1;
    return way;
  }

  int64_t LaneVectors(const ContractionWay& way) const {
    return (writer_.extent(way.lane_axis) + way.lanes - 1) / way.lanes;
  }
  // Returns into how many pieces the outermost row axis can be cut.
  int64_t RowTiles(const ContractionWay& way) const {
    const int axis = contraction_.only[1 - way.packed][0];
    return (writer_.extent(axis) + way.TileOf(axis) - 1) / way.TileOf(axis);
  }
  int64_t Tasks(const ContractionWay& way) const {
    const int64_t others = writer_.Product(contraction_.only[way.packed]) /
                           writer_.extent(way.lane_axis) * way.row_chunks;
    const int64_t vectors = LaneVectors(way);
    return others * writer_.Product(contraction_.batch) *
           ((vectors + way.tile.vectors - 1) / way.tile.vectors);
  }

  // Returns a factor that outweighs small differences in speed: rows should be adjacent in memory,
  // and data staged for one outer row should be used up before the next.
  double Locality(const ContractionWay& way) const {
    const std::vector<int>& rows = contraction_.only[1 - way.packed];
    const Node* other = contraction_.factor[1 - way.packed];
    int64_t lowest = INT64_MAX;
    for (int axis : rows) lowest = std::min(lowest, StepOf(other, Range(axis)));
    double penalty = 1;
    if (StepOf(other, Range(way.row_axis)) > lowest) penalty += 0.02;
    const bool tiles_outermost = way.row_axis == rows[0] || way.more_row_axis == rows[0];
    if (rows.size() > 1 && tiles_outermost) penalty += way.stage_rows ? 0.2 : 0.02;
    return penalty;
  }

  double SizeOf(int factor) const {
    return static_cast<double>(writer_.Product(contraction_.only[factor]) *
                               writer_.Product(contraction_.batch) *
                               writer_.Product(contraction_.reduce));
  }
  // Returns the cycles for one element.
  double CopyCycles(bool contiguous) const {
    return contiguous ? target_.costs.contraction.copy : target_.costs.contraction.copy_across;
  }
  double PackingCycles(int packed, int lane_axis) const {
    const bool contiguous = StepOf(contraction_.factor[packed], Range(lane_axis)) == 1;
    return SizeOf(packed) * CopyCycles(contiguous);
  }
  double StagingCycles(int factor) const {
    // Windows overlap, and only their union is staged. The product of extents is far larger than
    // the union; an eighth of it is a guess.
    return SizeOf(factor) * CopyCycles(true) / 8;
  }
  double StoringCycles(int lane_axis) const {
    const double outputs = static_cast<double>(writer_.Product(contraction_.only[0]) *
                                               writer_.Product(contraction_.only[1]) *
                                               writer_.Product(contraction_.batch));
    bool contiguous = true;
    for (const kernel::Store& store : stage_.stores) {
      contiguous &= kernel::SumOf(store.index).Coefficient(Range(lane_axis)) == 1;
    }
    return outputs * CopyCycles(contiguous);
  }

  const kernel::Stage& stage_;
  const Contraction& contraction_;
  const drivers::Target& target_;
  const ScheduleWriter& writer_;
  const int lanes_;
};

}  // namespace

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
  return WayChooser(view, contraction).Cycles(way);
}

}  // namespace kiln::search
