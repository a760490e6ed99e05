#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/codegen/amdgcn/amdgcn.h"
#include "compiler/codegen/amdgcn/target.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln::codegen {
namespace {

class AmdgcnDisassembler {
 public:
  AmdgcnDisassembler(const llvm::Target& backend, const drivers::Target& target)
      : registers_(backend.createMCRegInfo(AmdgcnTriple())),
        assembler_(backend.createMCAsmInfo(*registers_, AmdgcnTriple(), llvm::MCTargetOptions())),
        subtarget_(backend.createMCSubtargetInfo(AmdgcnTriple(), target.processor,
                                                 AmdgcnFeatures(target))),
        instructions_(backend.createMCInstrInfo()),
        context_(AmdgcnTriple(), assembler_.get(), registers_.get(), subtarget_.get()),
        decoder_(backend.createMCDisassembler(*subtarget_, context_)),
        printer_(backend.createMCInstPrinter(AmdgcnTriple(), assembler_->getAssemblerDialect(),
                                             *assembler_, *instructions_, *registers_)) {}

  // `labels`: names by offset.
  std::string Run(llvm::StringRef code, const std::map<uint64_t, std::string>& labels) {
    std::string out;
    const auto* bytes = reinterpret_cast<const uint8_t*>(code.data());
    for (uint64_t offset = 0; offset < code.size();) {
      if (const auto label = labels.find(offset); label != labels.end())
        absl::StrAppend(&out, label->second, ":\n");
      llvm::MCInst instruction;
      uint64_t size = 0;
      const bool valid =
          decoder_->getInstruction(instruction, size, {bytes + offset, code.size() - offset},
                                   offset, llvm::nulls()) == llvm::MCDisassembler::Success;
      absl::StrAppendFormat(&out, "%6x:  %s\n", offset,
                            valid ? Text(instruction, offset) : "(not an instruction)");
      offset += valid ? size : 4;
    }
    return out;
  }

 private:
  std::string Text(const llvm::MCInst& instruction, uint64_t offset) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    printer_->printInst(&instruction, offset, "", *subtarget_, stream);
    return std::string(absl::StripAsciiWhitespace(text));
  }

  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> assembler_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  llvm::MCContext context_;
  std::unique_ptr<llvm::MCDisassembler> decoder_;
  std::unique_ptr<llvm::MCInstPrinter> printer_;
};

}  // namespace

absl::StatusOr<std::string> DisassembleCodeObject(std::string_view object,
                                                  const drivers::Target& target) {
  auto backend = AmdgcnBackend(target);
  if (!backend.ok()) return backend.status();
  auto parsed = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "code object"));
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a code object: ", llvm::toString(parsed.takeError())));
  }
  for (const llvm::object::SectionRef& section : (*parsed)->sections()) {
    auto code = section.isText() ? section.getContents() : llvm::StringRef();
    if (!code) return absl::InvalidArgumentError(llvm::toString(code.takeError()));
    if (code->empty()) continue;
    std::map<uint64_t, std::string> labels;
    for (const llvm::object::SymbolRef& symbol : (*parsed)->symbols()) {
      auto address = symbol.getAddress();
      auto name = symbol.getName();
      if (address && name && *address >= section.getAddress() && !name->empty())
        labels[*address - section.getAddress()] = name->str();
      if (!address) llvm::consumeError(address.takeError());
      if (!name) llvm::consumeError(name.takeError());
    }
    return AmdgcnDisassembler(**backend, target).Run(*code, labels);
  }
  return absl::InvalidArgumentError("the code object has no code");
}

}  // namespace kiln::codegen
