// A program on several devices at once. Each device has its kernels and one list, or several that
// run one after another. They are recorded once, with all communication between the devices.
//
// A list has the program's calls. At each exchange it also has signals to the other devices of the
// group and waits for theirs. Published data is read in place. If a device cannot reach another's
// memory (drivers::Device::CanReach), the other copies the needed ranges to host memory before the
// exchange, and the reader copies them to its own memory after it.
#ifndef KILN_SERVER_RUNTIME_GANG_H_
#define KILN_SERVER_RUNTIME_GANG_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/compiler.h"
#include "compiler/graph/mesh.h"
#include "drivers/common/host_buffer.h"
#include "server/runtime/managed_device.h"

namespace kiln::runtime {

// Thread-safe.
class Gang {
 public:
  // One for each place of the mesh, row-major. Equal targets share a program, unless the graph is
  // in stages: then each place has a separate one.
  struct Member {
    ManagedDevice* device = nullptr;
    std::shared_ptr<const compiler::CompiledProgram> compiled;
  };

  Gang(graph::Mesh mesh, std::vector<Member> members)
      : mesh_(std::move(mesh)), members_(std::move(members)) {}

  const graph::Mesh& mesh() const { return mesh_; }
  const std::vector<Member>& members() const { return members_; }
  int size() const { return static_cast<int>(members_.size()); }
  // Returns the first member that runs each distinct program, in order.
  std::vector<int> distinct() const;
  // Returns the maximum memory that a device needs in addition to inputs and results.
  int64_t scratch_bytes(int member) const;

  // The parts of the program that are loaded on the devices.
  struct Loaded {
    struct OnDevice {
      int64_t life = 0;  // the pool's
      std::shared_ptr<buffers::Pool> pool;
      std::unique_ptr<drivers::Buffer> place;  // Slot::Kind::kPlace
      std::vector<std::unique_ptr<drivers::LoadedKernel>> kernels;
      std::unique_ptr<drivers::PreparedList> list;  // after the kernels: destroyed before them
      std::vector<int> command_of_call;             // in the list
      int64_t mirror_bytes = 0;                     // of devices that it cannot reach
      bool uses_staging = false;                    // its list names host memory
      OnDevice() = default;
      OnDevice(OnDevice&&) = default;
      ~OnDevice() {
        if (place) pool->Free(std::move(place));
      }
    };
    std::vector<OnDevice> members;
    std::vector<std::vector<bool>> reaches;  // [from][to]: `from` reaches the memory of `to`
    std::shared_ptr<drivers::Signals> signals;
    int64_t staging_bytes = 0;  // host memory; 0: all reach one another

    // Returns the host memory for values that go through it, including that of the lists.
    int64_t host_bytes() const;
    bool lost() const;
  };
  // Returns the loaded program; loads it again if a device was lost and revived since. Errors: the
  // devices'.
  absl::StatusOr<std::shared_ptr<const Loaded>> OnDevices() ABSL_LOCKS_EXCLUDED(loading_mutex_);

  // Each member's list split into several, so that other lists can run in between. A piece has the
  // same exchanges on all members, so no member waits for a piece that has not been submitted.
  struct Pieces {
    std::shared_ptr<const Loaded> loaded;  // provides their kernels and signals
    std::vector<double> seconds;           // expected time of each piece; two or more
    // By member and piece; the first command as in Program::Pieces.
    std::vector<std::vector<std::unique_ptr<drivers::PreparedList>>> lists;
    std::vector<std::vector<int>> first_commands;
  };
  // Returns null if there would be one piece, or if a list uses host memory, of which the list of
  // each piece would need its own. `call_seconds`: by member. `seconds_max`: maximum seconds of a
  // piece.
  absl::StatusOr<std::shared_ptr<const Pieces>> Cut(
      const std::shared_ptr<const Loaded>& loaded,
      const std::vector<std::vector<double>>& call_seconds, double seconds_max) const;

  // Memory shared by all runs of the program, whose lists run one after another on each device.
  // Freed when no run is queued or running.
  class Memory {
   public:
    ~Memory();
    struct OnDevice {
      std::shared_ptr<buffers::Pool> pool;
      // By slot of the program; null for inputs and results.
      std::vector<std::unique_ptr<drivers::Buffer>> slots;
      std::unique_ptr<drivers::Buffer> published;  // never null
      std::unique_ptr<drivers::Buffer> mirror;     // never null
    };
    std::vector<OnDevice> members;
    std::unique_ptr<drivers::HostBuffer> staging;
    std::shared_ptr<const Loaded> loaded;  // the parts that it was made for
    // True from the first to the last piece of a run in pieces, so that other runs' lists do not
    // overwrite the memory in between. Guarded by fairness::GangOrder::mutex.
    bool is_held = false;
  };
  // Errors: RESOURCE_EXHAUSTED, or the devices' errors.
  absl::StatusOr<std::shared_ptr<Memory>> Reserve(const std::shared_ptr<const Loaded>& loaded)
      ABSL_LOCKS_EXCLUDED(loading_mutex_);

  // Appends the list's slots that are neither inputs nor results. Requires: `slots` holds those of
  // the inputs and results.
  void AddSlots(const Loaded& loaded, const Memory& memory, int member,
                std::vector<drivers::Buffer*>* slots) const;

  // Returns the bytes that a run sends between all devices together.
  int64_t exchanged_bytes() const;

 private:
  friend class GangRecorder;

  absl::StatusOr<std::shared_ptr<const Loaded>> LoadNow() const;
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> MakePlace(int member) const;
  // MemberOf returns the member with this number in `member`'s group; NumberIn returns the number
  // of `member` in its group.
  int MemberOf(int member, const compiler::DeviceGroup& group, int number) const;
  int NumberIn(int member, const compiler::DeviceGroup& group) const;
  int SizeOf(const compiler::DeviceGroup& group) const;
  int64_t published_bytes() const;
  // published_bytes() rounded up: mirrors and staging memory have a part for each device.
  int64_t part_bytes() const;

  const graph::Mesh mesh_;
  const std::vector<Member> members_;
  absl::Mutex loading_mutex_;
  std::shared_ptr<const Loaded> loaded_ ABSL_GUARDED_BY(loading_mutex_);
  std::weak_ptr<Memory> memory_ ABSL_GUARDED_BY(loading_mutex_);
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_GANG_H_
