// Calls as a CUDA graph that is launched again and again.
#ifndef KILN_DRIVERS_CUDA_GRAPH_H_
#define KILN_DRIVERS_CUDA_GRAPH_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/cuda/call.h"
#include "drivers/cuda/context.h"

namespace kiln::drivers::cuda {

// Not thread-safe; the calling thread has a current context.
class Graph {
 public:
  // `calls` and the context must outlive it. addresses[i] is where slot i begins.
  static absl::StatusOr<std::unique_ptr<Graph>> Make(Context& context, absl::Span<const Call> calls,
                                                     absl::Span<const CUdeviceptr> addresses);
  ~Graph();

  // Sets those nodes' parameters whose slots are somewhere else than at the launch before, and
  // enqueues the graph. Launches that were enqueued before keep theirs.
  absl::Status Launch(absl::Span<const CUdeviceptr> addresses);

 private:
  Graph(Context& context, absl::Span<const Call> calls) : context_(context), calls_(calls) {}
  absl::Status Build(absl::Span<const CUdeviceptr> addresses);
  absl::Status Update(absl::Span<const CUdeviceptr> addresses);

  Context& context_;
  const absl::Span<const Call> calls_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::vector<CUgraphNode> nodes_;             // by call
  std::vector<CUdeviceptr> addresses_;         // by slot, as the nodes have them
  std::vector<std::vector<int>> calls_using_;  // by slot
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_GRAPH_H_
