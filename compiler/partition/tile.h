// Grids whose points are tiles: runs of neighbours in memory, for chains of values each of which
// reads the one before at other places than its own, but near them, as the rounds of a sorting
// network do. A block of threads takes a tile through all of them in the memory that its threads
// share.
#ifndef KILN_COMPILER_PARTITION_TILE_H_
#define KILN_COMPILER_PARTITION_TILE_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/partition/clustering.h"

namespace kiln::partition {

// Elements of a tile, at least: fewer leave most of a block's threads idle.
inline constexpr int64_t kTileMin = 64;

// Cuts the grid of a cluster of one elementwise stage to tiles, and joins it again unless kept.
class TileCut {
 public:
  // Both must outlive the cut.
  TileCut(Clustering* clustering, int cluster);
  TileCut(const TileCut&) = delete;
  ~TileCut();

  // Tiles of `elements` at most: whole rows, no more of them than it takes for kTileMin if that
  // leaves `points_enough`. False if there are none.
  bool Make(int64_t elements, int64_t points_enough);
  void Keep() { kept_ = true; }

 private:
  bool SplitLoop(int loop, int64_t extent);

  Clustering& all_;
  Cluster& cluster_;
  bool kept_ = false;
  std::vector<int64_t> loops_;
  std::vector<int> grid_;
  std::vector<std::pair<int, std::vector<Digits>>> axes_;  // by member
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_TILE_H_
