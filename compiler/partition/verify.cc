// Implements Verify of partition.h.
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/partition/partition.h"

namespace kiln::partition {

namespace {

class Verifier {
 public:
  Verifier(const Partition& partition, const graph::Graph& graph)
      : partition_(partition),
        graph_(graph),
        ready_(partition.tensors.size(), false),
        read_(partition.tensors.size(), false) {}

  absl::Status Run() {
    for (size_t i = 0; i < partition_.tensors.size(); ++i) {
      const Tensor& tensor = partition_.tensors[i];
      // An empty tensor needs no kernel.
      ready_[i] = tensor.kind == Tensor::Kind::kInput || ir::NumElements(tensor.shape) == 0;
      if (tensor.kind == Tensor::Kind::kInput || tensor.kind == Tensor::Kind::kIntermediate)
        continue;
      if (absl::Status s = Serve(tensor.kind, tensor.index); !s.ok()) return s;
    }
    for (size_t i = 0; i < partition_.groups.size(); ++i) {
      if (absl::Status s = VerifyGroup(static_cast<int>(i)); !s.ok()) return s;
    }
    for (const Copy& copy : partition_.copies) {
      if (!Exists(copy.tensor) || !ready_[copy.tensor]) {
        return absl::InternalError(
            absl::StrCat("a copy reads t", copy.tensor, ", which is not made"));
      }
      if (absl::Status s = Serve(copy.destination, copy.index); !s.ok()) return s;
    }
    return VerifyServed();
  }

 private:
  bool Exists(int tensor) const {
    return tensor >= 0 && tensor < static_cast<int>(partition_.tensors.size());
  }

  absl::Status VerifyGroup(int number) {
    const Group& group = partition_.groups[number];
    auto error = [&](const char* what, int tensor) {
      return absl::InternalError(absl::StrCat("group ", number, " ", what, " t", tensor));
    };
    for (const int tensor : group.reads) {
      if (!Exists(tensor) || !ready_[tensor]) return error("reads before it is made", tensor);
    }
    for (const int tensor : group.writes) {
      if (!Exists(tensor) || ready_[tensor]) return error("writes what exists already,", tensor);
    }
    for (const int tensor : group.updates) {
      if (!Exists(tensor) || !ready_[tensor]) return error("writes over what is not made,", tensor);
      if (read_[tensor] || partition_.tensors[tensor].kind == Tensor::Kind::kInput) {
        return error("writes over what others read,", tensor);
      }
    }
    // From here on no group may overwrite them.
    for (const int tensor : group.reads) read_[tensor] = true;
    for (const int tensor : group.updates) {
      if (absl::c_linear_search(group.reads, tensor)) {
        return error("reads what it writes over,", tensor);
      }
    }
    for (const int tensor : group.writes) ready_[tensor] = true;
    if (group.writes.empty() && group.updates.empty())
      return absl::InternalError(absl::StrCat("group ", number, " writes nothing"));
    return absl::OkStatus();
  }

  absl::Status Serve(Tensor::Kind kind, int index) {
    if (served_.insert({static_cast<int>(kind), index}).second) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("output or update ", index, " is written twice"));
  }

  absl::Status VerifyServed() const {
    auto check = [&](Tensor::Kind kind, size_t count, const char* what) {
      for (size_t i = 0; i < count; ++i) {
        if (served_.contains({static_cast<int>(kind), static_cast<int>(i)})) continue;
        return absl::InternalError(absl::StrCat(what, " ", i, " is written by no kernel"));
      }
      return absl::OkStatus();
    };
    if (absl::Status s = check(Tensor::Kind::kOutput, graph_.outputs.size(), "output"); !s.ok()) {
      return s;
    }
    if (absl::Status s = check(Tensor::Kind::kUpdate, graph_.updates.size(), "update"); !s.ok()) {
      return s;
    }
    for (size_t i = 0; i < partition_.tensors.size(); ++i) {
      if (!ready_[i]) {
        return absl::InternalError(absl::StrCat("tensor t", i, " is written by no kernel"));
      }
    }
    return absl::OkStatus();
  }

  const Partition& partition_;
  const graph::Graph& graph_;
  std::vector<bool> ready_;
  std::vector<bool> read_;
  absl::flat_hash_set<std::pair<int, int>> served_;
};

}  // namespace

absl::Status Verify(const Partition& partition, const graph::Graph& graph) {
  return Verifier(partition, graph).Run();
}

}  // namespace kiln::partition
