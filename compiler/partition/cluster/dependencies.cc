#include "compiler/partition/cluster/dependencies.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "proto/check/check.h"

namespace kiln::partition {

namespace {

// The distance between adjacent labels. Each insertion at the same position halves the gap, so 32
// of them fit before all labels are reassigned.
constexpr int64_t kGap = int64_t{1} << 32;
constexpr int kNoLimit = std::numeric_limits<int>::max();

}  // namespace

void Dependencies::AddCluster() {
  const int number = static_cast<int>(needs_.size());
  needs_.emplace_back();
  merged_into_.push_back(number);
  visited_.push_back(0);
  labels_.push_back(order_.empty() ? 0 : order_.rbegin()->first + kGap);
  order_.emplace(labels_.back(), number);
  KILN_VALIDATE(*this, labels_.size() + edges_);
}

void Dependencies::Validate() const {
  KILN_CHECK_EQ(needs_.size(), labels_.size());
  KILN_CHECK_EQ(merged_into_.size(), labels_.size());
  KILN_CHECK_EQ(visited_.size(), labels_.size());
  size_t whole = 0;
  for (size_t i = 0; i < labels_.size(); ++i) {
    const int number = static_cast<int>(i);
    if (merged_into_[i] != number) {
      KILN_CHECK(needs_[i].empty()) << "cluster " << i << " was merged";
      continue;
    }
    ++whole;
    const auto found = order_.find(labels_[i]);
    KILN_CHECK(found != order_.end() && found->second == number) << "cluster " << i;
    for (const int need : needs_[i]) {
      const int of = Find(need);
      KILN_CHECK(of == number || labels_[of] < labels_[i]) << of << " is after its reader " << i;
    }
  }
  KILN_CHECK_EQ(order_.size(), whole);
}

int Dependencies::Find(int cluster) const {
  // Path halving keeps chains of merges short.
  while (merged_into_[cluster] != cluster) {
    merged_into_[cluster] = merged_into_[merged_into_[cluster]];
    cluster = merged_into_[cluster];
  }
  return cluster;
}

bool Dependencies::Search(std::vector<int> roots, int64_t label, int end,
                          std::vector<int>* found) const {
  ++search_;
  // A query may give up. A move has to find everything, or the order would become wrong.
  int left = found == nullptr ? kVisitsMax : kNoLimit;
  while (!roots.empty()) {
    const int cluster = roots.back();
    roots.pop_back();
    if (cluster == end) return false;
    // Everything that a cluster depends on comes before it, so nothing at or before `label` leads
    // to a cluster after it.
    if (labels_[cluster] <= label || visited_[cluster] == search_) continue;
    visited_[cluster] = search_;
    ++visits_;
    if (--left == 0) return false;
    if (found != nullptr) found->push_back(cluster);
    for (const int need : needs_[cluster]) roots.push_back(Find(need));
  }
  return true;
}

bool Dependencies::Reaches(int from, int to) const {
  return from != to && !Search({from}, labels_[to], to, nullptr);
}

bool Dependencies::ReachesOverOthers(int from, int to) const {
  std::vector<int> roots = Needs(from);
  std::erase(roots, to);
  return !Search(std::move(roots), labels_[to], to, nullptr);
}

void Dependencies::AddEdge(int from, int to) {
  // If `to` is already before `from`, the order holds. Otherwise `to` moves there, with all that it
  // depends on and that is between the two.
  KILN_CHECK(merged_into_[from] == from && merged_into_[to] == to) << from << " to " << to;
  if (from == to || !needs_[from].insert(to).second) return;
  ++edges_;
  if (labels_[to] > labels_[from]) {
    std::vector<int> moved;
    const bool is_acyclic = Search({to}, labels_[from], from, &moved);
    KILN_CHECK(is_acyclic) << "cluster " << to << " depends on " << from;
    MoveBefore(std::move(moved), from);
  }
  KILN_VALIDATE(*this, labels_.size() + edges_);
}

// The merged cluster gets the position of the earlier one: readers of either come after it.
void Dependencies::Merge(int from, int into) {
  KILN_CHECK(from != into && merged_into_[from] == from && merged_into_[into] == into);
  // The dependencies of the later one must move before the earlier one's position.
  const auto [early, late] =
      labels_[from] < labels_[into] ? std::pair(from, into) : std::pair(into, from);
  std::vector<int> roots = Needs(late);
  std::erase(roots, early);
  std::vector<int> moved;
  const bool is_acyclic = Search(std::move(roots), labels_[early], early, &moved);
  KILN_CHECK(is_acyclic) << "cluster " << late << " depends on " << early << " over others";
  MoveBefore(std::move(moved), early);
  order_.erase(labels_[late]);
  labels_[into] = labels_[early];
  order_[labels_[into]] = into;
  merged_into_[from] = into;
  needs_[into].insert(needs_[from].begin(), needs_[from].end());
  needs_[into].erase(into);
  needs_[into].erase(from);
  needs_[from].clear();
  KILN_VALIDATE(*this, labels_.size() + edges_);
}

std::vector<int> Dependencies::Needs(int cluster) const {
  std::vector<int> needs;
  for (const int need : needs_[cluster]) {
    if (Find(need) != cluster) needs.push_back(Find(need));
  }
  std::sort(needs.begin(), needs.end());
  needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
  return needs;
}

void Dependencies::MoveBefore(std::vector<int> clusters, int next) {
  if (clusters.empty()) return;
  std::sort(clusters.begin(), clusters.end(),
            [this](int a, int b) { return labels_[a] < labels_[b]; });
  // Spreads labels evenly over the gap before `next`.
  const auto room = static_cast<int64_t>(clusters.size()) + 1;
  auto before = [&] {
    const auto at = order_.find(labels_[next]);
    return at == order_.begin() ? at->first - kGap : std::prev(at)->first;
  };
  if (labels_[next] - before() < room) Relabel();
  const int64_t first = before();
  const int64_t step = (labels_[next] - first) / room;
  KILN_CHECK_GE(step, 1) << "no room for " << clusters.size() << " labels";
  for (size_t i = 0; i < clusters.size(); ++i) {
    int64_t& label = labels_[clusters[i]];
    order_.erase(label);
    label = first + step * static_cast<int64_t>(i + 1);
    order_.emplace(label, clusters[i]);
  }
}

void Dependencies::Relabel() {
  std::map<int64_t, int> order;
  for (const auto& [label, cluster] : order_) {
    labels_[cluster] = static_cast<int64_t>(order.size()) * kGap;
    order.emplace_hint(order.end(), labels_[cluster], cluster);
  }
  order_ = std::move(order);
}

}  // namespace kiln::partition
