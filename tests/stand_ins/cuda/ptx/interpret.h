// Runs kernels written in PTX, on host memory.
//
// A thread runs until it waits for others: at a barrier, or at an instruction that its warp
// executes together. Otherwise, threads of a warp may be at different places. Blocks run one after
// another.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_INTERPRET_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_INTERPRET_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/stand_ins/cuda/ptx/memory.h"
#include "tests/stand_ins/cuda/ptx/program.h"

namespace kiln::stand_ins::ptx {

enum class FaultKind {
  kNone,
  kIllegalAddress,  // outside every allocation
  kMisalignedAddress,
  kTrap,           // executed by the kernel
  kTimeout,        // does not end in time
  kUndefined,      // a race, a deadlock etc.: no result can be right
  kInvalidLaunch,  // wrong shape or parameters for the kernel
};

struct Fault {
  FaultKind kind = FaultKind::kNone;
  // Names the instruction, line and thread, and describes the fault.
  std::string message;
};

// Bytes of device memory, [begin, end).
struct Range {
  uint64_t begin;
  uint64_t end;
};

struct LaunchShape {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  int64_t dynamic_shared_bytes = 0;
};

struct LaunchOptions {
  // The most branches and calls of all threads together; beyond that the kernel is considered hung.
  int64_t branches_max = int64_t{1} << 30;
  bool find_races = true;
  bool note_accesses = false;
  // Set to true to stop the launch with kTimeout.
  const std::atomic<bool>* stop = nullptr;
};

struct LaunchResult {
  Fault fault;
  // The accesses, if `note_accesses`: for each block and instruction the bytes from the lowest to
  // the highest.
  std::vector<Range> reads;
  std::vector<Range> writes;
};

// `parameters` are the entry's formal_bytes bytes.
LaunchResult Launch(const Program& program, const DecodedFunction& entry, const LaunchShape& shape,
                    absl::Span<const uint8_t> parameters, const GlobalMemory& memory,
                    const LaunchOptions& options);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_INTERPRET_H_
