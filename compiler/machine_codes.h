// The table of the kinds of machine code: a row for each architecture that a driver reports.
#ifndef KILN_COMPILER_MACHINE_CODES_H_
#define KILN_COMPILER_MACHINE_CODES_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/machine_code.h"

namespace kiln::compiler {

absl::Span<const codegen::MachineCode> MachineCodes();

// UNIMPLEMENTED names the architecture and those that there are.
absl::StatusOr<const codegen::MachineCode*> FindMachineCode(std::string_view architecture);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_MACHINE_CODES_H_
