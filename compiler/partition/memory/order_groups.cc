#include "compiler/partition/memory/order_groups.h"

#include <set>
#include <utility>
#include <vector>

#include "proto/check/check.h"

namespace kiln::partition {

namespace {

int64_t Bytes(const Tensor& tensor) { return ir::BytesOf(tensor.dtype, tensor.shape); }

// List scheduling: among the groups that may run, chooses the one that leaves the least memory
// alive.
class Scheduler {
 public:
  explicit Scheduler(Partition* partition)
      : partition_(*partition),
        dependents_(partition->groups.size()),
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
    // A group in a cycle would never be ready.
    KILN_CHECK_EQ(ordered.size(), blocked_.size());
    partition_.groups = std::move(ordered);
    // As much work as building it.
    KILN_VALIDATE(*this, 1);
  }

  // Checks that nothing is left to do.
  void Validate() const {
    KILN_CHECK(ready_.empty());
    for (size_t i = 0; i < done_.size(); ++i) KILN_CHECK(done_[i] && blocked_[i] == 0) << i;
    for (size_t i = 0; i < pending_.size(); ++i) KILN_CHECK_EQ(pending_[i], 0) << "tensor " << i;
  }

 private:
  // A group that overwrites a tensor waits for the group that wrote it before; readers wait for the
  // last writer.
  void CountDependencies() {
    std::vector<int> maker(partition_.tensors.size(), -1);
    auto wait = [&](size_t group, int tensor) {
      ++pending_[tensor];
      if (maker[tensor] < 0) return;
      dependents_[maker[tensor]].push_back(static_cast<int>(group));
      ++blocked_[group];
    };
    for (size_t i = 0; i < partition_.groups.size(); ++i) {
      for (const int tensor : partition_.groups[i].updates) wait(i, tensor);
      for (const int tensor : partition_.groups[i].writes) maker[tensor] = static_cast<int>(i);
      for (const int tensor : partition_.groups[i].updates) maker[tensor] = static_cast<int>(i);
    }
    for (size_t i = 0; i < partition_.groups.size(); ++i) {
      for (const int tensor : partition_.groups[i].reads) {
        wait(i, tensor);
        readers_[tensor].push_back(static_cast<int>(i));
      }
    }
  }

  // Bytes of intermediates that become alive minus those that die; ties keep the given order.
  std::pair<int64_t, int> Rank(int group) const {
    int64_t change = 0;
    for (const int tensor : partition_.groups[group].writes) {
      // Inputs and results are always alive.
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
    KILN_CHECK(!done_[group] && blocked_[group] == 0) << "group " << group;
    ranks_[group] = Rank(group);
    ready_.insert(ranks_[group]);
  }

  void Finish(int group) {
    for (const std::vector<int>* used :
         {&partition_.groups[group].reads, &partition_.groups[group].updates}) {
      for (const int tensor : *used) {
        // Ranks change only here, once per tensor, so all updates together take linear time.
        if (--pending_[tensor] == 1) UpdateReaders(tensor);
        KILN_CHECK_GE(pending_[tensor], 0) << "tensor " << tensor;
      }
    }
    done_[group] = true;
    for (const int dependent : dependents_[group]) {
      if (--blocked_[dependent] == 0) MakeReady(dependent);
    }
  }

  // The one remaining reader will free the tensor.
  void UpdateReaders(int tensor) {
    for (const int reader : readers_[tensor]) {
      // A reader that is not ready gets its rank when it becomes ready.
      if (done_[reader] || ready_.erase(ranks_[reader]) == 0) continue;
      MakeReady(reader);
    }
  }

  Partition& partition_;
  std::vector<std::vector<int>> dependents_;  // groups that wait for this one
  std::vector<std::vector<int>> readers_;     // groups, by tensor
  std::vector<int> pending_;                  // uses that have not run, by tensor
  std::vector<int> blocked_;                  // unmet dependencies, by group
  std::vector<bool> done_;                    // by group
  // Groups that may run, by rank, and the rank of each.
  std::set<std::pair<int64_t, int>> ready_;
  std::vector<std::pair<int64_t, int>> ranks_;
};

}  // namespace

void OrderGroups(Partition* partition) { Scheduler(partition).Run(); }

}  // namespace kiln::partition
