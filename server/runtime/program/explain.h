// Human-readable descriptions of a compiled program.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_EXPLAIN_H_
#define KILN_SERVER_RUNTIME_PROGRAM_EXPLAIN_H_

#include <string>

#include "compiler/compiler.h"
#include "server/runtime/program/program.h"

namespace kiln::runtime {

// Returns the command queue, one command a line: "3: launch softmax_128(input 0 [0, 512), output 0
// [0, 512))". For a program on several devices, the queue is that of any one device, with its
// exchanges.
std::string QueueText(const compiler::CompiledProgram& program);
// The same; if devices run different programs, each of them after a line "on cpu:0".
std::string QueueText(const Program& program);

int KernelsFromCache(const compiler::CompiledProgram& program);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_EXPLAIN_H_
