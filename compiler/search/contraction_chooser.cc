#include "compiler/search/contraction_chooser.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "compiler/search/contraction_way.h"
#include "compiler/search/skinny_chooser.h"

namespace kiln::search {
namespace {

using schedule::Binding;
using schedule::StageOperand;

// The approximate number of rows of a task whose sums are in scratch between two blocks of the sum.
constexpr int64_t kTaskRows = 256;
// The maximum number of unrolled multiplications, and of the steps of the sum that they belong to.
constexpr int64_t kUnrolledMax = 160;
constexpr int64_t kStepsMax = 8;
constexpr int64_t kLongSum = 256;
// The minimum number of steps of the sum for which a panel is packed, however small the cache is.
constexpr int64_t kBlockMin = 16;

// Writes the directives of one way.
class Writer {
 public:
  Writer(int number, const drivers::Target& target, const Contraction& contraction,
         const ContractionWay& way, ScheduleWriter* writer)
      : number_(number),
        target_(target),
        contraction_(contraction),
        way_(way),
        rows_(contraction.only[1 - way.packed]),
        block_(static_cast<int64_t>(way.tile.vectors) * way.lanes),
        element_bytes_(ir::SizeOf(contraction.factor[0]->dtype())),
        writer_(*writer) {}

  // Writes the loops, from the outermost: tasks (batch, blocks of lanes, blocks of rows), outer
  // sums, rows, inner sums, the tile.
  void Write() {
    SplitLanes();
    SplitSums();
    std::vector<int> order;
    AddTask(contraction_.batch, &order);
    for (int axis : contraction_.only[way_.packed]) {
      if (axis != way_.lane_axis) AddTask({axis}, &order);
    }
    // Row blocks come before lane blocks, so that consecutive tasks share rows in the cache.
    const int row_task = ChunkRows();
    if (row_task >= 0) AddTask({row_task}, &order);
    AddTask({lane_outer_}, &order);

    const size_t outer_rows = outer_sums_.empty() ? 0 : RowsOutside(row_task >= 0);
    order.insert(order.end(), row_loops_.begin(), row_loops_.begin() + outer_rows);
    order.insert(order.end(), outer_sums_.begin(), outer_sums_.end());
    order.insert(order.end(), row_loops_.begin() + outer_rows, row_loops_.end());
    UnrollSteps();
    order.insert(order.end(), inner_sums_.begin(), inner_sums_.end());
    for (int axis : {more_rows_inner_, rows_inner_, vectors_, lane_}) {
      if (axis >= 0) order.push_back(axis);
    }
    writer_.Order(number_, order);
    StagePanel();
    if (way_.stage_rows) StageRows(outer_rows);
  }

 private:
  void SplitLanes() {
    std::tie(lane_outer_, lane_) = writer_.Split(way_.lane_axis, block_);
    if (way_.tile.vectors > 1) std::tie(vectors_, lane_) = writer_.Split(lane_, way_.lanes);
    writer_.Bind(lane_, Binding::kVector);
    if (vectors_ >= 0) writer_.Bind(vectors_, Binding::kUnroll);
  }

  void AddTask(const std::vector<int>& axes, std::vector<int>* order) {
    for (int axis : axes) {
      writer_.Bind(axis, Binding::kTask);
      order->push_back(axis);
    }
  }

  // Keeps the innermost axes inside as long as their panel fits the cache.
  void SplitSums() {
    // The private cache is divided: a quarter for the panel, a quarter for sums (RowsOutside), half
    // for staged rows (StageRows).
    const int64_t terms_max = target_.limits.private_cache_bytes / 4 / element_bytes_ / block_;
    const std::vector<int>& reduce = contraction_.reduce;
    int64_t product = 1;
    size_t i = reduce.size();
    for (; i > 0 && product * writer_.extent(reduce[i - 1]) <= terms_max; --i) {
      product *= writer_.extent(reduce[i - 1]);
      inner_sums_.insert(inner_sums_.begin(), reduce[i - 1]);
    }
    if (i == 0) return;
    // An axis that fits only in part is split into blocks of nearly equal size.
    if (inner_sums_.empty()) {
      const int64_t room = std::max(terms_max, kBlockMin);
      const int64_t extent = writer_.extent(reduce[i - 1]);
      const int64_t blocks = (extent + room - 1) / room;
      const int64_t size = ((extent + blocks - 1) / blocks + 7) / 8 * 8;
      const auto [blocks_axis, within] = writer_.Split(reduce[i - 1], size);
      outer_sums_.insert(outer_sums_.begin(), blocks_axis);
      inner_sums_.insert(inner_sums_.begin(), within);
      --i;
    }
    for (; i > 0; --i) outer_sums_.insert(outer_sums_.begin(), reduce[i - 1]);
  }

  // Unrolls the innermost step of the sum, within a limit on the size of the code.
  void UnrollSteps() {
    const int64_t size = way_.tile.vectors * way_.tile.rows * way_.tile.more_rows;
    const int64_t extent = writer_.extent(inner_sums_.back());
    const int64_t steps_max = std::min(kUnrolledMax / size, kStepsMax);
    if (extent <= steps_max) {
      writer_.Bind(inner_sums_.back(), Binding::kUnroll);
      return;
    }
    int64_t steps = std::min<int64_t>(steps_max, 4);
    // A ragged end needs more code, so only long sums may have one.
    while (steps > 1 && extent % steps != 0 && extent < kLongSum) --steps;
    if (steps < 2) return;
    const auto [outer, inner] = writer_.Split(inner_sums_.back(), steps);
    writer_.Bind(inner, Binding::kUnroll);
    inner_sums_.back() = outer;
    inner_sums_.push_back(inner);
  }

