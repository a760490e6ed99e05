// A PTX text as its grammar describes it, without the meaning of instructions.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_SYNTAX_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_SYNTAX_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/type.h"

namespace kiln::stand_ins::ptx {

struct Variable {
  // An address that is known only when the module is loaded.
  struct Reference {
    int64_t offset;  // of its 8 bytes in `initial`
    std::string variable;
    int64_t addend;
  };

  std::string name = "";
  Space space = Space::kGeneric;
  Type type = Type::kB8;
  int64_t bytes = 0;  // 0: given by the launch
  int64_t alignment = 1;
  std::vector<uint8_t> initial = {};  // all of its bytes, or none
  std::vector<Reference> references = {};
  int line = 0;
};

struct Operand {
  enum class Kind {
    kName,     // a register, a variable, a label, a function
    kInteger,  // `bits`, as written with its sign
    kFloat32,  // `bits`
    kFloat64,  // `bits`
    kAddress,  // [elements[0] + offset]
    kVector,   // {elements}
    kList,     // (elements)
    kPair,     // elements[0] | elements[1]
    kSink,     // _
  };
  Kind kind = Kind::kSink;
  std::string name = "";
  bool negated = false;  // !name
  uint64_t bits = 0;
  int64_t offset = 0;
  std::vector<Operand> elements = {};
};

struct Statement {
  int line = 0;
  std::string guard = "";  // a predicate, or ""
  bool guard_negated = false;
  std::string opcode = "";  // with its modifiers
  std::vector<Operand> operands = {};
};

struct Function {
  struct Registers {
    Type type;
    int64_t count;  // for a range, name0 …; -1 for a single one
  };

  std::string name = "";
  int line = 0;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Variable> results = {};
  std::vector<Variable> parameters = {};
  std::vector<Variable> variables = {};  // its .local, .shared, .param, .const and .global ones
  absl::flat_hash_map<std::string, Registers> registers = {};
  std::vector<Statement> statements = {};
  absl::flat_hash_map<std::string, int64_t> labels = {};  // index of the statement that follows
  absl::flat_hash_map<std::string, std::vector<std::string>> branch_targets = {};
  std::array<uint32_t, 3> required_threads = {0, 0, 0};  // 0: any
  int64_t threads_max = 0;                               // 0: any
};

struct Module {
  int version = 0;  // 87 for 8.7
  std::string target;
  std::vector<Variable> variables;
  std::vector<Function> functions;  // one for each name, with its body if there is one
};

// INVALID_ARGUMENT for invalid PTX, UNIMPLEMENTED for unknown directives; each names its line.
absl::StatusOr<Module> Parse(absl::string_view text);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_SYNTAX_H_
