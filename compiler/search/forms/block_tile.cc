#include "compiler/search/forms/block_tile.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/search/contraction/contraction.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// Rows and columns of a thread: each value read from shared memory is used this often.
constexpr int64_t kPerThread = 4;
constexpr int64_t kPlacesMax = 64;
constexpr int64_t kPlacesMin = 8;
// Smaller tiles are for loops that are shorter, such as the window of a convolution.
constexpr int64_t kPlacesWanted = 16;
constexpr int64_t kSteps = 16;
// Fewer threads do not fill a subgroup.
constexpr int64_t kTileThreadsMin = 32;
// A sum of this length should be shared by threads instead of computed by few tiles.
constexpr int64_t kSplitSum = 1024;

// Bounds of what a search tries: more rows of a thread do not fit its registers.
constexpr int64_t kTriedPlaces = 128;
constexpr int64_t kTriedPerThread = 8;
constexpr int64_t kTriedSteps = 64;

struct BlockTile {
  Contraction contraction;
  // For factor 0 and factor 1: the axis along which tiles are cut, the tile's size, and how much of
  // it one thread has.
  int axis[2] = {-1, -1};
  int64_t places[2] = {1, 1};
  int64_t per_thread[2] = {1, 1};
  // The axis of the sum that is cut into steps.
  int sum_axis = -1;
  int64_t steps = 1;
  bool ahead = false;          // staged while the previous steps are added up
  bool columns_first = false;  // of the tasks
  bool pays = true;

  int64_t threads() const { return places[0] / per_thread[0] * (places[1] / per_thread[1]); }
};

// Halves the tile along its longer side.
BlockTile Smaller(BlockTile tile) {
  tile.places[tile.places[0] >= tile.places[1] ? 0 : 1] /= 2;
  return tile;
}

// Returns a tile size that is not much larger than the extent.
int64_t PlacesFor(int64_t extent) {
  int64_t places = kPlacesMax;
  while (places > kPlacesMin && extent <= places * 3 / 4) places /= 2;
  return places;
}

int64_t TilesAlong(const BlockTile& tile, int factor, const ScheduleWriter& writer) {
  const int64_t extent = writer.extent(tile.axis[factor]);
  return (extent + tile.places[factor] - 1) / tile.places[factor];
}

int64_t CountBlocks(const BlockTile& tile, const ScheduleWriter& writer) {
  int64_t blocks = writer.Product(tile.contraction.batch);
  for (const int factor : {0, 1}) {
    const int64_t others = writer.Product(tile.contraction.only[factor]);
    blocks *= others / std::max<int64_t>(writer.extent(tile.axis[factor]), 1) *
              TilesAlong(tile, factor, writer);
  }
  return blocks;
}

std::optional<Contraction> TileContraction(const StageView& view) {
  if (view.shared || view.reduce.empty()) return std::nullopt;
  return FindContraction(view.stage(), view.axes, view.parallel, view.reduce);
}

// Returns nullopt if the stage is not a contraction, or is too small in one direction to gain from
// tiles.
std::optional<BlockTile> FindBlockTile(const StageView& view, const int64_t* leading) {
  std::optional<Contraction> contraction = TileContraction(view);
  if (!contraction) return std::nullopt;
  BlockTile tile;
  bool is_short = false;
  for (const int factor : {0, 1}) {
    const std::vector<int>& axes = contraction->only[factor];
    if (axes.empty()) return std::nullopt;
    tile.axis[factor] = view.axes.Largest(axes);
    if (factor == 0 && leading != nullptr) tile.axis[0] = view.Find(axes, *leading);
    if (tile.axis[factor] < 0) return std::nullopt;
    const int64_t extent = view.axes.extent(tile.axis[factor]);
    if (extent * 2 < kPlacesMin) return std::nullopt;
    is_short |= extent < kPlacesWanted;
    tile.places[factor] = PlacesFor(extent);
    tile.per_thread[factor] = kPerThread;
  }
  tile.contraction = *std::move(contraction);
  tile.sum_axis = view.axes.Largest(view.reduce);
  tile.steps = std::min(kSteps, view.axes.extent(tile.sum_axis));
  tile.ahead = view.target.capabilities.async_copies;
  while (tile.threads() > view.target.limits.threads_per_block) tile = Smaller(tile);
  // Smaller tiles keep more units busy.
  const int64_t wanted = int64_t{2} * view.target.limits.compute_units;
  while (CountBlocks(tile, view.axes) < wanted) {
    BlockTile smaller = Smaller(tile);
    const int halved = smaller.places[0] != tile.places[0] ? 0 : 1;
    if (smaller.places[halved] < kPlacesWanted || smaller.threads() < kTileThreadsMin) break;
    tile = std::move(smaller);
  }
  const int64_t blocks = CountBlocks(tile, view.axes);
  const bool few = blocks * 2 < view.target.limits.compute_units;
  tile.pays = !few || view.axes.Product(view.reduce) < kSplitSum;
  // Tiles of short loops have few threads.
  if (is_short) tile.pays = blocks >= wanted;
  while (tile.threads() < kTileThreadsMin) {
    const int most = tile.per_thread[0] >= tile.per_thread[1] ? 0 : 1;
    tile.per_thread[most] /= 2;
  }
  return tile;
}

