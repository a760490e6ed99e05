// The table of machine code kinds: one row per architecture that drivers report.
#ifndef KILN_COMPILER_MACHINE_CODES_H_
#define KILN_COMPILER_MACHINE_CODES_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/machine_code.h"

namespace kiln::compiler {

absl::Span<const codegen::MachineCode> MachineCodes();

// UNIMPLEMENTED names the architecture and the known ones.
absl::StatusOr<const codegen::MachineCode*> FindMachineCode(std::string_view architecture);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_MACHINE_CODES_H_
