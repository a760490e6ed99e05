// A command list as a flat array of OpenCL calls.
#ifndef KILN_DRIVERS_OPENCL_PREPARED_LIST_H_
#define KILN_DRIVERS_OPENCL_PREPARED_LIST_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/list_program.h"
#include "drivers/opencl/context.h"
#include "drivers/opencl/recorded_launches.h"
#include "drivers/opencl/slot_table.h"

namespace kiln::drivers::opencl {

// Updates the slot table, and those arguments that are addresses, if they changed since the
// previous run. Launches with constant arguments are enqueued as command buffers where the device
// supports them, unless commands are timed, memory had to be named to kernels, or the list runs for
// the first time.
class Program : public ListProgram {
 public:
  // As ListProgram::Build. RESOURCE_EXHAUSTED also: no memory for the slot table.
  static absl::StatusOr<std::shared_ptr<Program>> Make(std::shared_ptr<Context> context,
                                                       CommandList list, ListNeeds needs);
  std::shared_ptr<ListRun> NewRun() override;

 private:
  struct Call : ListCall {
    bool wants_event = false;         // also when commands are not timed
    Handle<cl_kernel> function = {};  // used by this call only, so its arguments persist
    // kLaunch: the addresses set in the kernel, by operand; empty: it takes a slot table.
    std::vector<const char*> set = {};

    size_t block() const { return static_cast<size_t>(kernel->image().block_size); }
    size_t threads() const { return static_cast<size_t>(points.size()) * block(); }
  };
  class Run;

  Program(std::shared_ptr<Context> context, ListNeeds needs)
      : ListProgram(context, std::move(needs)), context_(std::move(context)) {}
  absl::Status Add(ListCall call) override;
  size_t EndPart() override;
  // Sets the constant parameters: all of a kernel that takes a slot table, and the first grid
  // point.
  absl::Status SetParameters(const ListCall& launch, cl_kernel kernel);
  absl::Status SetSlotParameters(const ListCall& launch, cl_kernel kernel);
  // Checks that recorded launches are in order, do not overlap, and have constant arguments.
  void Validate() const;
  void ChooseEvents();
  void ChooseRecorded();

  const std::shared_ptr<Context> context_;
  std::unique_ptr<SlotTable> table_;  // null if no kernel takes one
  std::vector<Call> calls_;
  int64_t releases_ = 0;  // memory releases when the arguments were set
  // In the order of the calls. After the calls, so that it is destroyed before their kernels.
  std::vector<RecordedLaunches> recorded_;
  int64_t namings_ = -1;  // namings at the last run; -1: the list has not run yet
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_PREPARED_LIST_H_
