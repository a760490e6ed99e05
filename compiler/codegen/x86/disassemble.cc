#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/codegen/x86/target.h"
#include "compiler/codegen/x86/x86.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln::codegen {
namespace {

constexpr int kIntelSyntax = 1;

struct Instruction {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool valid = false;
  llvm::MCInst inst;
};

class Disassembler {
 public:
  Disassembler(const llvm::Target& backend, const drivers::Target& target)
      : registers_(backend.createMCRegInfo(X86Triple())),
        assembler_(backend.createMCAsmInfo(*registers_, X86Triple(), llvm::MCTargetOptions())),
        subtarget_(
            backend.createMCSubtargetInfo(X86Triple(), target.processor, X86Features(target))),
        instructions_(backend.createMCInstrInfo()),
        analysis_(backend.createMCInstrAnalysis(instructions_.get())),
        context_(X86Triple(), assembler_.get(), registers_.get(), subtarget_.get()),
        decoder_(backend.createMCDisassembler(*subtarget_, context_)),
        printer_(backend.createMCInstPrinter(X86Triple(), kIntelSyntax, *assembler_, *instructions_,
                                             *registers_)) {}

  std::string Run(std::string_view code, int64_t entry) {
    Decode(code, entry);
    NameTargets(code.size());
    std::string out;
    if (entry > 0) absl::StrAppend(&out, "; constants: ", entry, " bytes at 0\n");
    for (const Instruction& instruction : decoded_) {
      auto label = labels_.find(instruction.offset);
      if (label != labels_.end()) absl::StrAppend(&out, label->second, ":\n");
      absl::StrAppendFormat(&out, "%6x:  %s\n", instruction.offset, Line(instruction, entry));
    }
    return out;
  }

 private:
  void Decode(std::string_view code, uint64_t offset) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(code.data());
    while (offset < code.size()) {
      Instruction next;
      next.offset = offset;
      next.valid =
          decoder_->getInstruction(next.inst, next.bytes, {bytes + offset, code.size() - offset},
                                   offset, llvm::nulls()) == llvm::MCDisassembler::Success;
      // Tries again at the next byte.
      if (!next.valid) next.bytes = 1;
      offset += next.bytes;
      decoded_.push_back(std::move(next));
    }
  }

  // Labels are numbered in the order of the code.
  void NameTargets(uint64_t end) {
    uint64_t target = 0;
    for (const Instruction& instruction : decoded_) {
      if (BranchTarget(instruction, &target) && target < end) labels_[target] = "";
    }
    int count = 0;
    for (auto& [offset, name] : labels_) name = absl::StrCat("L", count++);
  }

  bool BranchTarget(const Instruction& instruction, uint64_t* target) const {
    return instruction.valid && analysis_->evaluateBranch(instruction.inst, instruction.offset,
                                                          instruction.bytes, *target);
  }

  std::string Line(const Instruction& instruction, uint64_t entry) {
    if (!instruction.valid) return "(not an instruction)";
    std::string text;
    llvm::raw_string_ostream stream(text);
    printer_->printInst(&instruction.inst, instruction.offset, "", *subtarget_, stream);
    for (char& c : text) c = c == '\t' ? ' ' : c;
    const size_t begin = text.find_first_not_of(' ');
    if (begin != std::string::npos) text.erase(0, begin);
    uint64_t target = 0;
    if (BranchTarget(instruction, &target) && labels_.contains(target)) {
      return absl::StrCat(text.substr(0, text.find(' ')), " ", labels_[target]);
    }
    auto address = analysis_->evaluateMemoryOperandAddress(instruction.inst, subtarget_.get(),
                                                           instruction.offset, instruction.bytes);
    if (address && *address < entry) absl::StrAppendFormat(&text, "  ; constant at %x", *address);
    return text;
  }

  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> assembler_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis_;
  llvm::MCContext context_;
  std::unique_ptr<llvm::MCDisassembler> decoder_;
  std::unique_ptr<llvm::MCInstPrinter> printer_;
  std::vector<Instruction> decoded_;
  std::map<uint64_t, std::string> labels_;
};

}  // namespace

absl::StatusOr<std::string> Disassemble(std::string_view code, int64_t entry,
                                        const drivers::Target& target) {
  auto backend = X86Backend(target);
  if (!backend.ok()) return backend.status();
  if (entry < 0 || entry > static_cast<int64_t>(code.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the entry ", entry, " is outside the ", code.size(), " bytes of code"));
  }
  return Disassembler(**backend, target).Run(code, entry);
}

}  // namespace kiln::codegen
