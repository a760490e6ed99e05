// The dependencies between clusters, maintained while clusters grow and merge.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_DEPENDENCIES_H_
#define KILN_COMPILER_PARTITION_CLUSTER_DEPENDENCIES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace kiln::partition {

// A graph of clusters with an order in which each cluster comes after all that it reads from. A
// query searches only between two positions of the order and gives up after kVisitsMax, so that
// all queries together take time linear in the clusters. (An order maintained under insertions, as
// in Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006;
// labels with gaps as in Dietz and Sleator, 1987.)
class Dependencies {
 public:
  // Bound on the clusters that one query visits. Clusters further apart count as dependent: in one
  // kernel they would share little, and would keep memory alive for long.
  static constexpr int kVisitsMax = 256;

  // Adds a cluster with the next number.
  void AddCluster();
  // Returns false if `from` does not depend on `to`; true if it does, or if the search gave up.
  bool Reaches(int from, int to) const;
  // The same, for paths from `from` to `to` over at least one other cluster.
  bool ReachesOverOthers(int from, int to) const;
  // Adds the edge that `from` reads from `to`. Requires: Reaches(to, from) is false.
  void AddEdge(int from, int to);
  // Moves everything of `from` to `into`. Requires: neither depends on the other over other
  // clusters.
  void Merge(int from, int into);
  // Returns the clusters that the cluster reads from, each once, in ascending order.
  std::vector<int> Needs(int cluster) const;
  // Returns the number of clusters visited by all queries so far: a measure of the work.
  int64_t visits() const { return visits_; }

 private:
  // Checks that order_ is the inverse of the labels of clusters that were not merged, and that each
  // comes after all that it reads from.
  void Validate() const;
  // Follows merges.
  int Find(int cluster) const;
  // Finds everything that `roots` depend on and that has a label above `label`, including the
  // roots. Returns false if it finds `end` or gives up.
  bool Search(std::vector<int> roots, int64_t label, int end, std::vector<int>* found) const;
  // Moves the clusters, in their order, directly before the cluster `next`.
  void MoveBefore(std::vector<int> clusters, int next);
  void Relabel();

  std::vector<absl::flat_hash_set<int>> needs_;  // as numbered when added; see Find
  mutable std::vector<int> merged_into_;         // itself if not merged
  std::vector<int64_t> labels_;                  // increase along the order
  std::map<int64_t, int> order_;                 // clusters by label
  int64_t edges_ = 0;                            // added so far
  mutable std::vector<int64_t> visited_;         // the last search that visited it
  mutable int64_t search_ = 0;
  mutable int64_t visits_ = 0;
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_DEPENDENCIES_H_
