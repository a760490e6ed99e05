// A program on its devices: kernels that are loaded, and one command list for each device, recorded
// once.
//
// A list has the program's calls. At each exchange it also has signals to the other devices of the
// group and waits for theirs. Published data is read in place. If a device cannot reach another's
// memory (drivers::Device::CanReach), the other copies the needed ranges to host memory before the
// exchange, and the reader copies them to its own memory after it. On one device there is none of
// this: the list is the calls and copies.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_LOADED_PROGRAM_H_
#define KILN_SERVER_RUNTIME_PROGRAM_LOADED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/runtime/program/sharded_program.h"

namespace kiln::runtime {

// Immutable once loaded. Shared by the runs that use it. Belongs to the lives of the devices
// (buffers::Pool::life) in which it was loaded.
struct LoadedProgram {
  struct Member {
    int64_t life = 0;  // the pool's
    std::shared_ptr<buffers::Pool> pool;
    // Slot::Kind::kPlace; null if there is no mesh.
    std::unique_ptr<drivers::Buffer> place;
    std::vector<std::unique_ptr<drivers::LoadedKernel>> kernels;
    std::unique_ptr<drivers::PreparedList> list;  // after the kernels: destroyed before them
    std::vector<int> command_of_call;             // in the list
    int commit = 0;  // the command of CompiledProgram::commit; 0 if nothing is written in place
    int64_t mirror_bytes = 0;   // of devices that it cannot reach
    bool uses_staging = false;  // its list names host memory
    Member() = default;
    Member(Member&&) = default;
    ~Member() {
      if (place) pool->Free(std::move(place));
    }
  };
  std::vector<Member> members;
  std::vector<std::vector<bool>> reaches;     // [from][to]: `from` reaches the memory of `to`
  std::shared_ptr<drivers::Signals> signals;  // null unless the program is joint
  int64_t staging_bytes = 0;                  // host memory; 0: all reach one another

  // Returns the host memory for values that go through it, including that of the lists.
  int64_t host_bytes() const;
  // Whether a device was lost since.
  bool lost() const;
};

// Loads the kernels and records the lists. `finishes_images`: the devices finish the images
// themselves. Errors: the devices'.
absl::StatusOr<std::shared_ptr<const LoadedProgram>> LoadProgram(const ShardedProgram& program,
                                                                 bool finishes_images);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_LOADED_PROGRAM_H_
