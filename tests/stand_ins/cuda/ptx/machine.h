// The execution of a block of threads.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_MACHINE_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_MACHINE_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/interpret.h"
#include "tests/stand_ins/cuda/ptx/memory.h"
#include "tests/stand_ins/cuda/ptx/program.h"

namespace kiln::stand_ins::ptx {

struct Block;

enum class ThreadState : uint8_t { kRunning, kAtBarrier, kInWarp, kExited, kFailed };

// A cp.async that no wait has completed.
struct AsynchronousCopy {
  int64_t to;  // in shared memory
  uint64_t from;
  int64_t bytes;         // to fill
  int64_t source_bytes;  // to copy; the rest is filled with zeros
  int64_t group;         // of the thread, counting up
  const Instruction* instruction;
};

struct Frame {
  const DecodedFunction* function;
  const Instruction* call = nullptr;  // the caller's instruction
  const Instruction* back;            // where the caller continues
  size_t registers = 0;               // where they begin in the thread's storage
  int64_t local = 0;
  int64_t parameters = 0;
};

struct Thread {
  uint64_t* slots = nullptr;  // of the current frame
  const Instruction* next = nullptr;
  Block* block = nullptr;
  ThreadState state = ThreadState::kRunning;
  const Instruction* stopped_at = nullptr;
  int index = 0;  // in the block
  std::array<uint32_t, 3> position = {0, 0, 0};
  bool carry = false;

  std::vector<Frame> frames;
  std::vector<uint64_t> slot_storage;
  std::vector<uint8_t> local;
  std::vector<uint8_t> parameters;
  std::vector<AsynchronousCopy> copies;
  int64_t copy_group = 0;

  const Frame& frame() const { return frames.back(); }
  void Fail(const Instruction& at, FaultKind kind, absl::string_view message);
  void Stop(const Instruction& at, ThreadState why) {
    stopped_at = &at;
    state = why;
  }
  void Enter(const DecodedFunction& function, const Instruction* call);
  void Leave();
};

// A memory access instruction and the bytes that it accessed in the current block.
struct Site {
  const Region* region = nullptr;  // device memory that it accessed last
  std::vector<Range> reads;
  std::vector<Range> writes;
};

struct Warp {
  Block* block;
  int first;  // thread
  int lanes;

  Thread& lane(int index) const;
  uint64_t& slot(int lane_index, uint32_t slot) const { return lane(lane_index).slots[slot]; }
  void Fail(int lane_index, const Instruction& at, absl::string_view message) const {
    lane(lane_index).Fail(at, FaultKind::kUndefined, message);
  }
};

struct Block {
  const Program* program;
  const DecodedFunction* entry;
  const GlobalMemory* memory;
  LaunchShape shape;
  LaunchOptions options;
  std::array<uint32_t, 3> position = {0, 0, 0};

  std::vector<Thread> threads = {};
  std::vector<Site> sites = {};
  SharedMemory shared = {};
  int64_t branches_left;
  Fault fault = {};

  // Runs until all threads have exited, or one failed.
  void Run(absl::Span<const uint8_t> parameters);

 private:
  void Start(Thread& thread, absl::Span<const uint8_t> parameters);
  void RunWarp(Warp& warp);
  bool RunCollective(Warp& warp);
  bool PassBarrier();
  void ReportWaiting();
};

inline Thread& Warp::lane(int index) const { return block->threads[first + index]; }

// Returns false after a fault. `alignment` is a power of two.
bool IsAligned(Thread& thread, const Instruction& instruction, uint64_t address, int64_t alignment);
// Returns the bytes of an access, or null after a fault.
enum class AccessKind : uint8_t { kRead, kWrite, kUpdate };
uint8_t* Locate(Thread& thread, const Instruction& instruction, Space space, uint64_t address,
                int64_t bytes, AccessKind kind);

// Completes the thread's asynchronous copies except those of its last `groups_that_may_go_on`
// groups.
void EndCopies(Thread& thread, int64_t groups_that_may_go_on);

// The value of a special register, as Instruction::operation.
enum class SpecialRegister : uint8_t {
  kThreadX,
  kThreadY,
  kThreadZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kThreadsX,
  kThreadsY,
  kThreadsZ,
  kBlocksX,
  kBlocksY,
  kBlocksZ,
  kLane,
  kWarp,
  kWarps,
  kLaneMaskEqual,
  kLaneMaskLess,
  kLaneMaskLessEqual,
  kLaneMaskGreater,
  kLaneMaskGreaterEqual,
  kSharedBytes,
  kDynamicSharedBytes,
};

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_MACHINE_H_
