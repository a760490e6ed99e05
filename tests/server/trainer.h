// A client that trains while others misbehave, and knows every bit of what must come out.
#ifndef KILN_TESTS_SERVER_TRAINER_H_
#define KILN_TESTS_SERVER_TRAINER_H_

#include <atomic>
#include <string>
#include <thread>

namespace kiln::testing {

// Adds 0.1 to a vector again and again, in a thread: runs, reads, releases what it has read, and
// compares each result with the same sum made here. What differs or fails is a test's failure.
class Trainer {
 public:
  explicit Trainer(const std::string& address);
  // Stops.
  ~Trainer();

  int steps() const { return steps_; }
  // Waits until so many more steps are done; false if they are not within thirty seconds.
  bool Advances(int steps) const;

 private:
  void Train(const std::string& address);

  std::atomic<bool> stopping_{false};
  std::atomic<int> steps_{0};
  std::thread thread_;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_TRAINER_H_
