#include "compiler/codegen/testing/ir_text.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/amdgcn/amdgcn.h"
#include "compiler/codegen/amdgcn/host_twin.h"
#include "compiler/codegen/spirv/spirv.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

namespace kiln::codegen {
namespace {

absl::StatusOr<std::unique_ptr<llvm::Module>> ParseIr(const std::string& text,
                                                      llvm::LLVMContext& context) {
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
  if (module != nullptr) return module;
  return absl::InvalidArgumentError(
      absl::StrCat("line ", problem.getLineNo(), ": ", problem.getMessage().str()));
}

}  // namespace

absl::StatusOr<Blob> EmitBlobFromText(const std::string& text, const drivers::Target& target,
                                      const std::string& symbol) {
  llvm::LLVMContext context;
  auto module = ParseIr(text, context);
  if (!module.ok()) return module.status();
  return EmitBlob(**module, target, symbol);
}

absl::StatusOr<std::string> EmitSpirvFromText(const std::string& text,
                                              const drivers::Target& target) {
  llvm::LLVMContext context;
  auto module = ParseIr(text, context);
  if (!module.ok()) return module.status();
  BeginSpirvModule(**module);
  return EmitSpirv(**module, target);
}

absl::StatusOr<std::string> EmitCodeObjectFromText(const std::string& text,
                                                   const drivers::Target& target) {
  llvm::LLVMContext context;
  std::string object;
  for (bool twin : {false, true}) {
    auto module = ParseIr(text, context);
    if (!module.ok()) return module.status();
    PrepareAmdgcnModule(**module);
    if (twin) {
      absl::Status added = AddHostTwin(**module, "kernel", &object);
      if (!added.ok()) return added;
      continue;
    }
    auto emitted = EmitCodeObject(**module, target);
    if (!emitted.ok()) return emitted.status();
    object = *std::move(emitted);
  }
  return object;
}

}  // namespace kiln::codegen
