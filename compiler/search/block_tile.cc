#include "compiler/search/block_tile.h"

#include <algorithm>
#include <utility>

namespace kiln::search {
namespace {

using schedule::Binding;

// Rows and columns of a thread: each value read from shared memory is used this often.
constexpr int64_t kPerThread = 4;
constexpr int64_t kPlacesMax = 64;
constexpr int64_t kPlacesMin = 16;
constexpr int64_t kSteps = 16;
// Fewer threads do not fill a subgroup.
constexpr int64_t kTileThreadsMin = 32;
// A sum of this length should be shared by threads instead of computed by few tiles.
constexpr int64_t kSplitSum = 1024;

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

}  // namespace

std::optional<BlockTile> FindBlockTile(const kernel::Stage& stage, const ScheduleWriter& writer,
                                       const std::vector<int>& parallel,
                                       const std::vector<int>& reduce,
                                       const drivers::Target& target) {
  std::optional<Contraction> contraction = FindContraction(stage, writer, parallel, reduce);
  if (!contraction || reduce.empty()) return std::nullopt;
  BlockTile tile;
  for (const int factor : {0, 1}) {
    const std::vector<int>& axes = contraction->only[factor];
    if (axes.empty()) return std::nullopt;
    tile.axis[factor] = writer.Largest(axes);
    const int64_t extent = writer.extent(tile.axis[factor]);
    if (extent < kPlacesMin) return std::nullopt;
    tile.places[factor] = PlacesFor(extent);
    tile.per_thread[factor] = kPerThread;
  }
  tile.contraction = *std::move(contraction);
  tile.sum_axis = writer.Largest(reduce);
  tile.steps = std::min(kSteps, writer.extent(tile.sum_axis));
  tile.ahead = target.capabilities.async_copies;
  while (tile.threads() > target.limits.threads_per_block) tile = Smaller(tile);
  // Smaller tiles keep more units busy.
  const int64_t wanted = int64_t{2} * target.limits.compute_units;
  while (CountBlocks(tile, writer) < wanted) {
    BlockTile smaller = Smaller(tile);
    const int64_t places = std::min(smaller.places[0], smaller.places[1]);
    if (places < kPlacesMin || smaller.threads() < kTileThreadsMin) break;
    tile = std::move(smaller);
  }
  const bool few = CountBlocks(tile, writer) * 2 < target.limits.compute_units;
  if (few && writer.Product(reduce) >= kSplitSum) return std::nullopt;
  while (tile.threads() < kTileThreadsMin) {
    const int most = tile.per_thread[0] >= tile.per_thread[1] ? 0 : 1;
    tile.per_thread[most] /= 2;
  }
  return tile;
}

void WriteBlockTile(int stage, const BlockTile& tile, ScheduleWriter* writer) {
  const Contraction& contraction = tile.contraction;
  std::vector<int> order = contraction.batch;
  for (const int factor : {0, 1}) {
    for (const int axis : contraction.only[factor]) {
      if (axis != tile.axis[factor]) order.push_back(axis);
    }
  }
  int threads[2], own[2];
  for (const int factor : {0, 1}) {
    const auto [task, within] = writer->Split(tile.axis[factor], tile.places[factor]);
    order.push_back(task);
    std::tie(threads[factor], own[factor]) = writer->Split(within, tile.per_thread[factor]);
  }
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
  writer->Order(stage, order);
  if (tile.ahead) writer->Ahead(blocks);
  for (const int factor : {0, 1}) {
    std::vector<int> axes = contraction.reduce;
    axes.insert(axes.end(), contraction.batch.begin(), contraction.batch.end());
    axes.insert(axes.end(), contraction.only[factor].begin(), contraction.only[factor].end());
    schedule::StageOperand staged;
    staged.stage = stage;
    staged.operand = factor;
    staged.at = blocks;
    staged.lanes = 1;
    staged.layout = StagedLayout(contraction.factor[factor], *writer, axes, contraction);
    writer->Stage(staged);
  }
}

}  // namespace kiln::search
