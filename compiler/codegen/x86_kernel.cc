#include "compiler/codegen/x86_kernel.h"

#include <utility>

#include "compiler/codegen/llvm_emit.h"
#include "compiler/codegen/llvm_ops.h"
#include "compiler/codegen/x86.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

constexpr char kSymbol[] = "kernel";

}  // namespace

bool IsX86Supported(const ir::Node* node, const drivers::Target& target) {
  return IsSupported(node);
}

absl::StatusOr<Code> AssembleX86(const kernel::Kernel& kernel, const schedule::LoopProgram& program,
                                 const drivers::Target& target) {
  llvm::LLVMContext context;
  auto module = EmitModule(context, program, target, kSymbol);
  auto blob = EmitBlob(*module, target, kSymbol);
  if (!blob.ok()) return blob.status();
  return Code{
      .code = std::move(blob->code), .entry = blob->entry, .scratch_bytes = program.scratch_bytes};
}

absl::StatusOr<std::string> DisassembleX86(const drivers::KernelImage& image,
                                           const drivers::Target& target) {
  return Disassemble(image.code, image.entry, target);
}

}  // namespace kiln::codegen
