// Adds the time between its making and its end to a list of passes.
#ifndef KILN_COMPILER_PASS_TIMER_H_
#define KILN_COMPILER_PASS_TIMER_H_

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compiler.h"

namespace kiln::compiler {

class PassTimer {
 public:
  // `times` must outlive the timer.
  PassTimer(std::string pass, std::vector<PassTime>* times)
      : pass_(std::move(pass)), times_(times), start_(std::chrono::steady_clock::now()) {}
  ~PassTimer() {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    times_->push_back({std::move(pass_), elapsed.count()});
  }
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;

 private:
  std::string pass_;
  std::vector<PassTime>* times_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_PASS_TIMER_H_
