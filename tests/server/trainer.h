// A client that trains while others misbehave, and that knows every bit of the correct result.
#ifndef KILN_TESTS_SERVER_TRAINER_H_
#define KILN_TESTS_SERVER_TRAINER_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace kiln::testing {

// Adds 0.1 to a vector repeatedly, in a thread: runs, reads, releases what it has read, and
// compares each result with the same sum computed here. A difference or an error fails the test.
class Trainer {
 public:
  explicit Trainer(const std::string& address);
  // Stops the thread.
  ~Trainer();

  int steps() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return steps_;
  }
  // Waits for `steps` more steps; false if something went wrong before.
  bool Advances(int steps) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns once it has to stop, or after an error.
  void Train(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a completed step; false if it was the last one.
  bool CountStep() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int steps_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_TRAINER_H_
