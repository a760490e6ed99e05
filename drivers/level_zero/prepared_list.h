// A command list as recordings of Level Zero's command lists.
#ifndef KILN_DRIVERS_LEVEL_ZERO_PREPARED_LIST_H_
#define KILN_DRIVERS_LEVEL_ZERO_PREPARED_LIST_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/common/dependencies.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/level_zero/context.h"
#include "drivers/level_zero/recording.h"

namespace kiln::drivers::level_zero {

// The parts of the list are ranges of sections.
class Program : public ListProgram {
 public:
  // As ListProgram::Build. RESOURCE_EXHAUSTED also: no memory for the slot table.
  static absl::StatusOr<std::shared_ptr<Program>> Make(std::shared_ptr<Context> context,
                                                       CommandList list, ListNeeds needs);
  std::shared_ptr<ListRun> NewRun() override;

 private:
  class Run;

  Program(std::shared_ptr<Context> context, ListNeeds needs)
      : ListProgram(context, std::move(needs)),
        context_(std::move(context)),
        dependencies_(static_cast<int>(num_slots())) {}
  // Checks that sections follow one another, have all calls, and each one kind of them.
  void Validate() const;
  absl::Status Add(ListCall call) override;
  size_t EndPart() override;
  void BeginSection(bool has_addresses);
  absl::StatusOr<std::shared_ptr<Recording>> Take(absl::Span<char* const> addresses,
                                                  Recording::Order order);

  const std::shared_ptr<Context> context_;
  Recorded recorded_;
  size_t first_section_ = 0;      // of the part under construction
  Dependencies dependencies_;     // of the section under construction
  int calls_before_barrier_ = 0;  // calls of that section before its last barrier
  // As many of each order as runs of this list were in flight at once. After recorded_, so that
  // recordings are destroyed before it.
  std::vector<std::shared_ptr<Recording>> recordings_;
  std::shared_ptr<Fence> last_;  // of the last execution not yet awaited; with a mirror
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_PREPARED_LIST_H_
