#include <regex>
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

// These take a slot table.
constexpr char kSaxpySource[] = R"(
#pragma OPENCL FP_CONTRACT OFF
__kernel void saxpy(__global const ulong* table, ulong x, ulong y, ulong out) {
  const int i = get_group_id(0);
  ARGUMENT(float, out)[i] = 2.0f * ARGUMENT(float, x)[i] + ARGUMENT(float, y)[i];
}
)";

constexpr char kCountSource[] = R"(
__kernel void count(__global const ulong* table, ulong counter) {
  ARGUMENT(int, counter)[get_group_id(0)] += 1;
}
)";

constexpr char kStepSource[] = R"(
__kernel void step_once(__global const ulong* table, ulong value) {
  __global uint* const at = ARGUMENT(uint, value);
  at[0] = 5 * at[0] + 7;
}
)";

constexpr char kSlowSource[] = R"(
__kernel void slow(__global const ulong* table, ulong value) {
  volatile long scratch;
  for (long k = 0; k < 3000000; ++k) scratch = k;
  __global uint* const at = ARGUMENT(uint, value);
  at[0] = 2 * at[0] + 1;
}
)";

// The others take addresses.

// Writes the point to scratch[0], then 1 to 63 to the following words, then reads the point back.
constexpr char kScratchSource[] = R"(
__kernel void scratch(__global int* out) {
  volatile long scratch[64];
  scratch[0] = get_group_id(0);
  for (int k = 1; k < 64; ++k) scratch[k] = k;
  out[get_group_id(0)] = (int)scratch[0];
}
)";

// Each thread reads what the opposite thread has written to shared memory.
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

drivers::KernelImage TakingTable(drivers::KernelImage image) {
  image.code = "#define ARGUMENT(type, name) ((__global type*)(table[name >> " +
               std::to_string(drivers::kSlotOffsetBits) + "] + (name & " +
               std::to_string(drivers::kSlotOffsetMask) + "ul)))\n" + image.code;
  image.takes_slot_table = true;
  return image;
}

// Returns the kernel with an additional parameter for the first point, so that parts of its grid
// can run.
drivers::KernelImage RunningParts(drivers::KernelImage image) {
  image.code =
      std::regex_replace(image.code, std::regex("get_group_id\\(0\\)"), "($& + first_point)");
  image.code =
      std::regex_replace(image.code, std::regex("(__kernel [^)]*)\\)"), "$1, ulong first_point)");
  image.runs_parts = true;
  return image;
}

}  // namespace

TestKernels MakeOpenClKernels(const drivers::Target& target) {
  TestKernels kernels;
  kernels.ramp = MakeImage("ramp", 1, kGrid, kRampSource);
  kernels.saxpy = TakingTable(MakeImage("saxpy", 3, kGrid, kSaxpySource));
  kernels.count = TakingTable(MakeImage("count", 1, kGrid, kCountSource));
  kernels.scratch = MakeImage("scratch", 1, kGrid, kScratchSource);
  kernels.step = TakingTable(MakeImage("step", 1, 1, kStepSource));
  kernels.slow = TakingTable(MakeImage("slow", 1, 1, kSlowSource));
  kernels.blocks = MakeImage("blocks", 2, kBlocksGrid, kBlocksSource);
  kernels.blocks.block_size = kBlockSize;
  for (drivers::KernelImage* image : {&kernels.ramp, &kernels.count, &kernels.blocks})
    *image = RunningParts(*image);
  kernels.blocks.shared_bytes = kBlockSize * sizeof(int32_t);
  kernels.blocks.access = {drivers::Access::kRead, drivers::Access::kWrite};
  return kernels;
}

}  // namespace kiln::conformance
