// A PTX module in the decoded form that the interpreter runs.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_PROGRAM_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_PROGRAM_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/float_format.h"
#include "tests/stand_ins/cuda/ptx/syntax.h"
#include "tests/stand_ins/cuda/ptx/type.h"

namespace kiln::stand_ins::ptx {

struct Thread;
struct Warp;

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kNumbers,  // neither is NaN
  kNan,
};

// Operands are slots of the thread's frame: registers, and constants, which are slots that are
// never written. Slot 0 receives unused results, and is read for missing operands.
struct Instruction {
  using Execute = void (*)(Thread& thread, const Instruction& instruction);
  // Executes the threads of a warp that stopped at this instruction together.
  using Collective = void (*)(Warp& warp, const Instruction& instruction, uint32_t members);

  Execute execute = nullptr;
  Collective collective = nullptr;
  uint32_t to = 0;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;        // a second result, or a fourth operand
  uint32_t members = 0;  // the mask of a warp's threads; 0: all
  uint32_t list = 0;     // of slots or targets, in Program::lists
  uint32_t list_size = 0;
  uint32_t guard = 0;  // the predicate's slot; 0: none
  bool guard_negated = false;
  bool flush = false;           // .ftz
  bool saturate = false;        // .sat
  bool negated = false;         // the operand c, a predicate
  bool unordered = false;       // a comparison is true if an operand is NaN
  bool integral = false;        // cvt.rni and the like
  bool frame_relative = false;  // an address in the frame's local memory or parameters
  bool aligned = false;         // all threads of a warp must stop at the same instruction
  uint8_t operation = 0;        // which operation, numbered within the instruction's family
  uint8_t bytes = 0;            // of one element of memory
  Type type = Type::kB32;
  Type from = Type::kB32;
  Space space = Space::kGeneric;
  Rounding rounding = Rounding::kNearestEven;
  Comparison comparison = Comparison::kEqual;
  uint32_t site = 0;   // of instructions that access memory
  int64_t offset = 0;  // of an address; of a branch, the instruction; of a call, the callee
};

struct DecodedFunction {
  std::string name = "";
  bool is_entry = false;
  uint32_t first = 0;      // instruction
  uint32_t registers = 0;  // slots before the constants
  std::vector<uint64_t> constants = {};
  int64_t local_bytes = 0;
  int64_t parameter_bytes = 0;           // all .param variables, the function's own first
  std::vector<int64_t> parameters = {};  // the place of each
  std::vector<int64_t> parameter_sizes = {};
  std::vector<int64_t> results = {};
  std::vector<int64_t> result_sizes = {};
  int64_t formal_bytes = 0;  // of an entry: the bytes passed by a launch
  // Only for an entry.
  int64_t shared_bytes = 0;
  std::array<uint32_t, 3> required_threads = {0, 0, 0};
  int64_t threads_max = 0;
};

struct Program {
  std::vector<Instruction> instructions;
  std::vector<uint32_t> lists;
  std::vector<DecodedFunction> functions;
  // For each instruction, for messages.
  std::vector<int> lines;
  std::vector<std::string> texts;
  uint32_t sites = 0;
  int architecture = 0;  // 80 for sm_80

  const DecodedFunction* FindEntry(absl::string_view name) const;
};

// Returns the address of a .global or .const variable in device memory.
using AddressOf = absl::FunctionRef<uint64_t(const Variable& variable)>;

// UNIMPLEMENTED for instructions that are not supported, INVALID_ARGUMENT for those that PTX does
// not have; both name the instruction and the line.
absl::StatusOr<Program> Decode(const Module& module, AddressOf address_of);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_PROGRAM_H_
