// What the compiler must have for one kind of machine code. The table of all kinds is
// compiler/machine_codes.cc; nothing else tells architectures apart.
#ifndef KILN_COMPILER_CODEGEN_MACHINE_CODE_H_
#define KILN_COMPILER_CODEGEN_MACHINE_CODE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::codegen {

// What of a KernelImage depends on the architecture.
struct Code {
  std::string code;
  int64_t entry = 0;
  int tasks_per_block = 1;    // of tasks that are run by one thread each
  int64_t scratch_bytes = 0;  // that the driver hands to the code
  bool takes_slot_table = false;
};

// A row of the table. No field is null, and all functions are thread-safe.
struct MachineCode {
  std::string_view architecture;  // Target::architecture
  // Whether there is code for this node, given its operands' values.
  bool (*supports)(const ir::Node* node, const drivers::Target& target);
  // A schedule that Apply accepts for this kernel: deterministic and quick.
  schedule::Schedule (*choose)(const kernel::Kernel& kernel, const drivers::Target& target);
  // What the target's driver loads: machine code, or source that it compiles. `program` was proved
  // to compute what `kernel` says, was synchronized (schedule/synchronize.h), and every node of it
  // is supported. INTERNAL: a defect of Kiln's
  // or of a tool that it uses.
  absl::StatusOr<Code> (*assemble)(const kernel::Kernel& kernel,
                                   const schedule::LoopProgram& program,
                                   const drivers::Target& target);
  // The code of an image that has some, for people.
  absl::StatusOr<std::string> (*disassemble)(const drivers::KernelImage& image,
                                             const drivers::Target& target);
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MACHINE_CODE_H_
