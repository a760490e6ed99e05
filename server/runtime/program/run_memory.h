// Memory of runs for intermediate results and for data that devices exchange.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_RUN_MEMORY_H_
#define KILN_SERVER_RUNTIME_PROGRAM_RUN_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/common/host_buffer.h"
#include "server/runtime/device/arenas.h"
#include "server/runtime/program/program.h"

namespace kiln::runtime {

using Slots = absl::InlinedVector<drivers::Buffer*, 32>;

// Memory shared by all runs of a joint program, whose lists run one after another on each device.
// Other devices access it, so other programs do not share it. Freed when no run is queued or
// running.
class JointMemory {
 public:
  // Errors: RESOURCE_EXHAUSTED, or the devices' errors.
  static absl::StatusOr<std::shared_ptr<JointMemory>> Make(
      const ShardedProgram& program, std::shared_ptr<const LoadedProgram> loaded);
  ~JointMemory();

  struct Member {
    std::shared_ptr<buffers::Pool> pool;
    std::unique_ptr<drivers::Buffer> arena;      // null: the program has no such slot
    std::unique_ptr<drivers::Buffer> published;  // never null
    std::unique_ptr<drivers::Buffer> mirror;     // never null
  };
  std::vector<Member> members;
  std::unique_ptr<drivers::HostBuffer> staging;
  std::shared_ptr<const LoadedProgram> loaded;  // the parts that it was made for
  // True from the first to the last piece of a run in pieces, so that other runs' lists do not
  // overwrite the memory in between. Guarded by fairness::SubmissionOrder::mutex.
  bool is_held = false;
};

// The memory that one run uses: an arena of its device, which the programs of the device share, or
// the memory of its joint program. Not thread-safe; of a joint program, Take and Release require
// fairness::SubmissionOrder::mutex.
class RunMemory {
 public:
  // Makes sure that there is memory to take, now or after a Release. `accounts`, by member, pay.
  // Errors: RESOURCE_EXHAUSTED, or the devices' errors.
  absl::Status Reserve(Program& program, const std::shared_ptr<const LoadedProgram>& loaded,
                       absl::Span<const std::shared_ptr<buffers::Account>> accounts);
  // Takes the memory for lists that are submitted now. With `hold`, no other run gets it until
  // Release. Returns false if other runs hold it. Requires: it is reserved, and not held.
  absl::StatusOr<bool> Take(const Program& program, bool hold);
  // Does nothing unless it is held. Requires: everything that uses the memory has been submitted,
  // or will not be.
  void Release(const Program& program);
  // Frees what no other run uses. Requires: it is not held.
  void Drop();

  // Whether the arena was lost with its device.
  bool lost() const { return arena_ != nullptr && arena_->lost(); }
  // Appends the list's slots that are neither inputs nor results. Requires: `slots` holds those of
  // the inputs and results.
  void AddSlots(const ShardedProgram& program, const LoadedProgram& loaded, int member,
                Slots* slots) const;

 private:
  std::shared_ptr<Arena> arena_;        // first the reserved one, then the one that is used
  std::shared_ptr<JointMemory> joint_;  // null unless the program is joint
  bool is_held_ = false;
  absl::InlinedVector<std::unique_ptr<buffers::Account::Arena>, 1> charges_;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_RUN_MEMORY_H_
