// Determines whether and how a value fits into a cluster's loops. Part of cluster.h's
// implementation.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_JOIN_H_
#define KILN_COMPILER_PARTITION_CLUSTER_JOIN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/partition/cluster/clustering.h"

namespace kiln::partition {

struct Join {
  int stage = -1;              // an existing stage, or -1: a new one at the end
  std::vector<Digits> axes;    // the member's, over the cluster's loops and the new ones
  std::vector<int64_t> fresh;  // extents of the loops to append
  std::vector<int> grid;       // the resulting grid
};

// Plans how one member joins one cluster. Changes nothing.
class JoinPlanner {
 public:
  JoinPlanner(const Clustering& clustering, int member, int cluster)
      : all_(clustering),
        member_(clustering.members[member]),
        number_(cluster),
        cluster_(clustering.clusters[cluster]) {}

  // Plans the member at the same points as this stage's members, so that shared values stay in
  // registers.
  std::optional<Join> PlanSameStage(int stage) const;
  // Plans the member as a new stage under the grid, which may shrink.
  std::optional<Join> PlanNewStage() const;

 private:
  // A digit of one of the member's axes, and the equal digit of a loop.
  struct Piece {
    Digit own;
    Digit loop;
  };

  bool InCluster(const Read& read) const;
  const Member& MemberOf(const Read& read) const;
  void AddPieces(const Access& own, const std::vector<Digits>& loops,
                 std::vector<Piece>* pieces) const;
  void AddSharedReads(const Member& other, std::vector<Piece>* pieces) const;
  std::vector<Piece> KeepDistinct(std::vector<Piece> pieces) const;
  bool Covers(const std::vector<Piece>& pieces, int loop) const;
  // Assembles axes from pieces. Gaps become new loops, or the call fails if `fresh` is null.
  std::optional<std::vector<Digits>> Assemble(const std::vector<Piece>& pieces,
                                              std::vector<int64_t>* fresh) const;
  bool SamePoint(const Read& read, const std::vector<Digits>& axes) const;
  // Returns the loops of `grid` along which the read leaves its own point.
  std::vector<int> Strays(const Read& read, const std::vector<Digits>& axes,
                          const std::vector<int>& grid) const;

  const Clustering& all_;
  const Member& member_;
  int number_;
  const Cluster& cluster_;
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_JOIN_H_
