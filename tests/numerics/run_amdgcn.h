// Graphs and kernels compiled to code objects for AMD's GPUs, and run by their twins for the host
// (tests/stand_ins/hsa/object).
#ifndef KILN_TESTS_NUMERICS_RUN_AMDGCN_H_
#define KILN_TESTS_NUMERICS_RUN_AMDGCN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::numerics {

// A small GPU: a processor, and the threads of its subgroups.
drivers::Target AmdgcnTarget(const std::string& processor = "gfx1100", int wave = 32);

absl::StatusOr<drivers::KernelImage> CompileToAmdgcn(const kernel::Kernel& kernel,
                                                     const schedule::Schedule& schedule,
                                                     const drivers::Target& target);

// What the code object says of itself is not what the image and the target say: why; else "".
std::string WhatIsWrongWith(const drivers::KernelImage& image, const drivers::Target& target);

// INTERNAL: what CompileKernel says, what is wrong with the code object, or what its threads did.
absl::Status RunOnAmdgcn(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                         const drivers::Target& target, absl::Span<ops::HostTensor* const> globals);

// The graph through all passes, kernel by kernel, with the schedules that the compiler chooses.
// Outputs of requests for gradients come with it.
absl::StatusOr<kernel::PartitionResults> RunOnAmdgcn(const graph::Graph& graph,
                                                     const drivers::Target& target,
                                                     absl::Span<const ops::HostTensor> inputs);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RUN_AMDGCN_H_
