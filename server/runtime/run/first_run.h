// A program's first call (runtime/first_call.h), held by the program's first run.
#ifndef KILN_SERVER_RUNTIME_RUN_FIRST_RUN_H_
#define KILN_SERVER_RUNTIME_RUN_FIRST_RUN_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/runtime/cache/compile_log.h"
#include "server/runtime/first_call.h"
#include "server/runtime/program/program.h"

namespace kiln::runtime {

// Empty for every later run; nothing happens then. The destructor ends the call at the latest.
class FirstRun {
 public:
  // Requires: a run of this program begins now.
  explicit FirstRun(Program& program) : call_(program.TakeFirstCall()) { Begin("allocate"); }
  ~FirstRun() {
    if (call_) call_->End();
  }
  FirstRun(const FirstRun&) = delete;
  FirstRun& operator=(const FirstRun&) = delete;

  void Begin(std::string_view part) {
    if (call_) call_->Begin(part);
  }
  // Ends the call and logs it. `run` is the run's name in the log, `status` its answer.
  void End(const std::string& run, const Program& program, const absl::Status& status) {
    if (!call_) return;
    call_->End();
    LogFirstCall(run, program, *call_, status);
    call_.reset();
  }

 private:
  std::shared_ptr<FirstCall> call_;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_RUN_FIRST_RUN_H_
