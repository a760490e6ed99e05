#include "server/runtime/cache/compile_threads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"

namespace kiln::runtime {
namespace {
const memory::Account* UserOf(const memory::Account* account) {
  return account == nullptr ? nullptr : account->user();
}
}  // namespace

absl::Status CompileThreads::Ask(const memory::Account* account, std::function<void()> task) {
  if (pool_.TrySchedule(UserOf(account), options_.waiting_of_one, Counted(std::move(task))))
    return absl::OkStatus();
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          options_.waiting_of_one,
          " of your programs are waiting to be compiled, which is the limit of a user; ",
          "wait until some are compiled, or start kilnd with a higher "
          "fairness.compiles_waiting_limit")),
      "TOO_MANY_COMPILES", {{"limit", absl::StrCat(options_.waiting_of_one)}});
}

void CompileThreads::Schedule(const memory::Account* account, std::function<void()> task) {
  pool_.Schedule(UserOf(account), Counted(std::move(task)));
}

std::function<void()> CompileThreads::Counted(std::function<void()> task) const {
  return [work = options_.host_work, task = std::move(task)] {
    const fairness::HostWork::Piece piece(work);
    task();
  };
}

absl::Status CompileThreads::status() const {
  if (!stopped_) return absl::OkStatus();
  return errors::WithReason(absl::UnavailableError("daemon is shutting down"), "SHUTTING_DOWN");
}

}  // namespace kiln::runtime
