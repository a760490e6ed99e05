// Calls as a CUDA graph that is launched repeatedly.
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

// Not thread-safe. Requires: the calling thread has a current context.
class Graph {
 public:
  // `calls` and the context must outlive it.
  static absl::StatusOr<std::unique_ptr<Graph>> Make(Context& context, absl::Span<const Call> calls,
                                                     const Places& places);
  ~Graph();

  // Updates the nodes with addresses whose slots have moved since the previous launch, and enqueues
  // the graph. Launches that are already enqueued keep their addresses. The table's address must
  // not change.
  absl::Status Launch(const Places& places);

 private:
  Graph(Context& context, absl::Span<const Call> calls) : context_(context), calls_(calls) {}
  // Checks that each call has a node, and that calls_using_ is the inverse of their operands.
  void Validate() const;
  absl::Status Build(const Places& places);
  absl::Status Update(const Places& places);

  Context& context_;
  const absl::Span<const Call> calls_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::vector<CUgraphNode> nodes_;             // by call
  std::vector<char*> addresses_;               // by slot: the addresses in the nodes
  std::vector<std::vector<int>> calls_using_;  // by slot: the calls that contain its address
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_GRAPH_H_
