#include "compiler/compiler.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/compile_kernels.h"
#include "compiler/compile_sharded.h"
#include "compiler/machine_codes.h"
#include "compiler/pipeline.h"

namespace kiln::compiler {
namespace {

// Numbers the program's slots and maps each tensor of the partition to its slot.
class SlotMap {
 public:
  SlotMap(const graph::Graph& graph, const partition::Partition& partition,
          const partition::MemoryPlan& plan)
      : partition_(partition), plan_(plan), outputs_at_(static_cast<int>(graph.inputs.size())) {
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      Add(Slot::Kind::kInput, i, ir::BytesOf(graph.inputs[i].dtype, graph.inputs[i].shape));
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      Add(Slot::Kind::kOutput, i, ir::BytesOf(graph.outputs[i]));
    }
    updates_at_ = static_cast<int>(slots_.size());
    for (size_t i = 0; i < graph.updates.size(); ++i) {
      const ir::Node* value = graph.updates[i].value;
      Add(Slot::Kind::kUpdate, i, ir::BytesOf(value));
    }
    arena_at_ = static_cast<int>(slots_.size());
    // The last slot; exists only if there are intermediates.
    if (plan.arena_bytes > 0) Add(Slot::Kind::kArena, 0, plan.arena_bytes);
  }

  const std::vector<Slot>& slots() const { return slots_; }

  Argument Place(partition::Tensor::Kind kind, int index, int64_t bytes) const {
    switch (kind) {
      // The inputs' slots come first.
      case partition::Tensor::Kind::kInput:
        return {index, 0, bytes};
      case partition::Tensor::Kind::kOutput:
        return {outputs_at_ + index, 0, bytes};
      case partition::Tensor::Kind::kUpdate:
        return {updates_at_ + index, 0, bytes};
      case partition::Tensor::Kind::kIntermediate:
        return {arena_at_, 0, bytes};
    }
    return {};
  }

  Argument Place(int tensor) const {
    const partition::Tensor& t = partition_.tensors[tensor];
    Argument argument = Place(t.kind, t.index, ir::BytesOf(t.dtype, t.shape));
    if (t.kind == partition::Tensor::Kind::kIntermediate) argument.offset = plan_.offsets[tensor];
    return argument;
  }

 private:
  void Add(Slot::Kind kind, size_t index, int64_t bytes) {
    slots_.push_back({kind, static_cast<int>(index), bytes});
  }

  const partition::Partition& partition_;
  const partition::MemoryPlan& plan_;
  std::vector<Slot> slots_;
  int outputs_at_;
  int updates_at_ = 0;
  int arena_at_ = 0;
};

void FillCalls(const partition::Partition& partition, const SlotMap& slots, const KernelSet& set,
               CompiledProgram* program) {
  for (const GroupKernel& group : set.groups) {
    KernelCall call{group.kernel, {}};
    for (int tensor : group.tensors) call.arguments.push_back(slots.Place(tensor));
    program->calls.push_back(std::move(call));
  }
  for (const partition::Copy& copy : partition.copies) {
    const Argument source = slots.Place(copy.tensor);
    program->copies.push_back({source, slots.Place(copy.destination, copy.index, source.bytes)});
  }
}

}  // namespace

absl::StatusOr<CompiledProgram> Compile(const graph::Graph& graph, const drivers::Target& target,
                                        const Options& options) {
  const absl::StatusOr<const codegen::MachineCode*> machine = FindMachineCode(target.architecture);
  if (!machine.ok()) return machine.status();
  if (graph.sharding != nullptr) return CompileSharded(graph, **machine, target, options);
  CompiledProgram program;
  // The graph as given, before any pass.
  program.graph_text = graph::Print(graph);
  const absl::StatusOr<PassState> state = RunPasses(graph, target, {}, options, &program.passes);
  if (!state.ok()) return state.status();
  program.partition_text = partition::Print(state->partition);
  absl::StatusOr<KernelSet> set =
      CompileKernels(state->partition, **machine, target, options, &program.passes);
  if (!set.ok()) return set.status();
  const SlotMap slots(state->graph, state->partition, state->memory);
  program.slots = slots.slots();
  program.arena_bytes_without_reuse = state->memory.arena_bytes_without_reuse;
  FillCalls(state->partition, slots, *set, &program);
  program.kernels = std::move(set->kernels);
  return program;
}

absl::StatusOr<std::string> Disassemble(const drivers::KernelImage& image,
                                        const drivers::Target& target) {
  if (image.code.empty()) return "";
  const absl::StatusOr<const codegen::MachineCode*> machine = FindMachineCode(image.architecture);
  if (!machine.ok()) return machine.status();
  return (*machine)->disassemble(image, target);
}

}  // namespace kiln::compiler
