// Ctrl-C as an event, for commands that have something to finish.
#ifndef KILN_CLIENTS_CLI_INTERRUPTION_H_
#define KILN_CLIENTS_CLI_INTERRUPTION_H_

#include <atomic>
#include <functional>
#include <thread>

namespace kiln::cli {

// While it exists, the first SIGINT calls a function, on another thread, and does not end the
// process; the second one ends it. At most one exists at a time.
class Interruption {
 public:
  // Requires: `on_interrupt` may be called until the object is destroyed.
  explicit Interruption(std::function<void()> on_interrupt);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool happened() const { return happened_; }

 private:
  void Wait();

  const std::function<void()> on_interrupt_;
  std::atomic<bool> happened_ = false;
  std::thread waiter_;
};

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_INTERRUPTION_H_
