// Log events of a program's compilation.
#ifndef KILN_SERVER_RUNTIME_CACHE_COMPILE_LOG_H_
#define KILN_SERVER_RUNTIME_CACHE_COMPILE_LOG_H_

#include <cstdint>
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
  std::string user;     // the first to ask; empty: the daemon itself
  uint64_t number = 0;  // of its spans in traces
};

void LogCompileStarted(const CompileLabel& label, const graph::Graph& graph);
// Logs an internal error of Kiln at level error, and a client's mistake at level debug.
// `with_graph`: an internal error is logged with the beginning of its graph.
void LogCompileFailed(const CompileLabel& label, const graph::Graph& graph,
                      const absl::Status& status, bool with_graph);
// Logs also every pass and kernel if the log level includes them.
void LogCompiled(const CompileLabel& label, const compiler::CompiledProgram& program,
                 double seconds);

// Logs the time until this run, the program's first, was answered (runtime/first_call.h): one field
// for each part, in seconds.
void LogFirstCall(const std::string& run, const Program& program, const FirstCall& call,
                  const absl::Status& status);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_COMPILE_LOG_H_
