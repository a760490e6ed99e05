// Implements Print of partition.h.
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/partition/partition.h"

namespace kiln::partition {

namespace {

const char* Name(Tensor::Kind kind) {
  switch (kind) {
    case Tensor::Kind::kInput:
      return "input";
    case Tensor::Kind::kOutput:
      return "output";
    case Tensor::Kind::kUpdate:
      return "update";
    case Tensor::Kind::kIntermediate:
      return "intermediate";
  }
  return "";
}

class PartitionPrinter {
 public:
  explicit PartitionPrinter(const Partition& partition) : partition_(partition) {}

  std::string Run() {
    for (size_t i = 0; i < partition_.tensors.size(); ++i) PrintTensor(i);
    for (size_t i = 0; i < partition_.groups.size(); ++i) PrintGroup(i);
    for (const Copy& copy : partition_.copies) {
      absl::StrAppend(&text_, Name(copy.destination), " ", copy.index, " = t", copy.tensor, "\n");
    }
    return std::move(text_);
  }

 private:
  void PrintTensor(size_t i) {
    const Tensor& tensor = partition_.tensors[i];
    absl::StrAppend(&text_, "tensor t", i, " ", Name(tensor.kind));
    if (tensor.kind != Tensor::Kind::kIntermediate) absl::StrAppend(&text_, " ", tensor.index);
    absl::StrAppend(&text_, " ", std::string(ir::Name(tensor.dtype)), "[",
                    absl::StrJoin(tensor.shape, ","), "]\n");
  }

  static std::string Tensors(const std::vector<int>& tensors) {
    std::string text;
    for (const int tensor : tensors) absl::StrAppend(&text, " t", tensor);
    return text;
  }

  static std::string Loops(const Group& group, const std::vector<int>& loops) {
    std::string text;
    for (const int loop : loops) absl::StrAppend(&text, " l", loop, ":", group.loops[loop]);
    return text;
  }

  void PrintGroup(size_t i) {
    const Group& group = partition_.groups[i];
    absl::StrAppend(&text_, "group ", i, " reads", Tensors(group.reads));
    if (!group.writes.empty()) absl::StrAppend(&text_, " writes", Tensors(group.writes));
    if (!group.updates.empty()) absl::StrAppend(&text_, " updates", Tensors(group.updates));
    text_ += "\n";
    if (!group.grid.empty()) absl::StrAppend(&text_, "  grid", Loops(group, group.grid), "\n");
    for (const Stage& stage : group.stages) {
      absl::StrAppend(&text_, "  stage", Loops(group, stage.loops));
      if (!stage.reduce_loops.empty()) {
        absl::StrAppend(&text_, " reduce", Loops(group, stage.reduce_loops));
      }
      text_ += "\n";
      for (const Value& value : stage.values) PrintValue(group, value);
    }
  }

  void PrintValue(const Group& group, const Value& value) {
    absl::StrAppend(&text_, "    ", std::string(ir::Name(value.node->op())), " ",
                    std::string(ir::Name(value.node->dtype())), "[",
                    absl::StrJoin(value.node->shape(), ","), "]");
    if (value.tensor >= 0) absl::StrAppend(&text_, " -> t", value.tensor);
    if (value.local >= 0) {
      absl::StrAppend(&text_, " -> local ", value.local, "[", group.locals[value.local].elements,
                      "]");
    }
    text_ += "\n";
  }

  const Partition& partition_;
  std::string text_;
};

}  // namespace

std::string Print(const Partition& partition) { return PartitionPrinter(partition).Run(); }

}  // namespace kiln::partition
