// Combines messages that are caused by one event, such as the end of a run.
#ifndef KILN_SERVER_RUNTIME_RUN_TOGETHER_H_
#define KILN_SERVER_RUNTIME_RUN_TOGETHER_H_

#include <functional>
#include <utility>
#include <vector>

#include "proto/check/check.h"

namespace kiln::runtime {

// A scope of a thread in which several events happen, such as the end of a run and of its results.
// Deferred calls are made at its end, in order, so that one message is sent instead of several.
// Nested scopes belong to the outermost one.
class Together {
 public:
  Together() : is_outermost_(current_ == nullptr) {
    if (is_outermost_) current_ = this;
  }
  ~Together() {
    if (!is_outermost_) return;
    KILN_CHECK_EQ(current_, this);
    current_ = nullptr;
    for (const auto& call : put_off_) call();
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  // Calls `call` at the end of this thread's scope; at once if there is none.
  static void Call(std::function<void()> call) {
    if (current_ == nullptr) return call();
    current_->put_off_.push_back(std::move(call));
  }

 private:
  static inline thread_local Together* current_ = nullptr;
  const bool is_outermost_;
  std::vector<std::function<void()>> put_off_;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_RUN_TOGETHER_H_
