// A graph compiled for this machine's processor, as target.h has it, or for another of its devices,
// and run by that device's driver.
#ifndef KILN_TESTS_NUMERICS_RUN_COMPILED_H_
#define KILN_TESTS_NUMERICS_RUN_COMPILED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/compiler.h"
#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

// Names of passes, with commas between them, without which programs are compiled from here on;
// once, before the first use. INVALID_ARGUMENT: one is none or cannot be switched off, and nothing
// was set.
absl::Status DisablePasses(const std::string& names);

// The driver whose first device runs everything from here on, "cpu", "cuda", "level_zero" or
// "opencl"; once,
// before the first use. Without it that is a CPU device with two threads. FAILED_PRECONDITION: it
// has none, or why.
absl::Status UseDevice(const std::string& driver_name);

// The graph's outputs, from the device. `inputs` are by index, each of its
// input's shape and dtype. `program`, unless it is null, becomes what was run. INTERNAL: the proof
// refused a schedule that was chosen for a kernel, which would have run on the plain one.
absl::StatusOr<std::vector<ops::HostTensor>> RunCompiled(
    const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs,
    compiler::CompiledProgram* program = nullptr);

// Empty if the compiled program gives what the interpreter gives for the graph, gradient requests
// answered: integers and bool exactly, floats within their output's tolerance, absolute plus
// relative. Else what is different. An error: the graph is illegal, inputs or tolerances do not fit
// it, or one of the two refuses it.
absl::StatusOr<std::string> CompareWithInterpreter(const graph::Graph& graph,
                                                   absl::Span<const ops::HostTensor> inputs,
                                                   absl::Span<const double> tolerances,
                                                   compiler::CompiledProgram* program = nullptr);

// The difference, or the error's text.
std::string Disagreement(const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs,
                         absl::Span<const double> tolerances,
                         compiler::CompiledProgram* program = nullptr);
// One tolerance for all outputs.
std::string Disagreement(const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs,
                         double tolerance);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RUN_COMPILED_H_
