// Kernels in the making: which stored values share one, and how their loops line up. cluster.h
// makes them, the passes after it merge and split them, build_partition.h makes kernels of them.
#ifndef KILN_COMPILER_PARTITION_CLUSTERING_H_
#define KILN_COMPILER_PARTITION_CLUSTERING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/ir/node.h"
#include "compiler/partition/dependencies.h"
#include "compiler/partition/digits.h"
#include "compiler/partition/materialize.h"
#include "compiler/partition/reads.h"

namespace kiln::partition {

struct Member {
  const ir::Node* node = nullptr;
  Storage storage = Storage::kRequired;
  double arithmetic = 0;
  int nodes = 0;
  bool reduction = false;
  bool contraction = false;
  bool scatter = false;
  ir::Shape space;            // SpaceOf(node)
  std::vector<bool> reduced;  // by axis of the space; that of a scatter counts too
  std::vector<Read> reads;    // leaves: inputs and other members
  int cluster = -1;
  int stage = -1;
  std::vector<Digits> axes;  // what each axis of the space is, over the cluster's loops
};

// Stages of values over shared loops.
struct Cluster {
  std::vector<int64_t> loops;  // extents
  std::vector<int>
      grid;  // loops that every member has; all its kept loops while there is one stage
  std::vector<std::vector<int>> stages;  // members
  bool contraction = false;
  bool scatter = false;  // nothing joins it
  // Its points are tiles (tile.h): what one stage makes and another uses is kept in the memory of
  // the block that runs the point, each value in the place of one that is used no more.
  bool tiled = false;
  int64_t work = 0;  // points of all members' spaces
  int nodes = 0;     // of all members' expressions
};

struct Clustering {
  std::vector<Member> members;  // operands before users
  absl::flat_hash_map<const ir::Node*, int> member_of;
  std::vector<Cluster> clusters;  // one that was merged into another is empty
  Dependencies dependencies;      // among the clusters, by number
  // Of a local, the target's. Larger elementwise values are computed again in each stage.
  int64_t local_bytes_max = 0;
  // Of all locals of a task.
  int64_t task_bytes_max() const { return 2 * local_bytes_max; }
  // Tensors that one kernel reads and writes, the target's.
  int arguments_max = 0;
  // Of what a block keeps at a time where points are tiles; 0: there are none.
  int tile_bytes_max = 0;

  // Of a leaf; -1 for an input.
  int ClusterOf(const ir::Node* leaf) const;
  // Notes that the member's cluster comes after those that it reads from.
  void AddDependencies(const Member& member);
  // The clusters that are not empty: operands before users, otherwise as they were made.
  std::vector<int> InOrder() const;
};

// What the dimensions of a member's value are over its cluster's loops: reduced ones are 0.
std::vector<Digits> ValueAxes(const Member& member);

// Of what one task of a cluster with these stages, cut into `points` tasks, has to keep from stage
// to stage because it is computed once (IsMaterialised; all of it where points are tiles).
struct KeptBytes {
  int64_t largest = 0;  // of one value
  int64_t total = 0;
};
KeptBytes FindKeptBytes(const Clustering& clustering, const std::vector<std::vector<int>>& stages,
                        int64_t points, bool tiled = false);
// Whether that is within the target's limits.
bool LocalsFit(const Clustering& clustering, const std::vector<std::vector<int>>& stages,
               int64_t points, bool tiled = false);
// The most tensors that a kernel with these stages reads and writes, before it computes values of
// other clusters again.
int CountArguments(const Clustering& clustering, const std::vector<std::vector<int>>& stages);
bool ArgumentsFit(const Clustering& clustering, const std::vector<std::vector<int>>& stages);
// Points of a grid of these loops of the cluster.
int64_t GridPoints(const Cluster& cluster, const std::vector<int>& grid);

// Every member stands in one stage of one cluster, its axes are digits of that cluster's loops, and
// no cluster waits for itself. INTERNAL names the cluster.
absl::Status Verify(const Clustering& clustering);

// For people; deterministic.
std::string Print(const Clustering& clustering);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTERING_H_
