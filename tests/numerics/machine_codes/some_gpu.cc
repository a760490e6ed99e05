#include "tests/numerics/machine_codes/some_gpu.h"

#include "compiler/codegen/opencl_c/kernel.h"

namespace kiln::numerics {

const drivers::Target& SomeGpu() {
  static const drivers::Target* const target = [] {
    auto* some = new drivers::Target;
    some->architecture = codegen::kOpenClArchitecture;
    some->costs = drivers::kGpuCosts;
    some->rates = drivers::kGpuRates;
    some->limits.vector_bytes = 4;
    some->limits.compute_units = 4;
    some->limits.threads_per_block = 256;
    some->limits.threads_per_subgroup = 32;
    some->limits.threads_per_unit = 1024;
    some->limits.shared_bytes_per_block = 48 << 10;
    return some;
  }();
  return *target;
}

}  // namespace kiln::numerics
