// Blocks a stand-in's work until a test lets it continue.
#ifndef KILN_TESTS_STAND_INS_GATE_H_
#define KILN_TESTS_STAND_INS_GATE_H_

#include <condition_variable>
#include <mutex>

namespace kiln::stand_ins {

// Thread-safe. Initially open.
class Gate {
 public:
  // From now on blocks threads in Pass, except the first `pass` of them.
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
  // The number of blocked threads.
  int held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

  // For the stand-in: returns when the thread is not blocked any more.
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
