#include "compiler/codegen/codegen.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/c_source.h"
#include "compiler/codegen/llvm_emit.h"
#include "compiler/codegen/llvm_ops.h"
#include "compiler/codegen/x86.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/proof/prove.h"
#include "compiler/schedule/apply.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

constexpr char kSymbol[] = "kernel";
// The architecture of devices that run nothing.
constexpr char kNoCode[] = "null";

// LLVM ends the process when its backend meets an operation that it cannot select, so nothing
// unsupported may get there.
absl::Status CheckNode(const ir::Node* root) {
  if (root == nullptr) return absl::OkStatus();
  for (const ir::Node* node : ir::TopologicalOrder({&root, 1})) {
    if (!IsSupported(node)) {
      return absl::UnimplementedError(StrCat("no code for ", ir::Name(node->op()), " of ",
                                             ir::Name(node->dtype()), " on the CPU"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSupported(const kernel::Kernel& kernel, const drivers::Target& target) {
  if (target.architecture == kNoCode) return absl::OkStatus();
  if (target.architecture != "x86-64") {
    return absl::UnimplementedError(
        StrCat("no code generator for the architecture '", target.architecture, "'"));
  }
  for (const kernel::Stage& stage : kernel.stages) {
    for (const kernel::Store& store : stage.stores) {
      for (const ir::Node* root : {store.index, store.value, store.valid}) {
        absl::Status status = CheckNode(root);
        if (!status.ok()) return status;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<drivers::KernelImage> CompileKernel(const kernel::Kernel& kernel,
                                                   const schedule::Schedule& schedule,
                                                   const drivers::Target& target) {
  absl::Status supported = CheckSupported(kernel, target);
  if (!supported.ok()) return supported;
  auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status();
  absl::Status proved = proof::Prove(kernel, schedule, *program);
  if (!proved.ok()) return proved;
  return CompileLoops(kernel, *program, target);
}

absl::StatusOr<drivers::KernelImage> CompileLoops(const kernel::Kernel& kernel,
                                                  const schedule::LoopProgram& program,
                                                  const drivers::Target& target) {
  drivers::KernelImage image;
  image.name = kernel.name;
  image.architecture = target.architecture;
  if (target.architecture != kNoCode) {
    llvm::LLVMContext context;
    auto module = EmitModule(context, program, target, kSymbol);
    auto blob = EmitBlob(*module, target, kSymbol);
    if (!blob.ok()) return blob.status();
    image.code = std::move(blob->code);
    image.entry = blob->entry;
  }
  image.grid_size = std::max<int64_t>(program.grid_size(), 1);
  image.scratch_bytes = program.scratch_bytes;
  image.num_arguments = program.num_arguments;
  const kernel::Cost cost = kernel::EstimateCost(kernel);
  image.flops = cost.flops;
  image.bytes = cost.bytes;
  return image;
}

absl::StatusOr<std::string> Source(const kernel::Kernel& kernel,
                                   const schedule::Schedule& schedule) {
  auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status();
  return PrintSource(*program);
}

}  // namespace kiln::codegen
