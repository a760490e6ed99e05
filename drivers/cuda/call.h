// One command of a list as a CUDA call or as a graph node.
#ifndef KILN_DRIVERS_CUDA_CALL_H_
#define KILN_DRIVERS_CUDA_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "drivers/cuda/context.h"
#include "drivers/cuda/kernel.h"

namespace kiln::drivers::cuda {

struct Call {
  enum class Kind : uint8_t { kLaunch, kCopy, kFill };
  // A kernel argument, a copy's destination or source, or a fill's destination.
  struct Operand {
    int slot;
    int64_t offset;
  };

  Kind kind = Kind::kLaunch;
  uint8_t value = 0;                   // kFill
  bool to_host = false;                // kCopy; to pinned memory
  bool from_host = false;              // kCopy; from pinned memory
  size_t bytes = 0;                    // kCopy, kFill; more than 0, less than 2^31
  const CudaKernel* kernel = nullptr;  // kLaunch
  size_t command = 0;                  // the list's command that it belongs to
  GridRange points = {};               // kLaunch
  std::vector<Operand> operands = {};
  // The calls of the same part that it depends on, numbered from the part's first call.
  std::vector<int> dependencies = {};

  // Whether it names its operands by address, so that it changes when slots have other buffers.
  bool HasAddresses() const;
  // For an error's message: "cannot launch the kernel softmax".
  std::string WhatFailed() const;
};

// The addresses of a list's slots.
struct Places {
  absl::Span<const CUdeviceptr> addresses;  // the start of slot i
  CUdeviceptr table = 0;                    // the slot table on the device; 0: no kernel uses it
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
