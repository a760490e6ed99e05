// One slice of time in the daemon's work, as traces show it.
#ifndef KILN_SERVER_TRACE_SPAN_H_
#define KILN_SERVER_TRACE_SPAN_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace kiln::trace {

enum class Kind {
  kOperation,  // of a session's stream: from its arrival to its answer
  kCall,       // another call of a client
  kWait,       // of a run, or its next slice, in the queue of a device
  kRun,        // of a program on a device; a slice of it if others run in between
  kCommand,    // a kernel or a copy within a kRun, in runs that are timed command by command
  kCopy,       // between the host and a device
  kCompile,    // of a program, from the graph to kernels on the device
  kPass,       // of the compiler, within a kCompile
  kKernel,     // compilation of one kernel by a worker
};

struct Span {
  Kind kind = Kind::kOperation;
  absl::Time start;  // by the steady clock
  absl::Duration duration;
  std::string name = {};     // of the operation, method, program, kernel or pass
  std::string user = {};     // empty: the daemon's own work
  std::string session = {};  // "s3"; empty if there is none
  std::string device = {};   // empty if there is none
  std::string program = {};  // the first digits of its digest; empty if there is none
  std::string detail = {};   // such as "s3/17", the operation; empty if there is none
  int64_t bytes = 0;         // copied
  // Spans with the same number other than 0 are parts of one work: commands of their run, passes of
  // their compilation.
  uint64_t number = 0;
};

}  // namespace kiln::trace

#endif  // KILN_SERVER_TRACE_SPAN_H_
