// Where the time goes from the arrival of a graph to the answer to its first run.
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

// Pages that this process has touched first so far (getrusage(2), ru_minflt).
int64_t PageFaults();

// Parts that others ask for by their names.
inline constexpr char kWaitForRun[] = "wait_for_run";

// Thread-safe. One part follows the other without a gap, so that together they are the whole:
//
//   decode           the message is parsed
//   digest_source    the graph, as it was sent, gets its key
//   wait_for_session operations before it are executed
//   wait_for_thread  until a thread compiles it
//   build_graph      the wire's graph becomes primitives
//   digest_graph     the canonical graph gets its digest; equal ones that compile are waited for
//   compile          the compiler, but for its passes, which are parts under their own names; of
//                    those that work at kernels, what threads do at once is divided by their number
//                    ("emit.wait_for_worker"), and the pass's own name is what is left: threads
//                    that wait for the slowest
//   bind             of a graph with variables: its program is proved right at their values
//   load             machine code on its device, and the recorded list
//   wait_for_run     nobody has run it yet: the client, or operations before the run
//   allocate         memory of the results
//   wait_for_device  the run's turn in the device's queue, and what is on the device before it
//   run              its lists, from the first to the end of the last
//   answer           the results resolve, and the answer is handed to the stream
class FirstCall {
 public:
  struct Part {
    std::string name;
    absl::Duration time;
    int64_t page_faults = 0;  // of the whole process, meanwhile
  };
  struct Progress {
    std::string part;     // the current one
    absl::Duration time;  // since the beginning
    int kernels = 0;      // distinct ones; 0 before that is known
    int kernels_made = 0;
  };
  using Now = std::function<absl::Time()>;  // a steady clock

  // Begins now, with this part.
  FirstCall(Now now, std::string_view part, std::function<int64_t()> page_faults = PageFaults)
      : FirstCall(now, part, now(), std::move(page_faults)) {}
  // The same; it has begun at `began`.
  FirstCall(Now now, std::string_view part, absl::Time began,
            std::function<int64_t()> page_faults = PageFaults);

  // The current part ends, and this one begins. One that was there before goes on.
  void Begin(std::string_view part) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the current part's time the passes' is taken out, and stands before it.
  void TakeOut(const std::vector<compiler::PassReport>& passes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The compiler has found so many kernels more, and made so many.
  void CountKernels(int found, int made) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last part ends. Nothing changes from here on.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  bool has_ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  Progress progress() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Those that have ended, in the order in which they began.
  std::vector<Part> parts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // From the beginning to the end, or until now.
  absl::Duration total() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Part& Find(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndPart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
