// One command of a list as a call of CUDA's, or as a node of a graph.
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
  // An argument, or a copy's destination and source, or what is filled.
  struct Operand {
    int slot;
    int64_t offset;
  };

  Kind kind = Kind::kLaunch;
  uint8_t value = 0;                   // kFill
  bool to_host = false;                // kCopy; pinned memory
  bool from_host = false;              // likewise
  size_t bytes = 0;                    // kCopy, kFill; more than 0, less than 2^31
  const CudaKernel* kernel = nullptr;  // kLaunch
  size_t command = 0;                  // whose part or whole it is: its number in the list
  GridRange points = {};               // kLaunch
  std::vector<Operand> operands = {};
  // The calls of the same part that it waits for, counted from the part's first.
  std::vector<int> dependencies = {};

  // Whether it names its operands by address, and so is another call where slots are elsewhere.
  bool HasAddresses() const;
  // "cannot launch the kernel softmax", for an error's message.
  std::string WhatFailed() const;
};

// Where the slots of a list are.
struct Places {
  absl::Span<const CUdeviceptr> addresses;  // where slot i begins
  CUdeviceptr table = 0;                    // the same on the device; 0: no kernel takes it
};

// The calling thread has a current context.
CUresult Enqueue(const Context& context, const Call& call, const Places& places);
CUresult AddNode(const Context& context, const Call& call, const Places& places, CUgraph graph,
                 absl::Span<const CUgraphNode> dependencies, CUgraphNode* node);
// Gives a node with addresses others from its next launch on.
CUresult SetNode(const Context& context, const Call& call, const Places& places, CUgraphExec exec,
                 CUgraphNode node);

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_CALL_H_
