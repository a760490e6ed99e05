// The inputs and results of a program.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_SIGNATURE_H_
#define KILN_SERVER_RUNTIME_PROGRAM_SIGNATURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "server/buffers/placement.h"
#include "server/buffers/value.h"

namespace kiln::runtime {

using TensorTypePointer = std::shared_ptr<const buffers::TensorType>;

// Results are the outputs, then the updates' new values.
struct Signature {
  std::vector<TensorTypePointer> inputs;
  std::vector<TensorTypePointer> outputs;
  std::vector<TensorTypePointer> updates;
  std::vector<int> updated_inputs;  // for each update, the input it replaces
  // For a program on several devices, the placement of each; else empty.
  using PlacementPointer = std::shared_ptr<const buffers::Placement>;
  std::vector<PlacementPointer> input_placements;
  std::vector<PlacementPointer> result_placements;  // outputs, then updates
  // For a program in stages, the number of the device that has each whole value; else empty.
  std::vector<int> input_members;
  std::vector<int> result_members;  // outputs, then updates

  static Signature Of(const graph::Graph& graph);
  // The same on these devices, with the graph's sharding.
  static Signature Of(const graph::Graph& graph, const std::vector<std::string>& devices);
  // Bytes of all outputs and updates.
  int64_t result_bytes() const;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_SIGNATURE_H_
