// Lowers, schedules and emits every group of a partition, in parallel. Equal kernels are compiled
// once; known ones come from the cache.
#ifndef KILN_COMPILER_COMPILE_KERNELS_H_
#define KILN_COMPILER_COMPILE_KERNELS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/machine_code.h"
#include "compiler/compiler.h"
#include "compiler/partition/partition.h"
#include "drivers/interface/target.h"

namespace kiln::compiler {

// The kernel of a group, and its arguments.
struct GroupKernel {
  int kernel = 0;            // index into KernelSet::kernels
  std::vector<int> tensors;  // the partition's tensors passed as the kernel's arguments
};
struct KernelSet {
  std::vector<CompiledKernel> kernels;  // distinct ones
  std::vector<GroupKernel> groups;      // by group
};

// Runs the passes lower, schedule and emit. `code` is the row of target.architecture. Uses up to
// options.threads threads. Returns the first failing group's error.
absl::StatusOr<KernelSet> CompileKernels(const partition::Partition& partition,
                                         const codegen::MachineCode& code,
                                         const drivers::Target& target, const Options& options,
                                         std::vector<PassReport>* reports);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_COMPILE_KERNELS_H_
