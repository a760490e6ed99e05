// Compiles a graph for this machine's processor, as numerics/target.h describes it, or for another
// of its devices, and runs it with that device's driver.
#ifndef KILN_TESTS_NUMERICS_COMPILED_RUN_COMPILED_H_
#define KILN_TESTS_NUMERICS_COMPILED_RUN_COMPILED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/compiler.h"
#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

// Disables passes, given as comma-separated names, in all later compilations. Requires: called at
// most once, before the first use. INVALID_ARGUMENT if a name is not that of an optional pass; then
// nothing was set.
absl::Status DisablePasses(const std::string& names);

// Makes choices at random (random_choices.h) in all later compilations: other ones for each graph
// and seed. 0: none. Requires: called at most once, before the first use.
void ChooseAtRandom(uint64_t seed);

// Selects the driver whose first device runs everything from now on: "cpu", "cuda", "level_zero" or
// "opencl". The default is a CPU device with two threads. Requires: called at most once, before the
// first use. FAILED_PRECONDITION, with the reason, if the driver has no device.
absl::Status UseDevice(const std::string& driver_name);

// Returns the graph's outputs, computed on the device. `inputs` are by index, each of its input's
// shape and dtype. Unless it is null, `*program` becomes the program that ran. INTERNAL: the proof
// refused a schedule that was chosen for a kernel, so that the kernel would have run with the plain
// one, or the graph cannot be compiled with choices that there are sites for.
absl::StatusOr<std::vector<ops::HostTensor>> RunCompiled(
    const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs,
    compiler::CompiledProgram* program = nullptr);

// The same with schedules made from settings (compiler::Options::tuned). INTERNAL also if a setting
// could not be used.
absl::StatusOr<std::vector<ops::HostTensor>> RunTuned(const graph::Graph& graph,
                                                      absl::Span<const ops::HostTensor> inputs,
                                                      decltype(compiler::Options::tuned) tuned,
                                                      compiler::CompiledProgram* program = nullptr);

// Returns an empty text if the compiled program gives the interpreter's results for the graph,
// including requested gradients: integers and bool exactly, floats within their output's tolerance,
// absolute plus relative. Otherwise returns the difference. Returns an error if the graph is
// illegal, inputs or tolerances do not fit it, or the compiler or the interpreter refuses it.
absl::StatusOr<std::string> CompareWithInterpreter(const graph::Graph& graph,
                                                   absl::Span<const ops::HostTensor> inputs,
                                                   absl::Span<const double> tolerances,
                                                   compiler::CompiledProgram* program = nullptr);

// Returns the difference, or the error's text.
std::string Disagreement(const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs,
                         absl::Span<const double> tolerances,
                         compiler::CompiledProgram* program = nullptr);
// Uses one tolerance for all outputs.
std::string Disagreement(const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs,
                         double tolerance);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_COMPILED_RUN_COMPILED_H_
