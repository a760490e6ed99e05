// A compiled kernel: made by codegen, loaded by a driver. Plain data; serialisable.
#ifndef KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_
#define KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::drivers {

// How a kernel uses one of its arguments.
enum class Access : uint8_t { kRead, kWrite, kReadWrite };

// An argument of a kernel that takes a slot table, packed into one number: the slot in the high
// bits, the offset in the low bits. The lowest bits of the offset are 0 (kBufferAlignmentMin).
inline constexpr int kSlotOffsetBits = 44;
inline constexpr uint64_t kSlotOffsetMask = (uint64_t{1} << kSlotOffsetBits) - 64;
inline constexpr int kTableSlotsMax = 1 << (64 - kSlotOffsetBits);
constexpr uint64_t PackSlot(int slot, int64_t offset) {
  return static_cast<uint64_t>(slot) << kSlotOffsetBits | static_cast<uint64_t>(offset);
}

// For x86-64, `code` is one position-independent blob (text and constants, nothing to link) whose
// function at `entry` is
//
//   void kernel(void* const* arguments, int64_t grid_begin, int64_t grid_end, void* scratch);
//
// It runs the grid points [grid_begin, grid_end) of grid_size; disjoint ranges may run on different
// threads at once. arguments[i] points at the i-th global buffer, which is aligned to 64 bytes and
// has at least that buffer's bytes. `scratch` points at scratch_bytes bytes, aligned to 64, private
// to the calling thread, with undefined content.
//
// For opencl-c, `code` is OpenCL C source for one device, compiled with -cl-std=CL1.2, with
// correctly rounded float division and square root where the device supports it, and with no other
// option that changes results. OpenCL C contracts a * b + c unless the source says
// `#pragma OPENCL FP_CONTRACT OFF`; types beyond the core (double, half) also need their pragma.
// The source has exactly one function marked __kernel, of any name, with exactly num_arguments
// parameters:
//
//   __kernel void any_name(__global float* a, __global const int* b, …)
//
// Parameter i points at the first byte of the launch's range of the i-th global buffer; it is
// aligned to 64 bytes and has at least that buffer's bytes. The kernel is launched in one
// dimension: grid_size work-groups of block_size work-items. get_group_id(0) is the grid point and
// get_local_id(0) the thread; blocks run in any order, and concurrently. shared_bytes is the size
// of its __local variables, all declared in the kernel. There is no scratch: a work-item keeps its
// own data in private variables and arrays, so scratch_bytes and entry are 0.
//
// For nvptx64, `code` is PTX for the target's processor (or what NVIDIA's tools assembled from it),
// with one entry, `kernel`, that has exactly num_arguments parameters of 64 bits. They have the
// meaning of opencl-c's parameters, and the kernel is launched in the same way, with %ctaid.x and
// %tid.x as the indices. shared_bytes is the size of its .shared declarations; scratch_bytes and
// entry are 0.
//
// For amdgcn, `code` is a code object of version 5 of AMDHSA's convention for the target's
// processor: an ELF shared object without relocations and with one kernel, whose descriptor is
// `kernel.kd`. Its arguments are exactly num_arguments numbers of 64 bits, one after another, with
// no hidden arguments. They have the meaning of opencl-c's parameters, and the kernel is dispatched
// in the same way, in one dimension; it may require block_size. The descriptor's group memory
// includes shared_bytes, and its private memory is each work-item's own data; scratch_bytes and
// entry are 0. Data after the end of the file is not part of it.
//
// For spirv64, `code` is a module of SPIR-V 1.2 with the capability Kernel, for 64-bit addresses,
// in words of the host's byte order. It has exactly one entry point, of any name, with
// num_arguments parameters: pointers to CrossWorkgroup memory with the meaning of opencl-c's
// parameters. The kernel is launched in the same way, with WorkgroupId and LocalInvocationId as the
// indices; if it has a LocalSize, that is block_size. shared_bytes is the size of its Workgroup
// variables; scratch_bytes and entry are 0.
//
// Kernels of opencl-c, nvptx64, amdgcn and spirv64 that take a slot table have other parameters, so
// that running a list with other buffers needs only another table, not other commands:
//
//   __kernel void any_name(__global const ulong* restrict table, ulong a, ulong b, …)
//
// table[i] is the address of slot i, and each argument is PackSlot of its slot and offset: a's
// bytes begin at table[a >> kSlotOffsetBits] + (a & kSlotOffsetMask). The table is not written
// while the kernel runs.
//
// A kernel whose image has `runs_parts` can run any subrange of its grid in one launch. All x86-64
// kernels can. On the other architectures its function has one more parameter, the last: the first
// grid point of the launch, as a number of 64 bits. The kernel adds it to the block's own number,
// which counts from 0.
struct KernelImage {
  std::string name;           // x86-64: also the symbol
  std::string architecture;   // Target::architecture
  std::string code;           // machine code, PTX, code object, SPIR-V or OpenCL C, by architecture
  int64_t entry = 0;          // x86-64: offset of the function in `code`
  int64_t grid_size = 1;      // number of independent tasks, or of blocks of threads
  int block_size = 1;         // threads of a block; x86-64: 1
  int64_t shared_bytes = 0;   // memory that a block's threads share; x86-64: 0
  int64_t scratch_bytes = 0;  // per thread
  int num_arguments = 0;
  bool takes_slot_table = false;
  bool runs_parts = false;
  // The result of Driver::Finish for `code`, which the device loads instead of `code`; empty: it
  // loads `code`.
  std::string finished;
  std::vector<Access> access;  // per argument; empty: unknown, so all may be written
  // Estimates; a driver uses them to decide whether to wake other threads.
  int64_t flops = 0;
  int64_t bytes = 0;

  // Number of parameters of the function; not for x86-64.
  int num_parameters() const {
    return num_arguments + (takes_slot_table ? 1 : 0) + (runs_parts ? 1 : 0);
  }

  std::string Serialize() const;
  // Returns false if Serialize did not write `data` (another version, truncated, damaged).
  static bool Deserialize(const std::string& data, KernelImage* image);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_
