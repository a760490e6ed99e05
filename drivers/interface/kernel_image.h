// A compiled kernel: what codegen makes and a driver loads. Plain data; serialisable.
#ifndef KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_
#define KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::drivers {

// For x86-64, `code` is one position-independent blob (text and constants, nothing to link) whose
// function at `entry` is
//
//   void kernel(void* const* arguments, int64_t grid_begin, int64_t grid_end, void* scratch);
//
// It runs the grid points [grid_begin, grid_end) of grid_size; disjoint ranges may run on different
// threads at once. arguments[i] points at the i-th global buffer, aligned to 64 bytes, with at
// least that buffer's bytes; scratch to scratch_bytes bytes aligned to 64, private to the calling
// thread, with undefined content.
struct KernelImage {
  std::string name;           // also the symbol
  std::string architecture;   // Target::architecture
  std::string code;           // machine code, PTX, code object, SPIR-V or OpenCL C, by architecture
  int64_t entry = 0;          // x86-64: offset of the function in `code`
  int64_t grid_size = 1;      // x86-64: how many independent tasks
  int64_t scratch_bytes = 0;  // per thread
  int num_arguments = 0;
  // Estimates, from which a driver decides whether to wake other threads.
  int64_t flops = 0;
  int64_t bytes = 0;

  std::string Serialize() const;
  // False if `data` is not what Serialize wrote (another version, cut short, damaged).
  static bool Deserialize(const std::string& data, KernelImage* image);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_
