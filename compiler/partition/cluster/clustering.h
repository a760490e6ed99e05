// Future kernels: which stored values share one, and how their loops line up. cluster.h makes them,
// the passes after it merge and split them, and build_partition.h turns them into kernels.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_CLUSTERING_H_
#define KILN_COMPILER_PARTITION_CLUSTER_CLUSTERING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/ir/node.h"
#include "compiler/partition/choices/choices.h"
#include "compiler/partition/cluster/dependencies.h"
#include "compiler/partition/cluster/materialize.h"
#include "compiler/partition/digits.h"
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
  std::vector<bool> reduced;  // by axis of the space; a scatter's axis counts too
  std::vector<Read> reads;    // leaves: inputs and other members
  int cluster = -1;
  int stage = -1;
  std::vector<Digits> axes;  // each axis of the space, as digits of the cluster's loops
  // It could have joined a kernel that it reads from, but that did not seem worthwhile.
  bool stayed_out = false;
};

// Stages of values over shared loops.
struct Cluster {
  std::vector<int64_t> loops;  // extents
  std::vector<int> grid;  // loops that every member has; with a single stage, all its kept loops
  std::vector<std::vector<int>> stages;  // members
  bool contraction = false;
  bool scatter = false;  // no value joins it
  // If set, its points are tiles (tile.h): values that one stage makes and another uses are kept in
  // the memory of the block that runs the point; a value may reuse the place of one that is no
  // longer used.
  bool tiled = false;
  bool split = false;  // a contraction whose epilogue is another kernel (split_epilogues.h)
  int64_t work = 0;    // points of all members' spaces
  int nodes = 0;       // of all members' expressions
};

struct Clustering {
  std::vector<Member> members;  // operands before users
  absl::flat_hash_map<const ir::Node*, int> member_of;
  std::vector<Cluster> clusters;  // a cluster that was merged into another is empty
  Dependencies dependencies;      // among the clusters, by number
  ChosenValues chosen;            // go before the passes' own decisions
  // The target's bound on one local. Larger elementwise values are recomputed in each stage.
  int64_t local_bytes_max = 0;
  // Bound on all locals of a task.
  int64_t task_bytes_max() const { return 2 * local_bytes_max; }
  // The target's bound on the tensors that one kernel reads and writes.
  int arguments_max = 0;
  // Bound on the bytes that a block keeps at a time if points are tiles; 0: no tiles.
  int tile_bytes_max = 0;

  // Returns the cluster of a leaf; -1 for an input.
  int ClusterOf(const ir::Node* leaf) const;
  // Adds the dependencies of the member's cluster on the clusters that it reads from.
  void AddDependencies(const Member& member);
  // Returns the clusters that are not empty: operands before users, otherwise in order of creation.
  std::vector<int> InOrder() const;

  // Checks what Verify does, that member_of is the inverse of the members, and the clusters' counts
  // and kinds. At the end of a pass, when every member has its cluster.
  void Validate() const;
};

// Returns the dimensions of a member's value as digits of its cluster's loops: reduced ones are 0.
std::vector<Digits> ValueAxes(const Member& member);

// The values that one task of a cluster with these stages, cut into `points` tasks, must keep from
// stage to stage because they are computed only once (IsMaterialised; all values if points are
// tiles).
struct KeptBytes {
  int64_t largest = 0;  // of one value
  int64_t total = 0;
};
KeptBytes FindKeptBytes(const Clustering& clustering, const std::vector<std::vector<int>>& stages,
                        int64_t points, bool tiled = false);
// Returns whether these are within the target's limits.
bool LocalsFit(const Clustering& clustering, const std::vector<std::vector<int>>& stages,
               int64_t points, bool tiled = false);
// Returns an upper bound on the tensors that a kernel with these stages reads and writes, before it
// recomputes values of other clusters.
int CountArguments(const Clustering& clustering, const std::vector<std::vector<int>>& stages);
bool ArgumentsFit(const Clustering& clustering, const std::vector<std::vector<int>>& stages);
// Returns whether the cluster begins with a value that was chosen to be apart.
bool IsApart(const Clustering& clustering, const Cluster& cluster);
// Returns the number of points of a grid of these loops of the cluster.
int64_t GridPoints(const Cluster& cluster, const std::vector<int>& grid);

// Checks that every member is in one stage of one cluster, that its axes are digits of that
// cluster's loops, and that no cluster depends on itself. An INTERNAL error names the cluster.
absl::Status Verify(const Clustering& clustering);

// For people; deterministic.
std::string Print(const Clustering& clustering);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_CLUSTERING_H_