BlockTile BlockTileOf(const StageView& view, const Values& values) {
  BlockTile tile;
  tile.contraction = *TileContraction(view);
  tile.axis[0] = view.Find(view.parallel, values[Knob::kRowAxis]);
  tile.axis[1] = view.Find(view.parallel, values[Knob::kColumnAxis]);
  tile.places[0] = values[Knob::kRows];
  tile.places[1] = values[Knob::kColumns];
  tile.per_thread[0] = values[Knob::kThreadRows];
  tile.per_thread[1] = values[Knob::kThreadColumns];
  tile.sum_axis = view.axes.Largest(view.reduce);
  tile.steps = values[Knob::kTerms];
  tile.ahead = values[Knob::kCopiesAhead] == 1;
  tile.columns_first = values[Knob::kTaskOrder] == 1;
  return tile;
}

}  // namespace

bool PrefersBlockTile(const StageView& view) {
  const std::optional<BlockTile> tile = FindBlockTile(view, nullptr);
  return tile && tile->pays;
}

std::optional<Values> StartBlockTile(const StageView& view, const int64_t* leading) {
  const std::optional<BlockTile> tile = FindBlockTile(view, leading);
  if (!tile) return std::nullopt;
  return Values{{Knob::kRowAxis, view.axes.RangeOf(tile->axis[0])},
                {Knob::kRows, tile->places[0]},
                {Knob::kColumnAxis, view.axes.RangeOf(tile->axis[1])},
                {Knob::kColumns, tile->places[1]},
                {Knob::kThreadRows, tile->per_thread[0]},
                {Knob::kThreadColumns, tile->per_thread[1]},
                {Knob::kTerms, tile->steps},
                {Knob::kCopiesAhead, tile->ahead},
                {Knob::kTaskOrder, tile->columns_first}};
}

std::vector<KnobValues> BlockTileKnobs(const StageView& view, const Values& start) {
  const Contraction contraction = *TileContraction(view);
  const int64_t terms_max = std::min(kTriedSteps, view.axes.extent(view.axes.Largest(view.reduce)));
  return {Axes(Knob::kRowAxis, view, contraction.only[0]),
          Powers(Knob::kRows, kPlacesMin, kTriedPlaces),
          Axes(Knob::kColumnAxis, view, contraction.only[1]),
          Powers(Knob::kColumns, kPlacesMin, kTriedPlaces),
          Powers(Knob::kThreadRows, 1, kTriedPerThread),
          Powers(Knob::kThreadColumns, 1, kTriedPerThread),
          Doubling(Knob::kTerms, start[Knob::kTerms], 1, terms_max),
          Switch(Knob::kCopiesAhead, view.target.capabilities.async_copies),
          Switch(Knob::kTaskOrder, true)};
}

absl::Status CheckBlockTile(const StageView& view, const Values& values) {
  const int64_t threads = BlockTileOf(view, values).threads();
  if (threads > view.target.limits.threads_per_block) {
    return Unfit("the tile has more threads than a block");
  }
  return threads < kTileThreadsMin ? Unfit("the tile's threads do not fill a subgroup")
                                   : absl::OkStatus();
}

void WriteBlockTile(const StageView& view, const Values& values, ScheduleWriter* writer) {
  const BlockTile tile = BlockTileOf(view, values);
  const Contraction& contraction = tile.contraction;
  std::vector<int> order = contraction.batch;
  for (const int factor : {0, 1}) {
    for (const int axis : contraction.only[factor]) {
      if (axis != tile.axis[factor]) order.push_back(axis);
    }
  }
  int tasks[2], threads[2], own[2];
  for (const int factor : {0, 1}) {
    int within;
    std::tie(tasks[factor], within) = writer->Split(tile.axis[factor], tile.places[factor]);
    std::tie(threads[factor], own[factor]) = writer->Split(within, tile.per_thread[factor]);
  }
  order.push_back(tasks[tile.columns_first ? 1 : 0]);
  order.push_back(tasks[tile.columns_first ? 0 : 1]);
  for (const int axis : order) writer->Bind(axis, Binding::kTask);
  for (const int axis : contraction.reduce) {
    if (axis != tile.sum_axis) order.push_back(axis);
  }
  const auto [blocks, step] = writer->Split(tile.sum_axis, tile.steps);
  order.push_back(blocks);
  for (const int axis : threads) {
    writer->Bind(axis, Binding::kThread);
    order.push_back(axis);
  }
  order.push_back(step);
  for (const int axis : own) {
    writer->Bind(axis, Binding::kUnroll);
    order.push_back(axis);
  }
  writer->Order(view.number, order);
  if (tile.ahead) writer->Ahead(blocks);
  for (const int factor : {0, 1}) {
    std::vector<int> axes = contraction.reduce;
    axes.insert(axes.end(), contraction.batch.begin(), contraction.batch.end());
    axes.insert(axes.end(), contraction.only[factor].begin(), contraction.only[factor].end());
    schedule::StageOperand staged;
    staged.stage = view.number;
    staged.operand = factor;
    staged.at = blocks;
    staged.lanes = 1;
    staged.layout = StagedLayout(contraction.factor[factor], *writer, axes, contraction);
    writer->Stage(staged);
  }
}

}  // namespace kiln::search