  // Orders the row loops and splits a task axis from the outermost one. Returns the task axis, or
  // -1.
  int ChunkRows() {
    int64_t chunks = way_.row_chunks;
    if (!outer_sums_.empty() && rows_.size() == 1) {
      chunks = std::max(chunks, (writer_.Product(rows_) + 2 * kTaskRows - 1) / (2 * kTaskRows));
    }
    int task = -1;
    for (int axis : rows_) {
      const int64_t tile = way_.TileOf(axis);
      const int64_t tiles = (writer_.extent(axis) + tile - 1) / tile;
      int rest = axis;
      if (axis == rows_[0] && chunks > 1) {
        const int64_t parts = std::min(chunks, tiles);
        std::tie(task, rest) = writer_.Split(axis, (tiles + parts - 1) / parts * tile);
      }
      if (axis != way_.row_axis && axis != way_.more_row_axis) {
        row_loops_.push_back(rest);
        continue;
      }
      const auto [outer, inner] = writer_.Split(rest, tile);
      writer_.Bind(inner, Binding::kUnroll);
      row_loops_.push_back(outer);
      (axis == way_.row_axis ? rows_inner_ : more_rows_inner_) = inner;
    }
    return task;
  }

  // Returns how many of the row loops are outside the outer sums, so that the sums of all rows
  // inside fit the cache.
  size_t RowsOutside(bool first_is_cut) const {
    const int64_t rows_max = target_.limits.private_cache_bytes / 4 / (block_ * element_bytes_);
    int64_t inside = writer_.Product(rows_) / (first_is_cut ? way_.row_chunks : 1);
    size_t outside = 0;
    for (; outside + 1 < rows_.size() && inside > rows_max; ++outside) {
      inside /= std::max<int64_t>(writer_.extent(rows_[outside]), 1);
    }
    return outside;
  }

  // Returns the loop in which factors are staged: the innermost of the outer sums, or -1 (outside
  // all loops).
  int PackedAt() const { return outer_sums_.empty() ? -1 : outer_sums_.back(); }

  void StagePanel() {
    StageOperand panel;
    panel.stage = number_;
    panel.operand = way_.packed;
    panel.at = PackedAt();
    panel.lanes = way_.lanes;
    panel.layout =
        StagedLayout(contraction_.factor[way_.packed], writer_, contraction_.reduce, contraction_);
    panel.layout.push_back({{1, way_.lane_axis}});
    writer_.Stage(panel);
  }

  // Stages rows that are not plain loads in scratch, for as many points as fit the cache.
  void StageRows(size_t outer_rows) {
    std::vector<int> axes = contraction_.batch;
    axes.insert(axes.end(), rows_.begin(), rows_.end());
    axes.insert(axes.end(), contraction_.reduce.begin(), contraction_.reduce.end());
    const int operand = 1 - way_.packed;
    StageOperand staged;
    staged.stage = number_;
    staged.operand = operand;
    staged.lanes = way_.lanes;
    staged.layout = StagedLayout(contraction_.factor[operand], writer_, axes, contraction_);
    // Before all row loops, or inside as many of them as necessary.
    staged.at = PackedAt();
    for (size_t open = outer_rows; open <= row_loops_.size(); ++open) {
      if (open > outer_rows) staged.at = row_loops_[open - 1];
      const double bytes = StagedElements(staged.layout, open) * element_bytes_;
      if (bytes <= static_cast<double>(target_.limits.private_cache_bytes) / 2) break;
    }
    writer_.Stage(staged);
  }

  // Returns the elements of the layout with the first `open` row loops open; batch axes are tasks.
  double StagedElements(const std::vector<StageOperand::Dimension>& layout, size_t open) const {
    double elements = 1;
    for (const StageOperand::Dimension& dimension : layout) {
      int64_t size = 1;
      for (const StageOperand::Term& term : dimension) {
        size += std::abs(term.coefficient) * (OpenExtent(term.axis, open) - 1);
      }
      elements *= static_cast<double>(size);
    }
    return elements;
  }
  int64_t OpenExtent(int axis, size_t open) const {
    auto is_in = [axis](auto begin, auto end) { return std::find(begin, end, axis) != end; };
    if (is_in(contraction_.batch.begin(), contraction_.batch.end())) return 1;
    const bool is_open = is_in(rows_.begin(), rows_.begin() + std::min(open, rows_.size()));
    return is_open ? way_.TileOf(axis) : writer_.extent(axis);
  }

  const int number_;
  const drivers::Target& target_;
  const Contraction& contraction_;
  const ContractionWay& way_;
  const std::vector<int>& rows_;  // the kernel's axes
  const int64_t block_;           // lanes of a tile
  const int element_bytes_;
  ScheduleWriter& writer_;
  // The loops; -1: there is none.
  int lane_outer_ = -1;
  int vectors_ = -1;
  int lane_ = -1;
  std::vector<int> outer_sums_;
  std::vector<int> inner_sums_;
  std::vector<int> row_loops_;
  int rows_inner_ = -1;
  int more_rows_inner_ = -1;
};

}  // namespace

bool ChooseContraction(const kernel::Kernel& kernel, int stage, const std::vector<int>& parallel,
                       const std::vector<int>& reduce, const drivers::Target& target,
                       ScheduleWriter* writer) {
  const std::optional<Contraction> contraction =
      FindContraction(kernel.stages[stage], *writer, parallel, reduce);
  if (!contraction) return false;
  if (ChooseSkinny(stage, *contraction, target, writer)) return true;
  const std::optional<ContractionWay> way =
      ChooseWay(kernel.stages[stage], *contraction, target, *writer);
  if (!way) return false;
  Writer(stage, target, *contraction, *way, writer).Write();
  return true;
}

}  // namespace kiln::search
