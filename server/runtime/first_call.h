// Breakdown of the time from the arrival of a graph to the answer to its first run.
#ifndef KILN_SERVER_RUNTIME_FIRST_CALL_H_
#define KILN_SERVER_RUNTIME_FIRST_CALL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compiler/compiler.h"

namespace kiln::runtime {

// Returns the number of minor page faults of this process (getrusage(2), ru_minflt).
int64_t PageFaults();

// Parts that are addressed by name.
inline constexpr char kWaitForRun[] = "wait_for_run";

// Thread-safe. The parts follow one another without a gap, so their sum is the total:
//
//   decode           the message is parsed
//   digest_source    the graph, as it was sent, gets its key
//   wait_for_session earlier operations of the session are executed
//   wait_for_thread  until a thread compiles it
//   build_graph      the wire's graph becomes primitives
//   digest_graph     the canonical graph gets its digest; waits for equal graphs that compile
//   compile          the compiler without its passes, which are parts under their own names. For
//                    passes over kernels, the time of concurrent threads is divided by the number
//                    of threads ("emit.wait_for_worker"); the part named as the pass itself is the
//                    rest: threads that wait for the slowest
//   bind             with variables: its program is proved right at their values
//   load             machine code on its device, and the recorded list
//   wait_for_run     nothing has run it yet: waits for the client, or for operations before the run
//   allocate         memory of the results
//   wait_for_device  until the run's turn in the device's queue and the end of earlier lists
//   run              its lists, from the start of the first to the end of the last
//   answer           the results resolve, and the answer is handed to the stream
class FirstCall {
 public:
  struct Part {
    std::string name;
    absl::Duration time;
    int64_t page_faults = 0;  // of the whole process during this part
  };
  struct Progress {
    std::string part;     // the current one
    absl::Duration time;  // since the beginning
    int kernels = 0;      // distinct kernels; 0 until that is known
    int kernels_made = 0;
  };
  using Now = std::function<absl::Time()>;  // a steady clock

  // Begins now, with this part.
  FirstCall(Now now, std::string_view part, std::function<int64_t()> page_faults = PageFaults)
      : FirstCall(now, part, now(), std::move(page_faults)) {}
  // The same, except that it began at `began`.
  FirstCall(Now now, std::string_view part, absl::Time began,
            std::function<int64_t()> page_faults = PageFaults);

  // Ends the current part and begins this one. A part of that name that exists is continued.
  void Begin(std::string_view part) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the time of the passes out of the current part, into parts listed before it.
  void TakeOut(const std::vector<compiler::PassReport>& passes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds `found` kernels found by the compiler and `made` kernels finished by it.
  void CountKernels(int found, int made) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the last part. The parts do not change after that.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  bool has_ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  Progress progress() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the parts that have ended, in the order in which they began.
  std::vector<Part> parts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the time from the beginning to the end, or until now.
  absl::Duration total() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Part& Find(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndPart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Now now_;
  const std::function<int64_t()> page_faults_;
  const absl::Time began_;
  mutable absl::Mutex mutex_;
  absl::Time part_began_ ABSL_GUARDED_BY(mutex_);
  int64_t faults_before_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string current_ ABSL_GUARDED_BY(mutex_);
  absl::Duration taken_out_ ABSL_GUARDED_BY(mutex_);  // of the current part
  std::vector<Part> parts_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int kernels_ ABSL_GUARDED_BY(mutex_) = 0;
  int kernels_made_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_FIRST_CALL_H_
