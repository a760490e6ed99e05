#include <string>

#include "tests/conformance/test_kernels.h"

namespace kiln::conformance {
namespace {

constexpr char kRampSource[] = R"(
__kernel void ramp(__global int* out) {
  const int i = get_group_id(0);
  out[i] = 3 * i + 1;
}
)";

constexpr char kSaxpySource[] = R"(
#pragma OPENCL FP_CONTRACT OFF
__kernel void saxpy(__global const float* x, __global const float* y, __global float* out) {
  const int i = get_group_id(0);
  out[i] = 2.0f * x[i] + y[i];
}
)";

constexpr char kCountSource[] = R"(
__kernel void count(__global int* counter) { counter[get_group_id(0)] += 1; }
)";

// Writes the point to scratch[0], then 1 to 63 to the words behind it, then reads it back.
constexpr char kScratchSource[] = R"(
__kernel void scratch(__global int* out) {
  volatile long scratch[64];
  scratch[0] = get_group_id(0);
  for (int k = 1; k < 64; ++k) scratch[k] = k;
  out[get_group_id(0)] = (int)scratch[0];
}
)";

constexpr char kStepSource[] = R"(
__kernel void step_once(__global uint* value) { value[0] = 5 * value[0] + 7; }
)";

constexpr char kSlowSource[] = R"(
__kernel void slow(__global uint* value) {
  volatile long scratch;
  for (long k = 0; k < 3000000; ++k) scratch = k;
  value[0] = 2 * value[0] + 1;
}
)";

// Each thread takes what the thread opposite to it has put into shared memory.
constexpr char kBlocksSource[] = R"(
__kernel void blocks(__global const int* in, __global int* out) {
  __local int shared[64];
  const int thread = get_local_id(0);
  const int first = get_group_id(0) * 64;
  shared[thread] = in[first + thread];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[first + thread] = shared[63 - thread];
}
)";

drivers::KernelImage MakeImage(const std::string& name, int arguments, int64_t grid,
                               const std::string& source) {
  drivers::KernelImage image;
  image.name = name;
  image.architecture = "opencl-c";
  image.code = source;
  image.grid_size = grid;
  image.num_arguments = arguments;
  return image;
}

}  // namespace

TestKernels MakeOpenClKernels(const drivers::Target& target) {
  TestKernels kernels;
  kernels.ramp = MakeImage("ramp", 1, kGrid, kRampSource);
  kernels.saxpy = MakeImage("saxpy", 3, kGrid, kSaxpySource);
  kernels.count = MakeImage("count", 1, kGrid, kCountSource);
  kernels.scratch = MakeImage("scratch", 1, kGrid, kScratchSource);
  kernels.step = MakeImage("step", 1, 1, kStepSource);
  kernels.slow = MakeImage("slow", 1, 1, kSlowSource);
  kernels.blocks = MakeImage("blocks", 2, kBlocksGrid, kBlocksSource);
  kernels.blocks.block_size = kBlockSize;
  kernels.blocks.shared_bytes = kBlockSize * sizeof(int32_t);
  kernels.blocks.access = {drivers::Access::kRead, drivers::Access::kWrite};
  return kernels;
}

}  // namespace kiln::conformance
