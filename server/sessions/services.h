// The dependencies of sessions, and the limits on what the daemon holds for one.
#ifndef KILN_SERVER_SESSIONS_SERVICES_H_
#define KILN_SERVER_SESSIONS_SERVICES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/buffers/blob_store.h"
#include "server/clock/clock.h"
#include "server/fairness/host_work.h"
#include "server/fairness/submission_order.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/thread_pool.h"
#include "server/sessions/recorder.h"
#include "server/sessions/session_names.h"
#include "server/trace/recorder.h"

namespace kiln::sessions {

struct SessionState;

struct SessionLimits {
  int64_t read_bytes = 1 << 20;              // of a Read's answer; larger values need Download
  int64_t pending_operations = 4096;         // received and not answered; reading pauses at this
  int64_t pending_bytes = 64 << 20;          // of them and their graphs; reading pauses at this
  int64_t unacknowledged_answers = 1 << 17;  // the stream is closed above this
  int64_t unacknowledged_bytes = 16 << 20;
  size_t bindings_per_program = 256;  // remembered; the least recently used are evicted
};

// Requires: all of them outlive the sessions.
struct Services {
  runtime::ProgramCache* programs = nullptr;
  buffers::BlobStore* blobs = nullptr;
  metrics::Metrics* metrics = nullptr;
  runtime::ThreadPool* copies = nullptr;  // for copies that may block
  Clock clock;
  // Reads the result of GraphSource::Wire, for programs that were saved.
  std::function<absl::StatusOr<std::shared_ptr<const runtime::GraphSource>>(absl::string_view,
                                                                            memory::Account&)>
      unpack_graph;
  SessionLimits limits;
  SessionNames* names = nullptr;  // the registry's
  // All devices of the daemon, and the order in which multi-device programs are queued on them.
  std::vector<runtime::ManagedDevice*> devices = {};
  fairness::SubmissionOrder* submission_order = nullptr;
  // Makes the recorder of a session with a checkpoint interval; null: there are no checkpoints.
  std::function<std::unique_ptr<Recorder>(SessionState&)> new_recorder = nullptr;
  absl::Duration park_max = absl::Hours(7 * 24);  // how long a parked session is kept
  trace::Recorder* trace_recorder = nullptr;      // null: operations are not traced
  fairness::HostWork* host_work = nullptr;        // counts writes; may be null
  std::shared_ptr<memory::HostMemory> host =
      std::make_shared<memory::HostMemory>(int64_t{1} << 30, 1024);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SERVICES_H_
