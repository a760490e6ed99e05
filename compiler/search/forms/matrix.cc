#include "compiler/search/forms/matrix.h"

#include <algorithm>
#include <tuple>

#include "absl/algorithm/container.h"
#include "compiler/search/contraction/matrix_tile.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// Bounds of what a search tries.
constexpr int64_t kTriedMatrixPlaces = 256;
constexpr int64_t kTriedStagedBytes = 256;

std::vector<int> BothFactors(const Contraction& contraction) {
  std::vector<int> axes = contraction.only[0];
  axes.insert(axes.end(), contraction.only[1].begin(), contraction.only[1].end());
  return axes;
}

}  // namespace

std::optional<Values> StartMatrixTile(const StageView& view, const int64_t* leading) {
  const std::optional<MatrixTile> tile = FindMatrixTile(view, leading);
  if (!tile) return std::nullopt;
  return Values{{Knob::kRowAxis, view.axes.RangeOf(tile->axis[0])},
                {Knob::kRows, tile->places[0]},
                {Knob::kColumnAxis, view.axes.RangeOf(tile->axis[1])},
                {Knob::kColumns, tile->places[1]},
                {Knob::kThreadRows, tile->per_subgroup[0]},
                {Knob::kThreadColumns, tile->per_subgroup[1]},
                {Knob::kTerms, tile->staged_terms},
                {Knob::kInstructionTerms, tile->terms},
                {Knob::kCopyLanes, tile->lanes},
                {Knob::kCopiesAhead, tile->ahead},
                {Knob::kTaskOrder, tile->columns_first}};
}

std::vector<KnobValues> MatrixTileKnobs(const StageView& view, const Values& start) {
  const Contraction contraction = *MatrixContraction(view);
  const std::vector<int> axes = BothFactors(contraction);
  const int bytes = ir::SizeOf(UnitDType(contraction.factor[0]));
  return {Axes(Knob::kRowAxis, view, axes),
          Powers(Knob::kRows, kMatrixPlacesMin[0], kTriedMatrixPlaces),
          Axes(Knob::kColumnAxis, view, axes),
          Powers(Knob::kColumns, kMatrixPlacesMin[1], kTriedMatrixPlaces),
          Powers(Knob::kThreadRows, kInstruction[0], kPerSubgroupMax[0]),
          Powers(Knob::kThreadColumns, kInstruction[1], kPerSubgroupMax[1]),
          Powers(Knob::kTerms, start[Knob::kInstructionTerms], kTriedStagedBytes / bytes),
          Only(Knob::kInstructionTerms, start[Knob::kInstructionTerms]),
          Powers(Knob::kCopyLanes, 1, start[Knob::kCopyLanes]),
          Switch(Knob::kCopiesAhead, view.target.capabilities.async_copies),
          Switch(Knob::kTaskOrder, true)};
}

absl::Status CheckMatrixTile(const StageView& view, const Values& values) {
  MatrixTile tile = MatrixTileOf(view, values);
  if (!absl::c_linear_search(tile.contraction.only[1 - tile.row_factor], tile.axis[1])) {
    return Unfit("rows and columns belong to the same factor");
  }
  if (tile.per_subgroup[0] > tile.places[0] || tile.per_subgroup[1] > tile.places[1]) {
    return Unfit("a subgroup's part is larger than the tile");
  }
  if (tile.threads() > view.target.limits.threads_per_block) {
    return Unfit("the tile has more threads than a block");
  }
  const bool has_zeros = tile.padded_terms != view.axes.extent(tile.terms_axis);
  if (has_zeros &&
      !(IsLoaded(tile.contraction.factor[0]) && IsLoaded(tile.contraction.factor[1]))) {
    return Unfit("terms beyond the end of the sum would not be zero");
  }
  return absl::OkStatus();
}

void WriteMatrixTile(const StageView& view, const Values& values, ScheduleWriter* writer) {
  MatrixTile tile = MatrixTileOf(view, values);
  LayOut(view.axes, &tile);
  const Contraction& contraction = tile.contraction;
  std::vector<int> order = contraction.batch;
  for (const int factor : {0, 1}) {
    for (const int axis : contraction.only[factor]) {
      if (axis != tile.axis[0] && axis != tile.axis[1]) order.push_back(axis);
    }
  }
  // Indexed by side: rows, columns.
  int tasks[2], subgroup[2], instruction[2], outer[2], inner[2];
  for (const int side : {0, 1}) {
    if (tile.padded[side] != writer->extent(tile.axis[side])) {
      writer->Pad(tile.axis[side], tile.places[side]);
    }
    int within, part, of_instruction;
    std::tie(tasks[side], within) = writer->Split(tile.axis[side], tile.places[side]);
    std::tie(subgroup[side], part) = writer->Split(within, tile.per_subgroup[side]);
    std::tie(instruction[side], of_instruction) = writer->Split(part, kInstruction[side]);
    std::tie(outer[side], inner[side]) = writer->Split(of_instruction, side == 0 ? 8 : 2);
  }
  order.push_back(tasks[tile.columns_first ? 1 : 0]);
  order.push_back(tasks[tile.columns_first ? 0 : 1]);
  for (const int axis : order) writer->Bind(axis, Binding::kTask);
  for (const int axis : contraction.reduce) {
    if (axis != tile.terms_axis) order.push_back(axis);
  }
  if (tile.padded_terms != writer->extent(tile.terms_axis)) {
    writer->Pad(tile.terms_axis, tile.staged_terms);
  }
  const auto [blocks, staged] = writer->Split(tile.terms_axis, tile.staged_terms);
  const auto [steps, terms] = writer->Split(staged, tile.terms);
  order.push_back(blocks);
  for (const int axis : {subgroup[0], subgroup[1], inner[0], outer[1]}) {
    writer->Bind(axis, Binding::kThread);
    order.push_back(axis);
  }
  for (const int axis : {steps, instruction[0], instruction[1]}) {
    writer->Bind(axis, Binding::kUnroll);
    order.push_back(axis);
  }
  for (const int axis : {outer[0], inner[1], terms}) {
    writer->Bind(axis, Binding::kMatrix);
    order.push_back(axis);
  }
  writer->Order(view.number, order);
  if (tile.ahead) writer->Ahead(blocks);
  for (const int side : {0, 1}) {
    schedule::StageOperand operand;
    operand.stage = view.number;
    operand.operand = FactorOf(tile, side);
    operand.at = blocks;
    operand.lanes = tile.lanes;
    operand.layout = tile.layout[side];
    writer->Stage(operand);
  }
}

}  // namespace kiln::search
