// The functions that the compiler needs for one kind of machine code. The table of all kinds is
// compiler/machine_codes.cc; no other code distinguishes architectures.
#ifndef KILN_COMPILER_CODEGEN_MACHINE_CODE_H_
#define KILN_COMPILER_CODEGEN_MACHINE_CODE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::codegen {

// The parts of a KernelImage that depend on the architecture.
struct Code {
  std::string code;
  int64_t entry = 0;
  int tasks_per_block = 1;    // for tasks that are run by one thread each
  int64_t scratch_bytes = 0;  // that the driver passes to the code
  bool takes_slot_table = false;
};

// A row of the table. No field is null, and all functions are thread-safe.
struct MachineCode {
  std::string_view architecture;  // Target::architecture
  // Returns whether this node is supported, given its operands' values.
  bool (*supports)(const ir::Node* node, const drivers::Target& target);
  // Returns a schedule that Apply accepts for this kernel. Deterministic and quick.
  schedule::Schedule (*choose)(const kernel::Kernel& kernel, const drivers::Target& target);
  // Returns the schedule of a setting (compiler/search) in text form, and adds to `ignored` what is
  // not used of it. INVALID_ARGUMENT: why this kernel cannot have the setting.
  absl::StatusOr<schedule::Schedule> (*choose_by)(const kernel::Kernel& kernel,
                                                  const drivers::Target& target,
                                                  std::string_view setting,
                                                  std::vector<std::string>* ignored);
  // Returns what the target's driver loads: machine code, or source that it compiles. Requires:
  // `program` is proved to compute `kernel` and is synchronized (schedule/threads/synchronize.h),
  // and every node of it is supported. Returns INTERNAL for a defect of Kiln or of a tool that it
  // uses.
  absl::StatusOr<Code> (*assemble)(const kernel::Kernel& kernel,
                                   const schedule::LoopProgram& program,
                                   const drivers::Target& target);
  // Returns the code of an image, for display. Requires: the image has code.
  absl::StatusOr<std::string> (*disassemble)(const drivers::KernelImage& image,
                                             const drivers::Target& target);
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MACHINE_CODE_H_
