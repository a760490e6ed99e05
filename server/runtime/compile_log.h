// What the log tells of a program's compilation.
#ifndef KILN_SERVER_RUNTIME_COMPILE_LOG_H_
#define KILN_SERVER_RUNTIME_COMPILE_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "compiler/compiler.h"

namespace kiln::runtime {

class FirstCall;
class Program;

// The program that is being compiled, as the log names it.
struct CompileLabel {
  std::string digest;
  std::string name;
  std::string device;
  std::string user;  // who asked first; empty: the daemon itself
};

void LogCompileStarted(const CompileLabel& label, const graph::Graph& graph);
// A defect of Kiln's is an error, and all else the client's. `with_graph`: of a defect, the
// beginning of its graph, too.
void LogCompileFailed(const CompileLabel& label, const graph::Graph& graph,
                      const absl::Status& status, bool with_graph);
// Also every pass and kernel, where the log wants to know.
void LogCompiled(const CompileLabel& label, const compiler::CompiledProgram& program,
                 double seconds);

// What the time went for until the answer to this run, the program's first (first_call.h): a field
// for each part, in seconds.
void LogFirstCall(const std::string& run, const Program& program, const FirstCall& call,
                  const absl::Status& status);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_COMPILE_LOG_H_
