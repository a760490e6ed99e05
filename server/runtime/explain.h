// What people want to read about a compiled program.
#ifndef KILN_SERVER_RUNTIME_EXPLAIN_H_
#define KILN_SERVER_RUNTIME_EXPLAIN_H_

#include <string>

#include "compiler/compiler.h"
#include "server/runtime/program.h"

namespace kiln::runtime {

// The command queue, one line a command: "3: launch softmax_128(input 0 [0, 512), output 0 [0,
// 512))". Of a program on several devices, any one's, with its exchanges.
std::string QueueText(const compiler::CompiledProgram& program);
// Where devices run different programs, each of them below a line "on cpu:0".
std::string QueueText(const Program& program);

int KernelsFromCache(const compiler::CompiledProgram& program);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_EXPLAIN_H_
