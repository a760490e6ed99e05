// A program on several devices at once: on each its kernels and one list, or several one after
// another, recorded once with everything that the devices have to do with each other.
//
// A list has the program's calls and, at each of its exchanges, signals to the group's others and
// waits for theirs. What others have published is read where it is. Where a device cannot reach
// another's memory (drivers::Device::CanReach), the other copies what is wanted to host memory
// before the exchange, and it copies that to memory of its own behind it.
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
  // in stages; in that, each place has its own.
  struct Member {
    ManagedDevice* device = nullptr;
    std::shared_ptr<const compiler::CompiledProgram> compiled;
  };

  Gang(graph::Mesh mesh, std::vector<Member> members)
      : mesh_(std::move(mesh)), members_(std::move(members)) {}

  const graph::Mesh& mesh() const { return mesh_; }
  const std::vector<Member>& members() const { return members_; }
  int size() const { return static_cast<int>(members_.size()); }
  // The first member that runs each of the programs, in order: several run the same.
  std::vector<int> distinct() const;
  // Memory that a device needs beside inputs and results, at most.
  int64_t scratch_bytes(int member) const;

  // What the devices have of it.
  struct Loaded {
    struct OnDevice {
      int64_t life = 0;  // the pool's
      std::shared_ptr<buffers::Pool> pool;
      std::unique_ptr<drivers::Buffer> place;  // Slot::Kind::kPlace
      std::vector<std::unique_ptr<drivers::LoadedKernel>> kernels;
      std::unique_ptr<drivers::PreparedList> list;  // after the kernels: it goes first
      std::vector<int> command_of_call;             // in the list
      int64_t mirror_bytes = 0;                     // of what it cannot reach
      bool uses_staging = false;                    // its list names host memory
      OnDevice() = default;
      OnDevice(OnDevice&&) = default;
      ~OnDevice() {
        if (place) pool->Free(std::move(place));
      }
    };
    std::vector<OnDevice> members;
    std::vector<std::vector<bool>> reaches;  // one member another's memory
    std::shared_ptr<drivers::Signals> signals;
    int64_t staging_bytes = 0;  // host memory; 0: all reach each other

    // Host memory through which values go, that of its lists included.
    int64_t host_bytes() const;
    bool lost() const;
  };
  // Loads it again if a device was lost and revived since. The devices' errors.
  absl::StatusOr<std::shared_ptr<const Loaded>> OnDevices() ABSL_LOCKS_EXCLUDED(loading_mutex_);

  // Each member's list as several, so that others' lists come in between. Piece by piece they have
  // the same exchanges on all members, so that none waits for a piece that has not been submitted.
  struct Pieces {
    std::shared_ptr<const Loaded> loaded;  // whose kernels and signals they use
    std::vector<double> seconds;           // that each is expected to take; two or more
    // By member and piece; the first command as in Program::Pieces.
    std::vector<std::vector<std::unique_ptr<drivers::PreparedList>>> lists;
    std::vector<std::vector<int>> first_commands;
  };
  // Null: it would be one piece, or its lists hold memory of the host's, of which each piece's
  // would hold its own. `call_seconds`: by member. `most`: seconds of a piece.
  absl::StatusOr<std::shared_ptr<const Pieces>> Cut(
      const std::shared_ptr<const Loaded>& loaded,
      const std::vector<std::vector<double>>& call_seconds, double most) const;

  // What all runs of it share: their lists run one after another on each device. It goes when no
  // run is queued or under way.
  class Memory {
   public:
    ~Memory();
    struct OnDevice {
      std::shared_ptr<buffers::Pool> pool;
      // By slot of the program; null for inputs and results.
      std::vector<std::unique_ptr<drivers::Buffer>> slots;
      std::unique_ptr<drivers::Buffer> published;  // never null
      std::unique_ptr<drivers::Buffer> mirror;     // likewise
    };
    std::vector<OnDevice> members;
    std::unique_ptr<drivers::HostBuffer> staging;
    std::shared_ptr<const Loaded> loaded;  // for which it was made
    // By a run in pieces, until the last has been submitted: others' lists would come in between.
    // For who holds fairness::GangOrder::mutex.
    bool is_held = false;
  };
  // RESOURCE_EXHAUSTED, or the devices' errors.
  absl::StatusOr<std::shared_ptr<Memory>> Reserve(const std::shared_ptr<const Loaded>& loaded)
      ABSL_LOCKS_EXCLUDED(loading_mutex_);

  // Fills in what is no input and no result of the list's slots; `slots` begins with the program's.
  void AddSlots(const Loaded& loaded, const Memory& memory, int member,
                std::vector<drivers::Buffer*>* slots) const;

  // Bytes that a run sends from device to device, all together.
  int64_t exchanged_bytes() const;

 private:
  friend class GangRecorder;

  absl::StatusOr<std::shared_ptr<const Loaded>> LoadNow() const;
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> MakePlace(int member) const;
  // The device that has this number among those of `member`'s group, and its own number there.
  int MemberOf(int member, const compiler::DeviceGroup& group, int number) const;
  int NumberIn(int member, const compiler::DeviceGroup& group) const;
  int SizeOf(const compiler::DeviceGroup& group) const;
  int64_t published_bytes() const;
  // Of that, rounded up: mirrors and staging memory have a part for each device.
  int64_t part_bytes() const;

  const graph::Mesh mesh_;
  const std::vector<Member> members_;
  absl::Mutex loading_mutex_;
  std::shared_ptr<const Loaded> loaded_ ABSL_GUARDED_BY(loading_mutex_);
  std::weak_ptr<Memory> memory_ ABSL_GUARDED_BY(loading_mutex_);
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_GANG_H_
