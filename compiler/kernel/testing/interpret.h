// Runs kernels on host memory, naively and slowly: the reference semantics of a kernel. Scalars
// follow the table of ops (ops::DefOf(op).evaluate).
#ifndef KILN_COMPILER_KERNEL_TESTING_INTERPRET_H_
#define KILN_COMPILER_KERNEL_TESTING_INTERPRET_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/kernel/kernel.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/partition/partition.h"

namespace kiln::kernel {

// `globals` holds one tensor per global buffer, with its dtype and number of elements, in any
// shape. INVALID_ARGUMENT if they do not match; INTERNAL if an access is out of bounds.
absl::Status Interpret(const Kernel& kernel, absl::Span<ops::HostTensor* const> globals);

struct PartitionResults {
  std::vector<ops::HostTensor> outputs;
  std::vector<ops::HostTensor> updates;
};
// Runs one kernel on its globals, as Interpret does.
using RunKernel =
    absl::FunctionRef<absl::Status(const Kernel& kernel, absl::Span<ops::HostTensor* const>)>;
// Lowers all groups and runs them in order. `inputs` by index.
absl::StatusOr<PartitionResults> RunPartition(const partition::Partition& partition,
                                              absl::Span<const ops::HostTensor> inputs,
                                              RunKernel run);
// Interprets all groups in order.
absl::StatusOr<PartitionResults> Interpret(const partition::Partition& partition,
                                           absl::Span<const ops::HostTensor> inputs);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_TESTING_INTERPRET_H_
