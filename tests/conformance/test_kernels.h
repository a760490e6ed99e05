// Kernels with a known effect, which the suite runs on every device that runs kernels.
#ifndef KILN_TESTS_CONFORMANCE_TEST_KERNELS_H_
#define KILN_TESTS_CONFORMANCE_TEST_KERNELS_H_

#include <cstdint>

#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::conformance {

// The grid size of all kernels below whose grid is not one or kBlocksGrid; buffers have as many
// 32-bit elements.
inline constexpr int64_t kGrid = 10007;
// The grid size of `blocks`.
inline constexpr int64_t kBlocksGrid = 157;
inline constexpr int kBlockSize = 64;

struct TestKernels {
  drivers::KernelImage ramp;   // (out): out[i] = 3 i + 1 (int32)
  drivers::KernelImage saxpy;  // (x, y, out): out[i] = 2 x[i] + y[i] (float32)
  drivers::KernelImage count;  // (counter): counter[i] += 1 (int32): each grid point must run once
  drivers::KernelImage
      scratch;                // (out): out[i] = i (int32), written to scratch and read back later
  drivers::KernelImage step;  // (value): value[0] = 5 value[0] + 7 (uint32); a grid of one, small
  drivers::KernelImage
      slow;  // (value): value[0] = 2 value[0] + 1 (uint32) after some milliseconds; a grid of one
  // With the feature kBlocks:
  drivers::KernelImage
      blocks;  // (in, out): reverses each block of kBlockSize int32 through shared memory
};

// Images for `x86-64` devices. Estimates are large, so that grids are shared among threads.
TestKernels MakeX86Kernels(const drivers::Target& target);
// OpenCL C, one work-item a grid point.
TestKernels MakeOpenClKernels(const drivers::Target& target);
// PTX, one block a grid point, with one thread except in `blocks`.
TestKernels MakePtxKernels(const drivers::Target& target);
// SPIR-V, as PTX.
TestKernels MakeSpirvKernels(const drivers::Target& target);

// Code objects for AMD's GPUs, with twins for the host; as PTX.
TestKernels MakeAmdgcnKernels(const drivers::Target& target);

}  // namespace kiln::conformance

#endif  // KILN_TESTS_CONFORMANCE_TEST_KERNELS_H_
