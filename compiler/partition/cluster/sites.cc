#include "compiler/partition/cluster/sites.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/verify.h"
#include "compiler/partition/reads.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

std::string SiteType(const Node* node) {
  return absl::StrCat(std::string(ir::Name(node->op())), " ", std::string(ir::Name(node->dtype())),
                      "[", absl::StrJoin(node->shape(), ","), "]");
}

class SiteFinder {
 public:
  SiteFinder(const graph::Graph& graph, const Clustering& clustering, const drivers::Target& target)
      : all_(clustering),
        matrix_units_(target.capabilities.matrix),
        values_(NumberedValues(graph)) {
    for (const Node* root : graph::Roots(graph)) roots_.insert(root);
    for (const Node* node : values_) {
      for (const Node* operand : node->operands()) {
        std::vector<const Node*>& users = users_[operand];
        if (users.empty() || users.back() != node) users.push_back(node);
      }
    }
  }

  std::vector<Site> Run() {
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto number = static_cast<int64_t>(i);
      if (ir::NumElements(values_[i]->shape()) == 0) continue;
      AddStorage(number, values_[i]);
      const auto member = all_.member_of.find(values_[i]);
      if (member != all_.member_of.end()) AddPlace(number, all_.members[member->second]);
    }
    std::stable_sort(sites_.begin(), sites_.end(),
                     [](const Site& a, const Site& b) { return a.bytes > b.bytes; });
    return std::move(sites_);
  }

 private:
  void AddStorage(int64_t number, const Node* node) {
    if (!IsElementwise(node) || IsMaterialised(node) || roots_.contains(node)) return;
    if (LeftToReaders(node, matrix_units_) != nullptr) return;
    const auto member = all_.member_of.find(node);
    if (member != all_.member_of.end()) {
      const bool is_stored = all_.members[member->second].storage != Storage::kRequired;
      if (is_stored) Add(number, Choice::kRecompute);
      return;
    }
    // With one reader that reads each element once, storing would only cost.
    const auto users = users_.find(node);
    if (users == users_.end()) return;
    const Node* first = users->second[0];
    const bool repeats = ir::NumElements(first->shape()) > ir::NumElements(node->shape());
    if (users->second.size() > 1 || repeats) Add(number, Choice::kStore);
  }

  // In which kernel it is.
  void AddPlace(int64_t number, const Member& member) {
    const Cluster& cluster = all_.clusters[member.cluster];
    if (member.scatter) return;
    if (member.contraction) {
      if (cluster.split) Add(number, Choice::kKeep);
      if (!cluster.split && cluster.stages[0].size() > 1) Add(number, Choice::kSplit);
      return;
    }
    const bool is_first = all_.members[cluster.stages[0][0]].node == member.node;
    if (!is_first && !IsFirstOfEpilogue(cluster, member)) Add(number, Choice::kApart);
    if (is_first && member.stayed_out) Add(number, Choice::kJoin);
  }

  // Setting it apart would be splitting.
  bool IsFirstOfEpilogue(const Cluster& cluster, const Member& member) const {
    if (!cluster.contraction) return false;
    for (const int i : cluster.stages[0]) {
      if (!all_.members[i].contraction) return all_.members[i].node == member.node;
    }
    return false;
  }

  void Add(int64_t number, Choice choice) {
    const Node* node = values_[static_cast<size_t>(number)];
    const std::string name(Name(choice));
    Site site{.value = number,
              .choice = choice,
              .bytes = ir::BytesOf(node->dtype(), node->shape()),
              .kind = absl::StrCat(name, " ", SiteType(node)),
              .text = absl::StrCat(name, " %", number, " ", SiteType(node))};
    for (const Node* operand : node->operands())
      absl::StrAppend(&site.kind, " of ", SiteType(operand));
    std::vector<std::string> users;
    if (const auto found = users_.find(node); found != users_.end()) {
      for (const Node* user : found->second) users.push_back(SiteType(user));
    }
    absl::c_sort(users);
    for (const std::string& user : users) absl::StrAppend(&site.kind, " for ", user);
    sites_.push_back(std::move(site));
  }

  const Clustering& all_;
  const bool matrix_units_;
  const std::vector<const Node*> values_;
  absl::flat_hash_set<const Node*> roots_;
  absl::flat_hash_map<const Node*, std::vector<const Node*>> users_;
  std::vector<Site> sites_;
};

}  // namespace

std::vector<Site> FindSites(const graph::Graph& graph, const Clustering& clustering,
                            const drivers::Target& target) {
  return SiteFinder(graph, clustering, target).Run();
}

}  // namespace kiln::partition
