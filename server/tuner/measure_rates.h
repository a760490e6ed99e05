// Measures the rates of a device by kernels that the compiler makes.
#ifndef KILN_SERVER_TUNER_MEASURE_RATES_H_
#define KILN_SERVER_TUNER_MEASURE_RATES_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "compiler/workers/kernel_compiler.h"
#include "drivers/interface/target.h"
#include "server/tuner/device_rates.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// Makes a runner with this kernel's buffers, calls `use`, and returns its error or that of the
// runner.
using WithRunner = absl::FunctionRef<absl::Status(
    const kernel::Kernel& buffers, absl::FunctionRef<absl::Status(TrialRunner&)> use)>;

// Takes less than a second on most devices, and about 70 MB of the device's memory. A probe is a
// matmul in the caches (fused multiply-adds), polynomials (other arithmetic), the maximum of data
// of several sizes (reads), a fill and a copy. Each counts its fastest run, and each rate is the
// highest of its probes. On devices with matrix units, sums of products are not measured: which of
// them could use the units is not known. A probe that fails leaves its rates 0. Returns the first
// error if nothing was measured, the runner's if it cannot be made, and that of a probe if it is
// UNAVAILABLE, CANCELLED or ABORTED: then the others fail, too.
absl::StatusOr<DeviceRates> MeasureRates(const drivers::Target& target,
                                         const workers::CompileFunction& compile,
                                         int compile_threads, WithRunner with_runner);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_MEASURE_RATES_H_
