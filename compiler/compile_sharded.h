// Compile for a graph on a mesh: its segments one after the other, with exchanges between them.
#ifndef KILN_COMPILER_COMPILE_SHARDED_H_
#define KILN_COMPILER_COMPILE_SHARDED_H_

#include "absl/status/statusor.h"
#include "compiler/codegen/machine_code.h"
#include "compiler/compiler.h"

namespace kiln::compiler {

// Requires: `graph` has a mesh; `code` is the row of target.architecture. Otherwise like Compile.
absl::StatusOr<CompiledProgram> CompileSharded(const graph::Graph& graph,
                                               const codegen::MachineCode& code,
                                               const drivers::Target& target,
                                               const Options& options);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_COMPILE_SHARDED_H_
