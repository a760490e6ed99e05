// Records what the daemon does while it is traced.
#ifndef KILN_SERVER_TRACE_RECORDER_H_
#define KILN_SERVER_TRACE_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/trace/span.h"

namespace kiln::trace {

// Bounds of the spans that a trace holds until its reader takes them. Later ones are dropped and
// counted.
inline constexpr size_t kSpansMax = 1 << 15;
inline constexpr int64_t kSpanBytesMax = 8 << 20;
// Each text of a span is cut to this.
inline constexpr size_t kTextBytesMax = 256;
inline constexpr int kTracesMax = 4;  // one of them only for viewers who see all
inline constexpr int kTracesOfUserMax = 2;

// For whom a trace is made.
struct Viewer {
  std::string user;
  // Whether the spans of all users are in the trace. Otherwise it has the viewer's own spans, and
  // for the occupancy of devices the runs of others as `other`, without their names.
  bool sees_all = false;
};

// The spans that ended since the trace began. Used by one thread at a time.
class Trace {
 public:
  struct Taken {
    std::vector<Span> spans;  // in the order in which they were recorded
    int64_t dropped = 0;      // spans for which there was no room, after the last one of these
  };

  virtual ~Trace() = default;
  // Takes the oldest spans, at most `spans_max`. `dropped` is counted once, with the last spans
  // before the gap.
  virtual Taken Take(size_t spans_max) = 0;
  // Records nothing more; what was recorded can still be taken. May be called again.
  virtual void Stop() = 0;
  // By the steady clock.
  virtual absl::Time began() const = 0;
};

// Thread-safe.
class Recorder {
 public:
  // `now` is the steady clock.
  explicit Recorder(std::function<absl::Time()> now) : now_(std::move(now)) {}
  // Requires: its traces were destroyed.
  ~Recorder();

  // Whether there is a trace: ask this before a span is made. One relaxed load.
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  absl::Time now() const { return now_(); }
  // A number for Span::number.
  uint64_t NewNumber() { return last_number_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // Adds a span that has ended, then the spans within it, to each trace whose viewer may see them.
  // Requires: `parts` is empty, or `span` is a kRun and these are its commands.
  //
  // Devices say how long a run took, and report its end a little later. A run that would thus begin
  // before the end of the one before it on its device begins with that, and its commands are moved
  // into it.
  void Add(Span span, std::vector<Span> parts = {}) ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins a trace, which ends when it is destroyed. RESOURCE_EXHAUSTED, TOO_MANY_TRACES: there are
  // kTracesMax, or kTracesOfUserMax of this user.
  absl::StatusOr<std::unique_ptr<Trace>> Begin(Viewer viewer) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Spans;
  class Reader;

  void End(const Spans& ended) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the start of a run after the end of the one before it on its device.
  void FollowLastRun(Span* run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<absl::Time()> now_;
  std::atomic<bool> is_on_{false};
  std::atomic<uint64_t> last_number_{0};
  absl::Mutex mutex_;  // before those of the traces
  std::vector<std::shared_ptr<Spans>> traces_ ABSL_GUARDED_BY(mutex_);
  // The end of the last run on each device, while there are traces.
  std::map<std::string, absl::Time> last_ends_ ABSL_GUARDED_BY(mutex_);
};

// Whether spans are wanted; `recorder` may be null.
inline bool IsOn(const Recorder* recorder) { return recorder != nullptr && recorder->is_on(); }

}  // namespace kiln::trace

#endif  // KILN_SERVER_TRACE_RECORDER_H_
