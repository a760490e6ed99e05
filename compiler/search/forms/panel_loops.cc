#include "compiler/search/forms/panel_loops.h"

#include <algorithm>
#include <cstdlib>

#include "absl/algorithm/container.h"
#include "compiler/search/contraction/padding.h"
#include "compiler/search/forms/lanes.h"

namespace kiln::search {
namespace {

using schedule::StageOperand;

// Terms of a panel that are enough to hide the cost of a visit to partial sums; and those that a
// loop is cut for, so that rows far apart in memory still fit the caches.
constexpr int64_t kTermsEnough = 256;
constexpr int64_t kTermsCut = 640;
// The approximate number of rows of a task whose sums are in scratch between two blocks of the sum.
constexpr int64_t kTaskRows = 256;
// The maximum number of unrolled multiplications, and of the steps of the sum that they belong to.
constexpr int64_t kUnrolledMax = 160;
constexpr int64_t kStepsMax = 8;
constexpr int64_t kLongSum = 256;

// Returns the elements of the layout with the first `open` loops of rows open; batch axes are
// tasks.
double StagedElements(const Panel& panel, const std::vector<StageOperand::Dimension>& layout,
                      size_t open, const ScheduleWriter& axes) {
  const std::vector<int>& rows = panel.rows();
  auto open_extent = [&](int axis) -> int64_t {
    if (absl::c_linear_search(panel.contraction.batch, axis)) return 1;
    const auto end = rows.begin() + static_cast<int64_t>(std::min(open, rows.size()));
    return std::find(rows.begin(), end, axis) != end ? panel.way.TileOf(axis) : axes.extent(axis);
  };
  double elements = 1;
  for (const StageOperand::Dimension& dimension : layout) {
    int64_t size = 1;
    for (const StageOperand::Term& term : dimension) {
      size += std::abs(term.coefficient) * (open_extent(term.axis) - 1);
    }
    elements *= static_cast<double>(size);
  }
  return elements;
}

class Fitter {
 public:
  Fitter(const StageView& view, Panel* panel)
      : axes_(view.axes), cache_(view.target.limits.private_cache_bytes), panel_(*panel) {}

  void Fit() {
    const std::vector<int>& reduce = panel_.contraction.reduce;
    double packed = 1;
    for (const auto& dimension : PanelLayout(panel_.contraction, panel_.way, axes_)) {
      packed *= static_cast<double>(SizeOf(dimension, axes_));
    }
    // Panels that are packed together have more elements than one has terms.
    const int64_t all = axes_.Product(reduce);
    const double room = static_cast<double>(cache_ / 4 / panel_.element_bytes() / panel_.block());
    panel_.terms = std::min(static_cast<int64_t>(room * static_cast<double>(all) / packed), all);
    const SumBlocks blocks = CutSum(reduce, panel_.terms, axes_);
    const int64_t all_rows = axes_.Product(panel_.rows());
    if (blocks.whole > 0 && panel_.rows().size() == 1) {
      panel_.way.row_chunks =
          std::max(panel_.way.row_chunks, (all_rows + 2 * kTaskRows - 1) / (2 * kTaskRows));
    }
    panel_.unrolled = Unrolled(blocks.inner);
    if (blocks.whole > 0) panel_.outer_rows = OuterRows(all_rows / panel_.way.row_chunks);
    if (panel_.way.stage_rows) panel_.staged_rows = StagedRows();
  }

 private:
  // Unrolls the innermost step of the sum, within a limit on the size of the code.
  int64_t Unrolled(int64_t extent) const {
    const RegisterTile& tile = panel_.way.tile;
    const int64_t size = tile.vectors * tile.rows * tile.more_rows;
    const int64_t steps_max = std::min(kUnrolledMax / size, kStepsMax);
    if (extent <= steps_max) return extent;
    int64_t steps = std::min<int64_t>(steps_max, 4);
    // A ragged end needs more code, so only long sums may have one.
    while (steps > 1 && extent % steps != 0 && extent < kLongSum) --steps;
    return std::max<int64_t>(steps, 1);
  }

