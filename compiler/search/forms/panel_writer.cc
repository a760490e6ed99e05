#include <tuple>

#include "compiler/search/forms/lanes.h"
#include "compiler/search/forms/panel_loops.h"

namespace kiln::search {
namespace {

using schedule::Binding;
using schedule::StageOperand;

class PanelWriter {
 public:
  PanelWriter(int number, const Panel& panel, ScheduleWriter* writer)
      : number_(number),
        panel_(panel),
        contraction_(panel.contraction),
        way_(panel.way),
        rows_(panel.rows()),
        writer_(*writer) {}

  // Writes the loops, from the outermost: tasks (batch, blocks of lanes, blocks of rows), outer
  // sums, rows, panels packed together, inner sums, the tile.
  void Write() {
    FuseLanes();
    SplitLanes();
    SplitSums();
    std::vector<int> order;
    AddTask(contraction_.batch, &order);
    const std::vector<int> panels = PanelLoops(contraction_, way_);
    std::vector<int> others = OtherLoops(contraction_, way_);
    others.resize(others.size() - panels.size());
    AddTask(others, &order);
    const int row_task = ChunkRows();
    if (panel_.lanes_first) AddTask({lane_outer_}, &order);
    if (row_task >= 0) AddTask({row_task}, &order);
    if (!panel_.lanes_first) AddTask({lane_outer_}, &order);
    const auto outer_rows = row_loops_.begin() + panel_.outer_rows;
    order.insert(order.end(), row_loops_.begin(), outer_rows);
    AppendAxes(outer_sums_, &order);
    order.insert(order.end(), outer_rows, row_loops_.end());
    AppendAxes(panels, &order);
    UnrollSteps();
    AppendAxes(inner_sums_, &order);
    for (int axis : {more_rows_inner_, rows_inner_, vectors_, lane_}) {
      if (axis >= 0) order.push_back(axis);
    }
    writer_.Order(number_, order);
    StagePanel();
    if (panel_.staged_rows >= 0) StageRows();
    if (way_.skips_padding) writer_.Skip(number_);
  }

 private:
  void FuseLanes() {
    const std::vector<int> loops = LaneLoops(contraction_, way_);
    fused_ = loops[0];
    for (size_t i = 1; i < loops.size(); ++i) fused_ = writer_.Fuse(fused_, loops[i]);
  }

  void SplitLanes() {
    std::tie(lane_outer_, lane_) = writer_.Split(fused_, panel_.block());
    if (way_.tile.vectors > 1) std::tie(vectors_, lane_) = writer_.Split(lane_, way_.lanes);
    writer_.Bind(lane_, Binding::kVector);
    if (vectors_ >= 0) writer_.Bind(vectors_, Binding::kUnroll);
  }

  void AddTask(const std::vector<int>& axes, std::vector<int>* order) {
    for (int axis : axes) writer_.Bind(axis, Binding::kTask);
    AppendAxes(axes, order);
  }

  void SplitSums() {
    const std::vector<int>& reduce = contraction_.reduce;
    const SumBlocks blocks = CutSum(reduce, panel_.terms, writer_);
    const auto outside = reduce.begin() + static_cast<int64_t>(blocks.whole);
    outer_sums_.assign(reduce.begin(), outside);
    inner_sums_.assign(outside, reduce.end());
    if (blocks.size == 0) return;
    const auto [blocks_axis, within] = writer_.Split(outer_sums_.back(), blocks.size);
    outer_sums_.back() = blocks_axis;
    inner_sums_.insert(inner_sums_.begin(), within);
  }

  void UnrollSteps() {
    if (writer_.extent(inner_sums_.back()) <= panel_.unrolled) {
      writer_.Bind(inner_sums_.back(), Binding::kUnroll);
      return;
    }
    if (panel_.unrolled < 2) return;
    const auto [outer, inner] = writer_.Split(inner_sums_.back(), panel_.unrolled);
    writer_.Bind(inner, Binding::kUnroll);
    inner_sums_.back() = outer;
    inner_sums_.push_back(inner);
  }

  // Orders the row loops and splits a task axis from the outermost one. Returns the task axis, or
  // -1.
  int ChunkRows() {
    int task = -1;
    for (int axis : rows_) {
      const int64_t tile = way_.TileOf(axis);
      const int64_t tiles = (writer_.extent(axis) + tile - 1) / tile;
      int rest = axis;
      if (axis == rows_[0] && way_.row_chunks > 1) {
        const int64_t parts = std::min(way_.row_chunks, tiles);
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

  // Returns the loop in which factors are staged: the innermost of the outer sums, or -1 (outside
  // all loops).
  int PackedAt() const { return outer_sums_.empty() ? -1 : outer_sums_.back(); }

  void StagePanel() {
    StageOperand panel;
    panel.stage = number_;
    panel.operand = way_.packed;
    panel.at = PackedAt();
    panel.lanes = way_.lanes;
    panel.layout = PanelLayout(contraction_, way_, writer_);
    panel.layout.push_back({{1, fused_}});
    writer_.Stage(panel);
  }

  // Stages rows in scratch, before all row loops or inside as many of them as necessary.
  void StageRows() {
    StageOperand staged;
    staged.stage = number_;
    staged.operand = 1 - way_.packed;
    staged.lanes = way_.lanes;
    staged.layout = RowLayout(panel_, writer_);
    staged.at = PackedAt();
    if (panel_.staged_rows > panel_.outer_rows) staged.at = row_loops_[panel_.staged_rows - 1];
    writer_.Stage(staged);
  }

  const int number_;
  const Panel& panel_;
  const Contraction& contraction_;
  const ContractionWay& way_;
  const std::vector<int>& rows_;  // the kernel's axes
  ScheduleWriter& writer_;
  // The loops; -1: there is none.
  int fused_ = -1;  // the lane loops as one
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

void WritePanelLoops(int stage, const Panel& panel, ScheduleWriter* writer) {
  PanelWriter(stage, panel, writer).Write();
}

}  // namespace kiln::search
