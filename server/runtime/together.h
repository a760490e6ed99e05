// What several parties are told at one moment, and send on together.
#ifndef KILN_SERVER_RUNTIME_TOGETHER_H_
#define KILN_SERVER_RUNTIME_TOGETHER_H_

#include <functional>
#include <utility>
#include <vector>

namespace kiln::runtime {

// A stretch of a thread's work in which things become known one after another, such as the end of a
// run and its results. What is put off goes out at its end, in order: one message instead of
// several. Stretches within another one belong to it.
class Together {
 public:
  Together() : is_outermost_(current_ == nullptr) {
    if (is_outermost_) current_ = this;
  }
  ~Together() {
    if (!is_outermost_) return;
    current_ = nullptr;
    for (const auto& call : put_off_) call();
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  // At the end of this thread's stretch; at once where there is none.
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

#endif  // KILN_SERVER_RUNTIME_TOGETHER_H_
