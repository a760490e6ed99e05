// Which clusters depend on which, kept while clusters grow and merge.
#ifndef KILN_COMPILER_PARTITION_DEPENDENCIES_H_
#define KILN_COMPILER_PARTITION_DEPENDENCIES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace kiln::partition {

// A graph of clusters with an order in which each stands after all that it reads from. A question
// searches only what the order puts between the two, and gives up after kMostVisits, so that all of
// them together take time linear in the clusters. (An order kept under insertions, as in Pearce and
// Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006; labels with gaps
// as in Dietz and Sleator, 1987.)
class Dependencies {
 public:
  // Clusters that one question looks at. What lies further apart counts as dependent: it would
  // share little in a kernel but memory that lives for long.
  static constexpr int kMostVisits = 256;

  // A new cluster, the next number.
  void AddCluster();
  // False: `from` does not depend on `to`. True: it does, or finding out would take too long.
  bool Reaches(int from, int to) const;
  // The same, for ways from `from` to `to` over at least one other cluster.
  bool ReachesOverOthers(int from, int to) const;
  // `from` reads from `to`; Reaches(to, from) must be false.
  void AddEdge(int from, int to);
  // Everything of `from` belongs to `into` from now on. Neither may depend on the other over
  // others.
  void Merge(int from, int into);
  // What the cluster reads from, each once, in ascending order.
  std::vector<int> Needs(int cluster) const;
  // Clusters looked at so far, by all questions: a measure of the work.
  int64_t visits() const { return visits_; }

 private:
  // Follows merges.
  int Find(int cluster) const;
  // All that `roots` depend on and that stands after `label`, roots included; false if `end` is
  // among it or the search was given up.
  bool Search(std::vector<int> roots, int64_t label, int end, std::vector<int>* found) const;
  // Puts the clusters, which keep their order, right before the cluster `next`.
  void MoveBefore(std::vector<int> clusters, int next);
  void Relabel();

  std::vector<absl::flat_hash_set<int>> needs_;  // as numbered when added; see Find
  mutable std::vector<int> merged_into_;         // itself while it stands
  std::vector<int64_t> labels_;                  // grow along the order
  std::map<int64_t, int> order_;                 // clusters by label
  mutable std::vector<int64_t> visited_;         // the last search that saw the cluster
  mutable int64_t search_ = 0;
  mutable int64_t visits_ = 0;
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_DEPENDENCIES_H_
