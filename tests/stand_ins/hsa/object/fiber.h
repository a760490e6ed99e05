// A thread of a GPU's block, which runs until it waits: on a stack of its own, resumed by the one
// host thread that runs the block. Nothing that the compiler instruments runs on that stack, so
// sanitizers need not know of it.
#ifndef KILN_TESTS_STAND_INS_HSA_OBJECT_FIBER_H_
#define KILN_TESTS_STAND_INS_HSA_OBJECT_FIBER_H_

#include <cstddef>
#include <cstdint>

#include "compiler/codegen/amdgcn_host_twin.h"

namespace kiln::stand_ins::hsa {

enum class FiberState : uint64_t { kRuns = 0, kAtBarrier = 1, kAtShuffle = 2, kEnded = 3 };

// The assembly in fiber.cc knows where these fields are.
struct Fiber {
  codegen::HostTwinCall call;
  void* own_stack;
  void* host_stack;
  FiberState state;
  uint64_t site;    // where the kernel waits
  uint64_t thread;  // that it shuffles with
  uint64_t value;   // that it shuffles
};

inline constexpr size_t kFiberStackBytes = 256 << 10;

// Ready to run `twin` on a stack that ends at `stack_end`, a multiple of 16; fiber->call but for
// its functions has been set.
void StartFiber(Fiber* fiber, codegen::HostTwin twin, void* stack_end);
// Until it waits or has ended.
void ResumeFiber(Fiber* fiber);

}  // namespace kiln::stand_ins::hsa

#endif  // KILN_TESTS_STAND_INS_HSA_OBJECT_FIBER_H_
