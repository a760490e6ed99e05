// Compares graphs on a mesh with the same graphs on one device: in the interpreter on simulated
// devices, and compiled for this machine's processor, with all devices in this process.
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

// Returns this machine's processor, with two threads.
const drivers::Target& ProcessorTarget();

// Returns the result of sharding the graph, after all earlier passes.
absl::StatusOr<shard::Program> MakeProgram(const graph::Graph& graph);
// Returns that program as text, or why there is none.
std::string ProgramText(const graph::Graph& graph);

// Returns the program of one device of a graph in stages, compiled for this machine's processor.
absl::StatusOr<compiler::CompiledProgram> CompileStage(const graph::Graph& graph, int stage);

// Returns the graph's outputs, followed by its updates, computed by compiled kernels; `seed`
// chooses the order in which devices run.
absl::StatusOr<std::vector<ops::HostTensor>> RunOnMesh(const graph::Graph& graph,
                                                       absl::Span<const ops::HostTensor> inputs,
                                                       uint64_t seed);

// Returns the difference between the graph on its mesh and the interpreter's results without one;
// empty if there is none. Tolerances, absolute plus relative, are given by output and then by
// update; a single one is used for all.
std::string SimulatedDisagreement(const graph::Graph& graph,
                                  absl::Span<const ops::HostTensor> inputs,
                                  std::vector<double> tolerances, uint64_t seed);
std::string CompiledDisagreement(const graph::Graph& graph,
                                 absl::Span<const ops::HostTensor> inputs,
                                 std::vector<double> tolerances, uint64_t seed);

// Returns a random valid layout of a tensor of this shape, or all valid layouts.
graph::Spec RandomSpec(const graph::Mesh& mesh, const ir::Shape& shape, std::mt19937_64& random);
std::vector<graph::Spec> AllSpecs(const graph::Mesh& mesh, const ir::Shape& shape);

// Returns the graph on the mesh, with random layouts of inputs and outputs, and optionally hints in
// between.
graph::Graph OnMesh(const graph::Graph& graph, const graph::Mesh& mesh, std::mt19937_64& random,
                    bool with_hints);

// Returns the graph in stages on `devices` devices: inputs, outputs and intermediate values on
// random devices, with the necessary sends and some unnecessary ones.
graph::Graph InStages(const graph::Graph& graph, int devices, std::mt19937_64& random);

}  // namespace kiln::sharded

#endif  // KILN_TESTS_SHARDED_RUN_SHARDED_H_
