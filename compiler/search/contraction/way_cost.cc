#include "compiler/search/contraction/way_cost.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/kernel/index_sum.h"
#include "compiler/search/stage/cost.h"

namespace kiln::search {
namespace {

// The cost of tasks of unequal length and threads of unequal speed, if there is one task for each
// thread.
constexpr double kImbalance = 0.1;
// Cycles for a vector of rows that is computed into scratch: its conditions, its load and its
// store.
constexpr double kStagedVectorCycles = 8;
// Additional cycles for a vector that is packed under a condition.
constexpr double kConditionCycles = 14;
// Cycles for every other element: two loads and a shuffle for each vector.
constexpr double kPairCycles = 0.6;
// Additional cycles for an element that is gathered under a condition.
constexpr double kMaskedGather = 2;
// The same for an element whose neighbours are in other pages.
constexpr double kFarGather = 1;
constexpr int64_t kPageBytes = 4096;
// The same for one whose place is found by division.
constexpr double kDividedLaneCycles = 8;
// The most panels that are packed together.
constexpr int64_t kPanelsMax = 64;
// Pieces of rows that are at least this long are fetched ahead; and the cycles for a line that is
// not.
constexpr int64_t kFetchedAheadBytes = 256;
constexpr double kLineBytes = 64;
constexpr double kSharedEnd = 0.25;
constexpr double kFarLineCycles = 24;
// Cycles for each row of a step if there are more than kSetRows in one set.
constexpr double kSameSetCycles = 1;
// Cycles for a test in each step of a sum.
constexpr double kTestCycles = 1;
// Cycles for one lane of an access whose lanes are this many bytes apart or more: each is in a line
// of its own, and many of these lines are in one set of the first-level cache.
constexpr double kFarLaneCycles = 8;
constexpr int64_t kFarBytes = 512;

}  // namespace

using ir::Node;

template <typename Step>
bool WayCost::HasEvenLanes(const ContractionWay& way, Step step_of) const {
  const std::vector<int> loops = LaneLoops(contraction_, way);
  int64_t run = 1;
  for (auto axis = loops.rbegin(); axis != loops.rend(); ++axis) {
    if (axis != loops.rbegin() && run % way.lanes == 0) return true;
    if (step_of(*axis) != run) return false;
    run *= writer_.extent(*axis);
  }
  return true;
}

double WayCost::Cycles(const ContractionWay& way) const {
  // The tile's estimate is for all rows of its two axes and all lanes.
  double repeats = static_cast<double>(WorkIn(contraction_, writer_)) /
                   static_cast<double>(LaneExtent(way) * writer_.extent(way.row_axis));
  if (way.more_row_axis >= 0) repeats /= static_cast<double>(writer_.extent(way.more_row_axis));
  if (way.skips_padding) repeats *= ComputedShare(way);
  // Each chunk of rows packs the panel again.
  double cycles = repeats * way.tile.cycles * Locality(way) +
                  PackingCycles(way) * static_cast<double>(way.row_chunks) + StoringCycles(way);
  cycles += way.stage_rows ? StagingCycles(way) : FarRowsCycles(way);
  cycles += SameSetCycles(way);
  if (way.skips_padding) cycles += TestCycles(way);
  const int64_t units = std::max(target_.limits.compute_units, 1);
  const int64_t tasks = Tasks(way);
  // The last round takes as long as a full one.
  const int64_t rounds = (tasks + units - 1) / units;
  cycles *= static_cast<double>(rounds) / static_cast<double>(tasks);
  return units == 1
             ? cycles
             : cycles * (1 + kImbalance * static_cast<double>(units) / static_cast<double>(tasks));
}

double WayCost::ComputedShare(const ContractionWay& way) const {
  return padding_.ComputedShare(TileRanges(contraction_, way, writer_));
}

bool WayCost::ReadsInPlace(const ContractionWay& way) const {
  const Node* rows = contraction_.factor[1 - way.packed];
  return IsPlainLoad(rows) ||
         (way.skips_padding && padding_.ReadsInPlace(rows, TileRanges(contraction_, way, writer_)));
}

int64_t WayCost::PanelTerms(const ContractionWay& way) const {
  int64_t terms = 1;
  for (const auto& dimension : PanelLayout(contraction_, way, writer_)) {
    terms *= SizeOf(dimension, writer_);
  }
  return terms;
}

bool WayCost::SharesPanels(const ContractionWay& way) const {
  const int64_t together = writer_.Product(PanelLoops(contraction_, way));
  return together <= kPanelsMax &&
         PanelTerms(way) < together * writer_.Product(contraction_.reduce);
}

bool WayCost::StaysCached(const ContractionWay& way) const {
  const int64_t line = way.tile.vectors * way.lanes * ir::SizeOf(contraction_.factor[0]->dtype());
  const int64_t sums = writer_.Product(PanelLoops(contraction_, way)) *
                       writer_.Product(contraction_.only[1 - way.packed]);
  const int64_t cache = target_.limits.private_cache_bytes;
  return PanelTerms(way) * line <= cache / 4 || sums * line <= cache / 2;
}

int64_t WayCost::LaneExtent(const ContractionWay& way) const {
  return writer_.Product(LaneLoops(contraction_, way));
}

int64_t WayCost::LaneVectors(const ContractionWay& way) const {
  return (LaneExtent(way) + way.lanes - 1) / way.lanes;
}

int64_t WayCost::RowTiles(const ContractionWay& way) const {
  const int axis = contraction_.only[1 - way.packed][0];
  return (writer_.extent(axis) + way.TileOf(axis) - 1) / way.TileOf(axis);
}

int64_t WayCost::LaneTasks(const ContractionWay& way) const {
  const int64_t others = writer_.Product(OtherLoops(contraction_, way)) /
                         writer_.Product(PanelLoops(contraction_, way));
  return others * ((LaneVectors(way) + way.tile.vectors - 1) / way.tile.vectors);
}

int64_t WayCost::Tasks(const ContractionWay& way) const {
  return LaneTasks(way) * way.row_chunks * writer_.Product(contraction_.batch);
}

double WayCost::Locality(const ContractionWay& way) const {
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

double WayCost::CopyCycles(bool contiguous) const {
  return contiguous ? target_.costs.contraction.copy : target_.costs.contraction.copy_across;
}

double WayCost::PackingCycles(const ContractionWay& way) const {
  const Node* factor = contraction_.factor[way.packed];
  const bool pairs = way.lane_loops == 1 && StepOf(factor, Range(way.lane_axis)) == 2;
  const bool contiguous = pairs || IsContiguous(factor, way);
  double cycles = pairs ? kPairCycles : CopyCycles(contiguous);
  if (!IsPlainLoad(factor)) cycles += contiguous ? kConditionCycles / way.lanes : kMaskedGather;
  const int64_t step = StepOf(factor, Range(way.lane_axis));
  if (step * ir::SizeOf(factor->dtype()) >= kPageBytes) cycles += kFarGather;
  const bool placed = !contiguous || !IsPlainLoad(factor);
  if (placed && DividesLanes(way)) cycles += kDividedLaneCycles;
  return static_cast<double>(LaneTasks(way) * way.tile.vectors * way.lanes *
                             writer_.Product(contraction_.batch) * PanelTerms(way)) *
         cycles;
}

bool WayCost::DividesLanes(const ContractionWay& way) const {
  const std::vector<int> loops = LaneLoops(contraction_, way);
  int64_t run = 1;
  for (size_t i = loops.size() - 1; i > 0; --i) {
    run *= writer_.extent(loops[i]);
    if (run % way.lanes == 0) return false;
    if (way.lanes % run != 0) return true;
  }
  return false;
}

bool WayCost::IsContiguous(const Node* factor, const ContractionWay& way) const {
  return HasEvenLanes(way, [&](int axis) { return StepOf(factor, Range(axis)); });
}

std::vector<schedule::StageOperand::Dimension> WayCost::RowsLayout(
    const ContractionWay& way) const {
  std::vector<int> axes = contraction_.batch;
  const std::vector<int>& rows = contraction_.only[1 - way.packed];
  axes.insert(axes.end(), rows.begin(), rows.end());
  axes.insert(axes.end(), contraction_.reduce.begin(), contraction_.reduce.end());
  return StagedLayout(contraction_.factor[1 - way.packed], writer_, axes, contraction_);
}

double WayCost::StagingCycles(const ContractionWay& way) const {
  const Node* factor = contraction_.factor[1 - way.packed];
  double vectors = static_cast<double>(LaneTasks(way));
  int64_t last = 1;
  bool contiguous = false;
  for (const auto& dimension : RowsLayout(way)) {
    vectors *= static_cast<double>(last);
    last = SizeOf(dimension, writer_);
    contiguous = StepOf(factor, Range(dimension.front().axis)) == 1;
  }
  if (!contiguous) {
    const double gather = CopyCycles(false) + (IsPlainLoad(factor) ? 0 : kMaskedGather);
    return vectors * static_cast<double>(last) * gather;
  }
  vectors *= static_cast<double>((last + way.lanes - 1) / way.lanes);
  return vectors * kStagedVectorCycles;
}

bool WayCost::SlidesAlongMemory(const ContractionWay& way) const {
  const Node* rows = contraction_.factor[1 - way.packed];
  const std::vector<int>& loops = contraction_.only[1 - way.packed];
  int outermost = -1;
  bool slides = false;
  for (const int axis : loops) {
    slides = slides || StepOf(rows, Range(axis)) == 1;
    if (outermost < 0 && way.TileOf(axis) == 1) outermost = axis;
  }
  if (!slides) return false;
  // The elements for one iteration of the outermost loop, and one tile.
  double elements = 1;
  for (const auto& dimension : RowsLayout(way)) {
    int64_t size = 1;
    for (const auto& [coefficient, axis] : dimension) {
      const bool is_row = std::find(loops.begin(), loops.end(), axis) != loops.end();
      const bool part = is_row && (axis == outermost || way.TileOf(axis) > 1);
      size += std::abs(coefficient) * ((part ? way.TileOf(axis) : writer_.extent(axis)) - 1);
    }
    elements *= static_cast<double>(size);
  }
  return elements * static_cast<double>(ir::SizeOf(rows->dtype())) <=
         static_cast<double>(target_.limits.private_cache_bytes) / 2;
}

double WayCost::TileSteps(const ContractionWay& way) const {
  const int64_t rows = way.tile.rows * way.tile.more_rows;
  return static_cast<double>(LaneTasks(way) * writer_.Product(contraction_.batch) *
                             writer_.Product(contraction_.reduce) *
                             writer_.Product(PanelLoops(contraction_, way))) *
         static_cast<double>(writer_.Product(contraction_.only[1 - way.packed])) /
         static_cast<double>(rows);
}

double WayCost::SameSetCycles(const ContractionWay& way) const {
  const Node* rows = contraction_.factor[1 - way.packed];
  const int64_t step = StepOf(rows, Range(way.row_axis)) * ir::SizeOf(rows->dtype());
  const bool in_one_set = way.tile.rows > kSetRows && step % kPageBytes == 0;
  if (!in_one_set || way.stage_rows || !SlidesAlongMemory(way)) return 0;
  return TileSteps(way) * ComputedShare(way) * static_cast<double>(way.tile.rows) * kSameSetCycles;
}

double WayCost::TestCycles(const ContractionWay& way) const {
  const bool in_each_step =
      padding_.IsTested(Range(contraction_.reduce.back()), TileRanges(contraction_, way, writer_));
  return in_each_step ? TileSteps(way) * kTestCycles : 0;
}

double WayCost::FarRowsCycles(const ContractionWay& way) const {
  const Node* rows = contraction_.factor[1 - way.packed];
  const int64_t bytes = ir::SizeOf(rows->dtype());
  const int64_t terms = writer_.Product(contraction_.reduce);
  const int64_t count = writer_.Product(contraction_.only[1 - way.packed]);
  double elements = 1;
  for (const auto& dimension : RowsLayout(way)) {
    elements *= static_cast<double>(SizeOf(dimension, writer_));
  }
  const auto batch = static_cast<double>(writer_.Product(contraction_.batch));
  if (elements / batch * static_cast<double>(bytes) <=
      static_cast<double>(target_.limits.private_cache_bytes)) {
    return 0;
  }
  const double windows = static_cast<double>(count * terms) * batch / elements;
  if (way.skips_padding && windows > 1 && SlidesAlongMemory(way)) {
    return static_cast<double>(LaneTasks(way)) * elements * static_cast<double>(bytes) /
           kLineBytes * kFarLineCycles;
  }
  // Windows that overlap find most of each other's lines cached.
  int64_t run = 1;
  bool grew = true;
  while (grew) {
    grew = false;
    for (const int axis : contraction_.reduce) {
      if (StepOf(rows, Range(axis)) != run || writer_.extent(axis) == 1) continue;
      run *= writer_.extent(axis);
      grew = true;
      break;
    }
  }
  if (run * bytes >= kFetchedAheadBytes) return 0;
  // Rows of a tile that are adjacent are in one piece, whose last line the next tile finds
  // cached.
  const bool first = StepOf(rows, Range(way.row_axis)) == run;
  const bool second = way.more_row_axis >= 0 && StepOf(rows, Range(way.more_row_axis)) == run;
  const int64_t tile_rows = way.tile.rows * way.tile.more_rows;
  const int64_t together = first ? way.tile.rows : second ? way.tile.more_rows : 1;
  const double pieces = static_cast<double>(tile_rows) / static_cast<double>(together);
  const double lines = pieces * ((first || second ? kSharedEnd : 1) +
                                 static_cast<double>(run * together * bytes) / kLineBytes);
  return static_cast<double>(LaneTasks(way)) * batch *
         (static_cast<double>(count) / static_cast<double>(tile_rows)) *
         (static_cast<double>(terms) / static_cast<double>(run)) * lines / windows * kFarLineCycles;
}

double WayCost::StoringCycles(const ContractionWay& way) const {
  const double outputs = static_cast<double>(writer_.Product(contraction_.only[0]) *
                                             writer_.Product(contraction_.only[1]) *
                                             writer_.Product(contraction_.batch));
  double cycles = 0;
  for (const StageWork::Access& access : WorkOf(stage_).accesses) {
    if (access.inside) continue;
    const kernel::Sum sum = kernel::SumOf(access.index);
    const int64_t step = std::abs(sum.Coefficient(Range(way.lane_axis)));
    if (step == 0) continue;
    const bool even =
        HasEvenLanes(way, [&](int axis) { return std::abs(sum.Coefficient(Range(axis))); });
    const bool far = step * ir::SizeOf(contraction_.factor[0]->dtype()) >= kFarBytes;
    cycles += far ? kFarLaneCycles : CopyCycles(even);
  }
  return outputs * cycles;
}

}  // namespace kiln::search
