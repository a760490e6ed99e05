#include "compiler/search/contraction/matrix_tile.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "compiler/ir/tf32.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/search/contraction/contraction.h"

namespace kiln::search {
namespace {

constexpr int64_t kMatrixPlacesMax = 128;
// More subgroups hide each other's latency.
constexpr int64_t kThreadsWanted = 128;
// Bytes of a row of a staged factor: two of them fit where copies run ahead.
constexpr int64_t kStagedBytes = 128;
// The unit is faster than other instructions even if so few of its terms, one in this many, are not
// zeros.
constexpr int64_t kWorthwhileZeros = 4;
// Tiles of this size need not grow at the cost of padding.
constexpr int64_t kMatrixPlacesEnough = 64;

// Returns the largest power of two, at most `power_max`, that divides the extent.
int64_t PowerOfTwo(int64_t extent, int64_t power_max) {
  int64_t power = 1;
  while (power < power_max && extent % (power * 2) == 0) power *= 2;
  return power;
}

int64_t RoundUp(int64_t extent, int64_t multiple) {
  return (extent + multiple - 1) / multiple * multiple;
}

// Returns the largest power of two that pads the extent to at most 5/4 of its length padded to
// `places_min`.
int64_t PaddedPlaces(int64_t extent, int64_t places_min, int64_t places_max) {
  int64_t places = places_max;
  while (places > places_min && RoundUp(extent, places) * 4 > RoundUp(extent, places_min) * 5)
    places /= 2;
  return places;
}

// Returns the size of a block along a side: a divisor of the extent if that is large enough.
int64_t MatrixPlaces(int64_t extent, int side) {
  const int64_t places = PowerOfTwo(extent, kMatrixPlacesMax);
  if (places >= kMatrixPlacesEnough) return places;
  return PaddedPlaces(extent, kMatrixPlacesMin[side], kMatrixPlacesMax);
}

int64_t CountBlocks(const MatrixTile& tile, const ScheduleWriter& writer) {
  int64_t blocks = writer.Product(tile.contraction.batch);
  for (const int side : {0, 1}) {
    const int64_t others = writer.Product(tile.contraction.only[FactorOf(tile, side)]) /
                           writer.extent(tile.axis[side]);
    blocks *= others * (tile.padded[side] / tile.places[side]);
  }
  return blocks;
}

// Returns the layout; the dimension that is contiguous in memory is innermost, so that it is copied
// in vectors.
std::vector<schedule::StageOperand::Dimension> LayoutOf(const MatrixTile& tile, int side,
                                                        const ScheduleWriter& writer) {
  const Contraction& contraction = tile.contraction;
  const int number = FactorOf(tile, side);
  const ir::Node* factor = contraction.factor[number];
  std::vector<int> axes = contraction.batch;
  for (const std::vector<int>& more : {contraction.reduce, contraction.only[number]}) {
    for (const int axis : more) {
      if (axis != tile.terms_axis && axis != tile.axis[side]) axes.push_back(axis);
    }
  }
  const bool along_terms = StepOf(factor, writer[tile.terms_axis].range) == 1;
  axes.push_back(along_terms ? tile.axis[side] : tile.terms_axis);
  axes.push_back(along_terms ? tile.terms_axis : tile.axis[side]);
  // The sum of a padded axis and another one would not tell where the axis ends.
  std::vector<int> padded;
  for (const int each : {0, 1}) {
    if (tile.padded[each] != writer.extent(tile.axis[each])) padded.push_back(tile.axis[each]);
  }
  if (tile.padded_terms != writer.extent(tile.terms_axis)) padded.push_back(tile.terms_axis);
  return StagedLayout(factor, writer, axes, contraction, padded);
}

// Sets the subgroups' parts of the tile: larger ones reuse their loads more often.
void ShareOut(MatrixTile* tile) {
  for (const int side : {0, 1}) {
    tile->per_subgroup[side] = std::min(tile->places[side], kPerSubgroupMax[side]);
  }
  while (tile->threads() < kThreadsWanted) {
    const int64_t rows = tile->per_subgroup[0] / kInstruction[0];
    const int64_t columns = tile->per_subgroup[1] / kInstruction[1];
    if (rows == 1 && columns == 1) return;
    tile->per_subgroup[rows >= columns ? 0 : 1] /= 2;
  }
}

// Chooses how many terms are staged at a time. Returns false if the unit would add too many zeros,
// or cannot add them.
bool ChooseTerms(const ScheduleWriter& writer, const drivers::Target& target, ir::DType dtype,
                 MatrixTile* tile) {
  tile->terms_axis = writer.Largest(tile->contraction.reduce);
  tile->ahead = target.capabilities.async_copies;
  const int64_t extent = writer.extent(tile->terms_axis);
  const int64_t terms_max = kStagedBytes / (tile->ahead ? 2 : 1) / ir::SizeOf(dtype);
  tile->staged_terms = PowerOfTwo(extent, terms_max);
  tile->padded_terms = extent;
  if (tile->staged_terms >= tile->terms) return true;
  if (extent * kWorthwhileZeros < tile->terms) return false;
  tile->staged_terms = PaddedPlaces(extent, tile->terms, terms_max);
  tile->padded_terms = RoundUp(extent, tile->staged_terms);
  return IsLoaded(tile->contraction.factor[0]) && IsLoaded(tile->contraction.factor[1]);
}

// Returns a tile with the factor's axes as rows, or nullopt if most results would be padding.
std::optional<MatrixTile> FindTile(const Contraction& contraction, int row_factor,
                                   const StageView& view, const int64_t* leading) {
  const ScheduleWriter& writer = view.axes;
  const drivers::Target& target = view.target;
  MatrixTile tile;
  tile.contraction = contraction;
  tile.row_factor = row_factor;
  const ir::DType dtype = UnitDType(contraction.factor[0]);
  tile.terms = dtype == ir::DType::kFloat32 ? 8 : 16;
  tile.lanes = std::max(1, target.limits.bytes_per_access / ir::SizeOf(dtype));
  for (const int side : {0, 1}) {
    const std::vector<int>& axes = contraction.only[FactorOf(tile, side)];
    if (axes.empty()) return std::nullopt;
    tile.axis[side] = writer.Largest(axes);
    if (side == 0 && leading != nullptr) tile.axis[0] = view.Find(axes, *leading);
    if (tile.axis[side] < 0) return std::nullopt;
    const int64_t extent = writer.extent(tile.axis[side]);
    if (extent * 2 < kMatrixPlacesMin[side]) return std::nullopt;
    tile.places[side] = MatrixPlaces(extent, side);
    tile.padded[side] = RoundUp(extent, tile.places[side]);
  }
  if (!ChooseTerms(writer, target, dtype, &tile)) return std::nullopt;
  // Smaller tiles keep more units busy.
  const int64_t wanted = int64_t{2} * target.limits.compute_units;
  while (CountBlocks(tile, writer) < wanted) {
    const int larger = tile.places[0] >= tile.places[1] ? 0 : 1;
    if (tile.places[larger] / 2 < 2 * kMatrixPlacesMin[larger]) break;
    tile.places[larger] /= 2;
  }
  ShareOut(&tile);
  LayOut(writer, &tile);
  return tile;
}

}  // namespace

ir::DType UnitDType(const ir::Node* factor) {
  if (ir::IsRoundedToTf32(factor)) return ir::DType::kFloat32;
  if (factor->dtype() != ir::DType::kFloat32 || factor->op() != ir::Op::kCast) {
    return ir::DType::kInvalid;
  }
  const ir::DType from = factor->operand(0)->dtype();
  const bool fits = from == ir::DType::kFloat16 || from == ir::DType::kBFloat16;
  return fits ? from : ir::DType::kInvalid;
}

int FactorOf(const MatrixTile& tile, int side) {
  return side == 0 ? tile.row_factor : 1 - tile.row_factor;
}

bool IsLoaded(const ir::Node* factor) {
  // A zero remains a zero in each cast, such as one that rounds a float32 to the unit's type.
  if (factor->op() == ir::Op::kCast) {
    while (factor->op() == ir::Op::kCast) factor = factor->operand(0);
    return factor->op() == ir::Op::kLoad;
  }
  // Rounded to tf32: the masked bits, possibly after half of the last kept bit was added.
  const ir::Node* bits = ir::UnderTf32Mask(factor->operand(0));
  if (bits->op() == ir::Op::kAdd) {
    const int constant = bits->operand(0)->op() == ir::Op::kConst ? 0 : 1;
    int64_t added;
    if (!kernel::IsConstant(bits->operand(constant), &added) ||
        (static_cast<uint32_t>(added) & ir::kTf32Mask) != 0) {
      return false;
    }
    bits = bits->operand(1 - constant);
  }
  return bits->op() == ir::Op::kBitcast && bits->operand(0)->op() == ir::Op::kLoad;
}

void LayOut(const ScheduleWriter& writer, MatrixTile* tile) {
  for (const int side : {0, 1}) tile->layout[side] = LayoutOf(*tile, side, writer);
}

std::optional<Contraction> MatrixContraction(const StageView& view) {
  if (!view.target.capabilities.matrix || view.target.limits.threads_per_subgroup != kSubgroup ||
      view.shared || view.reduce.empty()) {
    return std::nullopt;
  }
  std::optional<Contraction> contraction =
      FindContraction(view.stage(), view.axes, view.parallel, view.reduce);
  if (!contraction) return std::nullopt;
  const ir::DType dtype = UnitDType(contraction->factor[0]);
  if (dtype == ir::DType::kInvalid || UnitDType(contraction->factor[1]) != dtype) {
    return std::nullopt;
  }
  return contraction;
}

std::optional<MatrixTile> FindMatrixTile(const StageView& view, const int64_t* leading) {
  const std::optional<Contraction> contraction = MatrixContraction(view);
  if (!contraction) return std::nullopt;
  std::optional<MatrixTile> best;
  for (const int row_factor : {0, 1}) {
    std::optional<MatrixTile> tile = FindTile(*contraction, row_factor, view, leading);
    if (!tile) continue;
    // Less padding first, then larger tiles.
    const auto rank = [](const MatrixTile& of) {
      return std::pair(-of.padded[0] * of.padded[1], of.places[0] * of.places[1]);
    };
    if (!best || rank(*tile) > rank(*best)) best = std::move(tile);
  }
  return best;
}

MatrixTile MatrixTileOf(const StageView& view, const Values& values) {
  MatrixTile tile;
  tile.contraction = *MatrixContraction(view);
  tile.axis[0] = view.Find(view.parallel, values[Knob::kRowAxis]);
  tile.axis[1] = view.Find(view.parallel, values[Knob::kColumnAxis]);
  tile.row_factor = absl::c_linear_search(tile.contraction.only[0], tile.axis[0]) ? 0 : 1;
  tile.places[0] = values[Knob::kRows];
  tile.places[1] = values[Knob::kColumns];
  tile.per_subgroup[0] = values[Knob::kThreadRows];
  tile.per_subgroup[1] = values[Knob::kThreadColumns];
  for (const int side : {0, 1}) {
    // The heuristic decides on padding before it makes tiles smaller.
    const int64_t extent = view.axes.extent(tile.axis[side]);
    tile.padded[side] = RoundUp(extent, std::max(tile.places[side], MatrixPlaces(extent, side)));
  }
  tile.terms_axis = view.axes.Largest(view.reduce);
  tile.staged_terms = values[Knob::kTerms];
  tile.padded_terms = RoundUp(view.axes.extent(tile.terms_axis), tile.staged_terms);
  tile.ahead = values[Knob::kCopiesAhead] == 1;
  tile.terms = values[Knob::kInstructionTerms];
  tile.lanes = static_cast<int>(values[Knob::kCopyLanes]);
  tile.columns_first = values[Knob::kTaskOrder] == 1;
  return tile;
}

}  // namespace kiln::search
