// A command list as queue packets, built once, and the copies between them.
#ifndef KILN_DRIVERS_HSA_PREPARED_LIST_H_
#define KILN_DRIVERS_HSA_PREPARED_LIST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "drivers/common/dependencies.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/hsa/context.h"
#include "drivers/hsa/replay.h"

namespace kiln::drivers::hsa {

class Program : public ListProgram {
 public:
  // As ListProgram::Build. RESOURCE_EXHAUSTED also: no memory for the source of fills.
  static absl::StatusOr<std::shared_ptr<Program>> Make(std::shared_ptr<Context> context,
                                                       CommandList list, ListNeeds needs);
  ~Program() override;
  std::shared_ptr<ListRun> NewRun() override;

 private:
  // Calls that are given to the device together: launches, a copy or a fill.
  struct Step {
    ListCall call;     // the first launch, the copy or the fill
    size_t begin = 0;  // the launches
    size_t end = 0;
  };
  class Run;

  Program(std::shared_ptr<Context> context, ListNeeds needs)
      : ListProgram(context, std::move(needs)),
        context_(std::move(context)),
        dependencies_(static_cast<int>(num_slots())) {}
  // Checks that steps follow one another, and have all launches.
  void Validate() const;
  absl::Status Add(ListCall call) override;
  size_t EndPart() override;
  void AddLaunch(const ListCall& call);
  absl::Status AddPattern(uint8_t value);
  absl::StatusOr<std::unique_ptr<Replay>> TakeReplay();
  // Requires: everything enqueued with it has ended.
  void GiveBack(std::unique_ptr<Replay> replay);

  const std::shared_ptr<Context> context_;
  std::vector<Launch> launches_;
  std::vector<Step> steps_;
  bool continues_ = false;             // the last step takes further launches
  Dependencies dependencies_;          // of that step's launches
  size_t last_after_all_ = 0;          // the last of those that waits for all before it
  std::map<uint8_t, char*> patterns_;  // device memory filled with this byte

  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Replay>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_PREPARED_LIST_H_
