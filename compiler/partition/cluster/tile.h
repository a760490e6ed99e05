// Grids whose points are tiles, which are runs of adjacent elements in memory. For chains of values
// each of which reads the one before at other positions, but nearby, like the rounds of a sorting
// network. A block of threads computes a tile of all of them in its shared memory.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_TILE_H_
#define KILN_COMPILER_PARTITION_CLUSTER_TILE_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/partition/cluster/clustering.h"

namespace kiln::partition {

// Minimum number of elements of a tile: fewer leave most of a block's threads idle.
inline constexpr int64_t kTileMin = 64;

// Cuts the grid of a cluster with one elementwise stage into tiles; the destructor undoes this
// unless Keep was called.
class TileCut {
 public:
  // Both must outlive the cut.
  TileCut(Clustering* clustering, int cluster);
  TileCut(const TileCut&) = delete;
  ~TileCut();

  // Makes tiles of at most `elements`: whole rows, and no more of them than kTileMin requires if
  // that leaves `points_enough` points. Returns false if that is not possible.
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

#endif  // KILN_COMPILER_PARTITION_CLUSTER_TILE_H_
