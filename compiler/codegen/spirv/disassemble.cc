#include "compiler/codegen/spirv/disassemble.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace kiln::codegen {
namespace {

constexpr uint32_t kMagic = 0x07230203;
constexpr size_t kHeaderWords = 5;

// An instruction that LLVM writes for Kiln's kernels (SPIR-V 1.2, 3.32). It has one letter for each
// operand, and the last letter may repeat: T the result's type, R the result, i an id, n a number,
// s a string.
struct OpcodeRow {
  uint32_t opcode;
  const char* name;
  const char* operands;
};
constexpr OpcodeRow kOpcodes[] = {
    {1, "Undef", "TR"},
    {3, "Source", "nni"},
    {5, "Name", "is"},
    {11, "ExtInstImport", "Rs"},
    {12, "ExtInst", "TRini"},
    {14, "MemoryModel", "n"},
    {15, "EntryPoint", "nisi"},
    {16, "ExecutionMode", "in"},
    {17, "Capability", "n"},
    {19, "TypeVoid", "R"},
    {20, "TypeBool", "R"},
    {21, "TypeInt", "Rn"},
    {22, "TypeFloat", "Rn"},
    {23, "TypeVector", "Rin"},
    {28, "TypeArray", "Ri"},
    {30, "TypeStruct", "Ri"},
    {32, "TypePointer", "Rni"},
    {33, "TypeFunction", "Ri"},
    {41, "ConstantTrue", "TR"},
    {42, "ConstantFalse", "TR"},
    {43, "Constant", "TRn"},
    {44, "ConstantComposite", "TRi"},
    {46, "ConstantNull", "TR"},
    {54, "Function", "TRni"},
    {55, "FunctionParameter", "TR"},
    {56, "FunctionEnd", ""},
    {57, "FunctionCall", "TRi"},
    {59, "Variable", "TRni"},
    {61, "Load", "TRin"},
    {62, "Store", "iin"},
    {65, "AccessChain", "TRi"},
    {66, "InBoundsAccessChain", "TRi"},
    {67, "PtrAccessChain", "TRi"},
    {70, "InBoundsPtrAccessChain", "TRi"},
    {71, "Decorate", "in"},
    {77, "VectorExtractDynamic", "TRi"},
    {78, "VectorInsertDynamic", "TRi"},
    {79, "VectorShuffle", "TRiin"},
    {80, "CompositeConstruct", "TRi"},
    {81, "CompositeExtract", "TRin"},
    {82, "CompositeInsert", "TRiin"},
    {83, "CopyObject", "TRi"},
    {109, "ConvertFToU", "TRi"},
    {110, "ConvertFToS", "TRi"},
    {111, "ConvertSToF", "TRi"},
    {112, "ConvertUToF", "TRi"},
    {113, "UConvert", "TRi"},
    {114, "SConvert", "TRi"},
    {115, "FConvert", "TRi"},
    {117, "ConvertPtrToU", "TRi"},
    {120, "ConvertUToPtr", "TRi"},
    {124, "Bitcast", "TRi"},
    {126, "SNegate", "TRi"},
    {127, "FNegate", "TRi"},
    {128, "IAdd", "TRi"},
    {129, "FAdd", "TRi"},
    {130, "ISub", "TRi"},
    {131, "FSub", "TRi"},
    {132, "IMul", "TRi"},
    {133, "FMul", "TRi"},
    {134, "UDiv", "TRi"},
    {135, "SDiv", "TRi"},
    {136, "FDiv", "TRi"},
    {137, "UMod", "TRi"},
    {138, "SRem", "TRi"},
    {140, "FRem", "TRi"},
    {154, "Any", "TRi"},
    {155, "All", "TRi"},
    {156, "IsNan", "TRi"},
    {161, "LessOrGreater", "TRi"},
    {162, "Ordered", "TRi"},
    {163, "Unordered", "TRi"},
    {164, "LogicalEqual", "TRi"},
    {165, "LogicalNotEqual", "TRi"},
    {166, "LogicalOr", "TRi"},
    {167, "LogicalAnd", "TRi"},
    {168, "LogicalNot", "TRi"},
    {169, "Select", "TRi"},
    {170, "IEqual", "TRi"},
    {171, "INotEqual", "TRi"},
    {172, "UGreaterThan", "TRi"},
    {173, "SGreaterThan", "TRi"},
    {174, "UGreaterThanEqual", "TRi"},
    {175, "SGreaterThanEqual", "TRi"},
    {176, "ULessThan", "TRi"},
    {177, "SLessThan", "TRi"},
    {178, "ULessThanEqual", "TRi"},
    {179, "SLessThanEqual", "TRi"},
    {180, "FOrdEqual", "TRi"},
    {181, "FUnordEqual", "TRi"},
    {182, "FOrdNotEqual", "TRi"},
    {183, "FUnordNotEqual", "TRi"},
    {184, "FOrdLessThan", "TRi"},
    {185, "FUnordLessThan", "TRi"},
    {186, "FOrdGreaterThan", "TRi"},
    {187, "FUnordGreaterThan", "TRi"},
    {188, "FOrdLessThanEqual", "TRi"},
    {189, "FUnordLessThanEqual", "TRi"},
    {190, "FOrdGreaterThanEqual", "TRi"},
    {191, "FUnordGreaterThanEqual", "TRi"},
    {194, "ShiftRightLogical", "TRi"},
    {195, "ShiftRightArithmetic", "TRi"},
    {196, "ShiftLeftLogical", "TRi"},
    {197, "BitwiseOr", "TRi"},
    {198, "BitwiseXor", "TRi"},
    {199, "BitwiseAnd", "TRi"},
    {200, "Not", "TRi"},
    {224, "ControlBarrier", "i"},
    {245, "Phi", "TRi"},
    {246, "LoopMerge", "iin"},
    {247, "SelectionMerge", "in"},
    {248, "Label", "R"},
    {249, "Branch", "i"},
    {250, "BranchConditional", "i"},
    {251, "Switch", "iin"},
    {253, "Return", ""},
    {254, "ReturnValue", "i"},
    {255, "Unreachable", ""},
};

using Words = absl::Span<const uint32_t>;

// Appends a string of four characters a word, ended by a zero. Returns how many words it takes.
size_t AppendString(Words words, std::string* out) {
  out->append(" \"");
  for (size_t i = 0; i < words.size(); ++i) {
    for (int byte = 0; byte < 4; ++byte) {
      const char c = static_cast<char>(words[i] >> (8 * byte));
      if (c == '\0') {
        out->push_back('"');
        return i + 1;
      }
      out->push_back(c >= ' ' && c <= '~' ? c : '?');
    }
  }
  out->push_back('"');
  return words.size();
}

void AppendInstruction(Words words, std::string* out) {
  const uint32_t opcode = words[0] & 0xffff;
  const auto* row = std::find_if(std::begin(kOpcodes), std::end(kOpcodes),
                                 [opcode](const OpcodeRow& of) { return of.opcode == opcode; });
  const bool known = row != std::end(kOpcodes);
  const char* kind = known ? row->operands : "n";
  std::string operands, result;
  for (size_t i = 1; i < words.size();) {
    const char now = *kind == '\0' ? 'n' : *kind;
    if (now == 's') {
      i += AppendString(words.subspan(i), &operands);
    } else {
      const uint32_t word = words[i++];
      if (now == 'R') {
        result = absl::StrCat("%", word, " = ");
      } else {
        absl::StrAppend(&operands, now == 'n' ? " " : " %", word);
      }
    }
    if (*kind != '\0' && kind[1] != '\0') ++kind;
  }
  absl::StrAppend(out, result, "Op", known ? std::string(row->name) : absl::StrCat(opcode),
                  operands, "\n");
}

}  // namespace

absl::StatusOr<std::string> DisassembleSpirvWords(absl::string_view module) {
  std::vector<uint32_t> words(module.size() / sizeof(uint32_t));
  if (!words.empty()) std::memcpy(words.data(), module.data(), words.size() * sizeof(uint32_t));
  if (words.size() < kHeaderWords || words[0] != kMagic || module.size() % sizeof(uint32_t) != 0)
    return absl::InvalidArgumentError("not a SPIR-V module");
  std::string text = absl::StrCat("; SPIR-V ", words[1] >> 16 & 0xff, ".", words[1] >> 8 & 0xff,
                                  ", ids below ", words[3], "\n");
  for (size_t i = kHeaderWords; i < words.size();) {
    const size_t size = words[i] >> 16;
    if (size == 0 || size > words.size() - i) {
      return absl::InvalidArgumentError(
          absl::StrCat("SPIR-V with an instruction of ", size, " words at word ", i));
    }
    AppendInstruction(Words(words).subspan(i, size), &text);
    i += size;
  }
  return text;
}

}  // namespace kiln::codegen
