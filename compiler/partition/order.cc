// OrderGroups of memory_plan.h.
#include <set>
#include <utility>
#include <vector>

#include "compiler/partition/memory_plan.h"

namespace kiln::partition {

namespace {

int64_t Bytes(const Tensor& tensor) {
  return ir::NumElements(tensor.shape) * ir::SizeOf(tensor.dtype);
}

// List scheduling: of the groups that may run, the one that leaves the least memory alive.
class Scheduler {
 public:
  explicit Scheduler(Partition* partition)
      : partition_(*partition),
        readers_(partition->tensors.size()),
        pending_(partition->tensors.size(), 0),
        blocked_(partition->groups.size(), 0),
        done_(partition->groups.size(), false),
        ranks_(partition->groups.size(), {0, -1}) {}

  void Run() {
    CountDependencies();
    std::vector<Group> ordered;
    for (size_t i = 0; i < blocked_.size(); ++i) {
      if (blocked_[i] == 0) MakeReady(static_cast<int>(i));
    }
    while (!ready_.empty()) {
      const int group = ready_.begin()->second;
      ready_.erase(ready_.begin());
      Finish(group);
      ordered.push_back(std::move(partition_.groups[group]));
    }
    partition_.groups = std::move(ordered);
  }

 private:
  void CountDependencies() {
    std::vector<bool> written(partition_.tensors.size(), false);
    for (const Group& group : partition_.groups) {
      for (const int tensor : group.writes) written[tensor] = true;
    }
    for (size_t i = 0; i < partition_.groups.size(); ++i) {
      for (const int tensor : partition_.groups[i].reads) {
        if (!written[tensor]) continue;
        readers_[tensor].push_back(static_cast<int>(i));
        ++pending_[tensor];
        ++blocked_[i];
      }
    }
  }

  // Bytes of intermediates that become alive less those that die; ties keep the given order.
  std::pair<int64_t, int> Rank(int group) const {
    int64_t change = 0;
    for (const int tensor : partition_.groups[group].writes) {
      if (partition_.tensors[tensor].kind == Tensor::Kind::kIntermediate) {
        change += Bytes(partition_.tensors[tensor]);
      }
    }
    for (const int tensor : partition_.groups[group].reads) {
      const Tensor& t = partition_.tensors[tensor];
      if (t.kind == Tensor::Kind::kIntermediate && pending_[tensor] == 1) change -= Bytes(t);
    }
    return {change, group};
  }

  void MakeReady(int group) {
    ranks_[group] = Rank(group);
    ready_.insert(ranks_[group]);
  }

  void Finish(int group) {
    for (const int tensor : partition_.groups[group].reads) {
      if (--pending_[tensor] == 1) UpdateReaders(tensor);
    }
    done_[group] = true;
    for (const int tensor : partition_.groups[group].writes) {
      for (const int reader : readers_[tensor]) {
        if (--blocked_[reader] == 0) MakeReady(reader);
      }
    }
  }

  // The one reader that is left will free the tensor.
  void UpdateReaders(int tensor) {
    for (const int reader : readers_[tensor]) {
      if (done_[reader] || ready_.erase(ranks_[reader]) == 0) continue;
      MakeReady(reader);
    }
  }

  Partition& partition_;
  std::vector<std::vector<int>> readers_;  // groups, by tensor
  std::vector<int> pending_;               // readers that have not run, by tensor
  std::vector<int> blocked_;               // reads that are not there yet, by group
  std::vector<bool> done_;                 // by group
  // Groups that may run, by rank, and the rank of each.
  std::set<std::pair<int64_t, int>> ready_;
  std::vector<std::pair<int64_t, int>> ranks_;
};

}  // namespace

void OrderGroups(Partition* partition) { Scheduler(partition).Run(); }

}  // namespace kiln::partition
