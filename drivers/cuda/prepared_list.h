// A command list as CUDA graphs: one for each part between signals and waits. A node only waits for
// nodes whose results it needs.
#ifndef KILN_DRIVERS_CUDA_PREPARED_LIST_H_
#define KILN_DRIVERS_CUDA_PREPARED_LIST_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/common/dependencies.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/cuda/context.h"
#include "drivers/cuda/graph.h"
#include "drivers/cuda/slot_table.h"

namespace kiln::drivers::cuda {

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
  absl::Status Add(ListCall call) override;
  size_t EndPart() override;
  void AddPiece(ListCall call);

  const std::shared_ptr<Context> context_;
  std::vector<Call> calls_;
  std::vector<std::unique_ptr<Graph>> graphs_;  // by part; null until it is enqueued as a graph
  Dependencies dependencies_;                   // of the part under construction
  std::unique_ptr<SlotTable> table_;            // null if no kernel takes one
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_PREPARED_LIST_H_