  // Returns how many of the row loops are outside the outer sums, so that the sums of all rows
  // inside fit the cache.
  int64_t OuterRows(int64_t inside) const {
    const std::vector<int>& rows = panel_.rows();
    // Panels that are packed together have a sum each.
    const int64_t together = axes_.Product(PanelLoops(panel_.contraction, panel_.way));
    const int64_t share = together > 1 ? cache_ / 2 : cache_ / 4;
    const int64_t rows_max = share / (panel_.block() * panel_.element_bytes()) / together;
    size_t outside = 0;
    for (; outside + 1 < rows.size() && inside > rows_max; ++outside) {
      inside /= std::max<int64_t>(axes_.extent(rows[outside]), 1);
    }
    return static_cast<int64_t>(outside);
  }

  // Returns how many of the row loops are around the copy: as few as fit the cache.
  int64_t StagedRows() const {
    const auto layout = RowLayout(panel_, axes_);
    const auto loops = static_cast<int64_t>(panel_.rows().size());
    int64_t open = panel_.outer_rows;
    for (; open < loops; ++open) {
      const double bytes = StagedElements(panel_, layout, static_cast<size_t>(open), axes_) *
                           static_cast<double>(panel_.element_bytes());
      if (bytes <= static_cast<double>(cache_) / 2) break;
    }
    return open;
  }

  const ScheduleWriter& axes_;
  const int64_t cache_;
  Panel& panel_;
};
}  // namespace

SumBlocks CutSum(const std::vector<int>& reduce, int64_t terms, const ScheduleWriter& axes) {
  SumBlocks blocks;
  blocks.whole = reduce.size();
  blocks.inner = axes.extent(reduce.back());
  int64_t product = 1;
  while (blocks.whole > 0 && product * axes.extent(reduce[blocks.whole - 1]) <= terms) {
    product *= axes.extent(reduce[--blocks.whole]);
  }
  if (blocks.whole == 0) return blocks;
  // A loop that fits only in part is cut into blocks of nearly equal size.
  const bool innermost = blocks.whole == reduce.size();
  const int64_t extent = axes.extent(reduce[blocks.whole - 1]);
  if (!innermost && product >= kTermsEnough) return blocks;
  const int64_t room =
      innermost ? std::max(terms, kPanelTermsMin) : std::min(terms, kTermsCut) / product;
  if (room < 2) return blocks;
  const int64_t count = (extent + room - 1) / room;
  blocks.size = (extent + count - 1) / count;
  if (innermost) blocks.inner = blocks.size = (blocks.size + 7) / 8 * 8;
  return blocks;
}

std::vector<StageOperand::Dimension> RowLayout(const Panel& panel, const ScheduleWriter& axes) {
  std::vector<int> order = panel.contraction.batch;
  AppendAxes(panel.rows(), &order);
  AppendAxes(panel.contraction.reduce, &order);
  const int operand = 1 - panel.way.packed;
  return StagedLayout(panel.contraction.factor[operand], axes, order, panel.contraction);
}

bool OrderSums(const StageView& view, SumOrder order, Panel* panel) {
  std::vector<int>& sums = panel->contraction.reduce;
  const std::vector<int> before = sums;
  const auto range_of = [&](int axis) { return view.axes[axis].range; };
  if (order == SumOrder::kSteps) {
    const ir::Node* rows = panel->contraction.factor[1 - panel->way.packed];
    absl::c_stable_sort(
        sums, [&](int a, int b) { return StepOf(rows, range_of(a)) > StepOf(rows, range_of(b)); });
  } else if (order == SumOrder::kTests) {
    const Padding padding(view.stage());
    const auto tile = TileRanges(panel->contraction, panel->way, view.axes);
    std::stable_partition(sums.begin(), sums.end(),
                          [&](int axis) { return padding.IsTested(range_of(axis), tile); });
  }
  if (sums == before) return false;
  panel->sum_order = order;
  return true;
}

void FitPanel(const StageView& view, Panel* panel) {
  // Rows that are staged are contiguous in any order.
  if (!panel->way.stage_rows) OrderSums(view, SumOrder::kSteps, panel);
  Fitter(view, panel).Fit();
}

}  // namespace kiln::search
