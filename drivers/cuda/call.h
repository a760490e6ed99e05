// A call as one of CUDA's, or as a graph node.
#ifndef KILN_DRIVERS_CUDA_CALL_H_
#define KILN_DRIVERS_CUDA_CALL_H_

#include <vector>

#include "absl/types/span.h"
#include "drivers/common/queued_device/list_call.h"
#include "drivers/cuda/context.h"
#include "drivers/cuda/kernel.h"

namespace kiln::drivers::cuda {

struct Call : ListCall {
  bool to_host = false;    // kCopy; to pinned memory
  bool from_host = false;  // kCopy; from pinned memory
  // The calls of the same part that it depends on, numbered from the part's first call.
  std::vector<int> dependencies = {};
};

// The addresses of a list's slots.
struct Places {
  absl::Span<char* const> addresses;  // the start of slot i
  CUdeviceptr table = 0;              // the slot table on the device; 0: no kernel uses it
};

// Requires: the calling thread has a current context.
CUresult Enqueue(const Context& context, const Call& call, const Places& places);
CUresult AddNode(const Context& context, const Call& call, const Places& places, CUgraph graph,
                 absl::Span<const CUgraphNode> dependencies, CUgraphNode* node);
// Sets new addresses in a node, from its next launch on.
CUresult SetNode(const Context& context, const Call& call, const Places& places, CUgraphExec exec,
                 CUgraphNode node);

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_CALL_H_
