// A thread of a GPU's block that runs until it waits. It has its own stack and is resumed by the
// one host thread that runs the block. No instrumented code runs on that stack, so sanitizers need
// not know about it.
#ifndef KILN_TESTS_STAND_INS_HSA_OBJECT_FIBER_H_
#define KILN_TESTS_STAND_INS_HSA_OBJECT_FIBER_H_

#include <cstddef>
#include <cstdint>

#include "compiler/codegen/amdgcn/host_twin.h"

namespace kiln::stand_ins::hsa {

enum class FiberState : uint64_t { kRuns = 0, kAtBarrier = 1, kAtShuffle = 2, kEnded = 3 };

// The assembly in fiber.cc uses the offsets of these fields.
struct Fiber {
  codegen::HostTwinCall call;
  void* own_stack;
  void* host_stack;
  FiberState state;
  uint64_t site;    // where the kernel waits
  uint64_t thread;  // to shuffle with
  uint64_t value;   // to shuffle
};

inline constexpr size_t kFiberStackBytes = 256 << 10;

// Prepares the fiber to run `twin` on a stack that ends at `stack_end`, a multiple of 16. Requires:
// fiber->call is set, except its functions.
void StartFiber(Fiber* fiber, codegen::HostTwin twin, void* stack_end);
// Runs it until it waits or has ended.
void ResumeFiber(Fiber* fiber);

}  // namespace kiln::stand_ins::hsa

#endif  // KILN_TESTS_STAND_INS_HSA_OBJECT_FIBER_H_
