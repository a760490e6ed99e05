// Graphs on a mesh against the same graphs on one device: by the interpreter on simulated devices,
// and compiled for this machine's processor, with all devices in this process.
#ifndef KILN_TESTS_SHARDED_RUN_SHARDED_H_
#define KILN_TESTS_SHARDED_RUN_SHARDED_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/compiler.h"
#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/shard/program.h"

namespace kiln::sharded {

// This machine's processor, with two threads.
const drivers::Target& ProcessorTarget();

// What sharding makes of the graph, behind all passes before that.
absl::StatusOr<shard::Program> MakeProgram(const graph::Graph& graph);
// That program printed, or why there is none.
std::string ProgramText(const graph::Graph& graph);

// The program of one device of a graph in stages, compiled for this machine's processor.
absl::StatusOr<compiler::CompiledProgram> CompileStage(const graph::Graph& graph, int stage);

// The graph's outputs, then its updates, of compiled kernels; devices run in an order that `seed`
// chooses.
absl::StatusOr<std::vector<ops::HostTensor>> RunOnMesh(const graph::Graph& graph,
                                                       absl::Span<const ops::HostTensor> inputs,
                                                       uint64_t seed);

// Empty if the graph on its mesh gives what the interpreter gives for it without one. Tolerances,
// absolute plus relative, are by output and then by update; one stands for all.
std::string SimulatedDisagreement(const graph::Graph& graph,
                                  absl::Span<const ops::HostTensor> inputs,
                                  std::vector<double> tolerances, uint64_t seed);
std::string CompiledDisagreement(const graph::Graph& graph,
                                 absl::Span<const ops::HostTensor> inputs,
                                 std::vector<double> tolerances, uint64_t seed);

// Any way in which a tensor of this shape can lie; all of them.
graph::Spec RandomSpec(const graph::Mesh& mesh, const ir::Shape& shape, std::mt19937_64& random);
std::vector<graph::Spec> AllSpecs(const graph::Mesh& mesh, const ir::Shape& shape);

// The graph on the mesh, each input and output lying in any way; and with hints in between.
graph::Graph OnMesh(const graph::Graph& graph, const graph::Mesh& mesh, std::mt19937_64& random,
                    bool with_hints);

// The graph in stages on so many devices: inputs, outputs and what is between them on any device,
// with sends where they are needed, and some where they are not.
graph::Graph InStages(const graph::Graph& graph, int devices, std::mt19937_64& random);

}  // namespace kiln::sharded

#endif  // KILN_TESTS_SHARDED_RUN_SHARDED_H_
