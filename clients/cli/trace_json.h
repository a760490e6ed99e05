// Traces in Chrome's trace event format, which Perfetto (https://ui.perfetto.dev) and
// chrome://tracing show. Source: "Trace Event Format", Google, 2016.
#ifndef KILN_CLIENTS_CLI_TRACE_JSON_H_
#define KILN_CLIENTS_CLI_TRACE_JSON_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kiln/v1/trace.pb.h"

namespace kiln::cli {

struct CollectedTrace {
  absl::Time began = absl::UnixEpoch();
  std::string address = {};  // of the daemon
  std::vector<v1::TraceSpan> spans = {};
  // Spans that the daemon dropped, after the span with this index was recorded.
  struct Gap {
    int64_t after_nanoseconds = 0;  // the end of that span, since the trace began
    uint64_t dropped = 0;
  };
  std::vector<Gap> gaps = {};
};

// Writes one JSON object. Devices, the compiler and sessions are processes; their queues, copies
// and so on are threads. Spans of a thread that overlap without being parts of one work are on
// several threads, named "operations", "operations 2" and so on, so that all are nested properly.
// Counters show how many operations are in flight, and how many runs wait.
void WriteChromeTrace(const CollectedTrace& trace, std::ostream& out);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_TRACE_JSON_H_
