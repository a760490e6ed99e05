// Which stored values share a kernel, and how their loops line up.
//
// A cluster is a kernel in the making: stages of values over shared loops. A value joins the
// cluster of what it reads
//  * in the same stage, if it needs only the same points: an elementwise epilogue, or a sibling
//  over the same data;
//  * as a new stage, if both fit one grid ("rows"): softmax, normalisations and their gradients.
//  The grid may shrink for it,
//    as long as it keeps enough points or the work is small.
// Contractions take epilogues only: their loops belong to the schedule; one that streams many large
// tensors is cut off again (split_epilogue.h). A scatter is alone: it writes over a tensor that is
// there already.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_H_
#define KILN_COMPILER_PARTITION_CLUSTER_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/graph.h"
#include "compiler/partition/dependencies.h"
#include "compiler/partition/digits.h"
#include "compiler/partition/materialize.h"
#include "compiler/partition/reads.h"

namespace kiln::partition {

// Elements of a local. Larger elementwise values are computed again in each stage.
inline constexpr int64_t kMaxLocalBytes = 64 << 10;
// Points of a grid that keep a device busy.
inline constexpr int64_t kEnoughPoints = 16;
// Elements of work that need no parallelism.
inline constexpr int64_t kSmallWork = 32 << 10;

// Nodes of all expressions in one kernel, at most: what comes after takes time for each.
inline constexpr int kMaxClusterNodes = 1024;

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

struct Cluster {
  std::vector<int64_t> loops;  // extents
  std::vector<int>
      grid;  // loops that every member has; all its kept loops while there is one stage
  std::vector<std::vector<int>> stages;  // members
  bool contraction = false;
  bool scatter = false;  // nothing joins it
  int64_t work = 0;      // points of all members' spaces
  int nodes = 0;         // of all members' expressions
};

struct Clustering {
  std::vector<Member> members;  // operands before users
  absl::flat_hash_map<const ir::Node*, int> member_of;
  std::vector<Cluster> clusters;
  std::vector<int> order;  // of the clusters that are not empty: operands before users

  // Of a leaf; -1 for an input.
  int ClusterOf(const ir::Node* leaf) const;
};

// That the member's cluster comes after those that it reads from.
void AddDependencies(const Clustering& clustering, const Member& member,
                     Dependencies* dependencies);

// `graph` is normalized, `candidates` are ChooseStored's.
Clustering MakeClusters(const std::vector<Candidate>& candidates);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_H_
