// Holds up what a stand-in does, for as long as a test wants.
#ifndef KILN_TESTS_STAND_INS_GATE_H_
#define KILN_TESTS_STAND_INS_GATE_H_

#include <condition_variable>
#include <mutex>

namespace kiln::stand_ins {

// Thread-safe. Open at first.
class Gate {
 public:
  // From now on threads that come are held, except the first `pass` of them.
  void Close(int pass = 0) {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    pass_ = pass;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    opened_.notify_all();
  }
  // How many threads are held now.
  int held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

  // For the stand-in: returns once the thread is not held.
  void Pass() {
    std::unique_lock lock(mutex_);
    if (!closed_ || pass_-- > 0) return;
    ++held_;
    opened_.wait(lock, [this] { return !closed_; });
    --held_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool closed_ = false;
  int pass_ = 0;
  int held_ = 0;
};

}  // namespace kiln::stand_ins

#endif  // KILN_TESTS_STAND_INS_GATE_H_
