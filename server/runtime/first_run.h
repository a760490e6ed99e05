// A program's first call (first_call.h) in the hands of its first run.
#ifndef KILN_SERVER_RUNTIME_FIRST_RUN_H_
#define KILN_SERVER_RUNTIME_FIRST_RUN_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/runtime/compile_log.h"
#include "server/runtime/first_call.h"
#include "server/runtime/program.h"

namespace kiln::runtime {

// Of any later run it is empty, and nothing happens. The call ends with it at the latest.
class FirstRun {
 public:
  // The run of this program that begins now.
  explicit FirstRun(Program& program) : call_(program.TakeFirstCall()) { Begin("allocate"); }
  ~FirstRun() {
    if (call_) call_->End();
  }
  FirstRun(const FirstRun&) = delete;
  FirstRun& operator=(const FirstRun&) = delete;

  void Begin(std::string_view part) {
    if (call_) call_->Begin(part);
  }
  // The run, as the log calls it, has been answered so.
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

#endif  // KILN_SERVER_RUNTIME_FIRST_RUN_H_
