#include "compiler/codegen/testing/ir_text.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

namespace kiln::codegen {

absl::StatusOr<Blob> EmitBlobFromText(const std::string& text, const drivers::Target& target,
                                      const std::string& symbol) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
  if (module == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", problem.getLineNo(), ": ", problem.getMessage().str()));
  }
  return EmitBlob(*module, target, symbol);
}

}  // namespace kiln::codegen
