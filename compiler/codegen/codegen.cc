#include "compiler/codegen/codegen.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/opencl_c/source.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/proof/prove.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/threads/synchronize.h"
#include "llvm/Config/llvm-config.h"

namespace kiln::codegen {
namespace {

// LLVM ends the process when its backend gets an operation that it cannot select, so unsupported
// operations must not reach it.
absl::Status CheckNodes(const MachineCode& machine, const ir::Node* root,
                        const drivers::Target& target) {
  if (root == nullptr) return absl::OkStatus();
  for (const ir::Node* node : ir::TopologicalOrder({&root, 1})) {
    if (node->dtype() == ir::DType::kFloat64 && !target.capabilities.fp64) {
      return absl::UnimplementedError(
          StrCat(target.Summary(), " has no float64, which ", ir::Name(node->op()), " needs"));
    }
    if (!machine.supports(node, target)) {
      return absl::UnimplementedError(StrCat("cannot generate code for ", ir::Name(node->op()),
                                             " of ", ir::Name(node->dtype()), " on ",
                                             target.Summary()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSupported(const MachineCode& machine, const kernel::Kernel& kernel,
                            const drivers::Target& target) {
  for (const kernel::Stage& stage : kernel.stages) {
    for (const kernel::Store& store : stage.stores) {
      for (const ir::Node* root : {store.index, store.value, store.valid}) {
        absl::Status status = CheckNodes(machine, root, target);
        if (!status.ok()) return status;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<drivers::KernelImage> CompileKernel(const MachineCode& machine,
                                                   const kernel::Kernel& kernel,
                                                   const schedule::Schedule& schedule,
                                                   const drivers::Target& target) {
  absl::Status supported = CheckSupported(machine, kernel, target);
  if (!supported.ok()) return supported;
  auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status();
  absl::Status proved = proof::Prove(kernel, schedule, *program);
  if (!proved.ok()) return proved;
  return CompileLoops(machine, kernel, *program, target);
}

namespace {

drivers::Access AccessOf(const kernel::Buffer& argument) {
  switch (argument.access) {
    case kernel::Access::kRead:
      return drivers::Access::kRead;
    case kernel::Access::kWrite:
      return drivers::Access::kWrite;
    case kernel::Access::kUpdate:
      return drivers::Access::kReadWrite;
  }
  return drivers::Access::kReadWrite;
}

}  // namespace

absl::StatusOr<drivers::KernelImage> CompileLoops(const MachineCode& machine,
                                                  const kernel::Kernel& kernel,
                                                  const schedule::LoopProgram& proved,
                                                  const drivers::Target& target) {
  // Copies one step ahead need more shared memory than the program declared.
  const schedule::LoopProgram program =
      schedule::Synchronize(proved, target.limits.threads_per_shuffle);
  if (program.threads > target.limits.threads_per_block ||
      program.shared_bytes > target.limits.shared_bytes_per_block) {
    return absl::InvalidArgumentError(
        StrCat("the schedule needs ", program.threads, " threads and ", program.shared_bytes,
               " shared bytes for a block; ", target.Summary(), " has ",
               target.limits.threads_per_block, " and ", target.limits.shared_bytes_per_block));
  }
  if (program.num_arguments > target.limits.arguments_max) {
    return absl::InvalidArgumentError(
        StrCat("the kernel ", kernel.name, " takes ", program.num_arguments, " arguments; ",
               target.Summary(), " takes at most ", target.limits.arguments_max));
  }
  absl::StatusOr<Code> code = machine.assemble(kernel, program, target);
  if (!code.ok()) return code.status();
  drivers::KernelImage image;
  image.name = kernel.name;
  image.architecture = std::string(machine.architecture);
  image.code = std::move(code->code);
  image.entry = code->entry;
  const int64_t tasks = std::max<int64_t>(program.grid_size(), 1);
  // Either a block runs each task, or each thread of a block runs one.
  image.block_size = program.threads > 1 ? program.threads : code->tasks_per_block;
  image.grid_size = program.threads > 1 ? tasks : (tasks - 1) / code->tasks_per_block + 1;
  image.shared_bytes = program.shared_bytes;
  image.scratch_bytes = code->scratch_bytes;
  image.num_arguments = program.num_arguments;
  image.takes_slot_table = code->takes_slot_table;
  image.runs_parts = true;
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.memory == kernel::Memory::kGlobal) image.access.push_back(AccessOf(buffer));
  }
  const kernel::Cost cost = kernel::EstimateCost(kernel);
  image.flops = cost.flops;
  image.bytes = cost.bytes;
  return image;
}

absl::StatusOr<std::string> Source(const kernel::Kernel& kernel,
                                   const schedule::Schedule& schedule) {
  auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status();
  return PrintSource(schedule::Synchronize(*std::move(program)));
}

std::string LlvmVersion() { return StrCat("LLVM ", LLVM_VERSION_STRING); }

}  // namespace kiln::codegen
