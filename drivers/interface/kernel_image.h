// A compiled kernel: what codegen makes and a driver loads. Plain data; serialisable.
#ifndef KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_
#define KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::drivers {

// What a kernel does with one of its arguments.
enum class Access : uint8_t { kRead, kWrite, kReadWrite };

// An argument of a kernel that takes a slot table, as one number: the slot stands above the offset,
// whose lowest bits are 0 (kBufferAlignmentMin).
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
// threads at once. arguments[i] points at the i-th global buffer, aligned to 64 bytes, with at
// least that buffer's bytes; scratch to scratch_bytes bytes aligned to 64, private to the calling
// thread, with undefined content.
//
// For opencl-c, `code` is OpenCL C source for one device, compiled with -cl-std=CL1.2, with
// division and square root of float correctly rounded where the device can, and with no other
// option that changes results. OpenCL C contracts a * b + c unless the source says
// `#pragma OPENCL FP_CONTRACT OFF`; types beyond the core (double, half) need their pragma as well.
// The source has exactly one function marked __kernel, of any name, with num_arguments parameters,
// nothing else being passed:
//
//   __kernel void any_name(__global float* a, __global const int* b, …)
//
// Parameter i points at the first byte that the launch names of the i-th global buffer, aligned to
// 64 bytes, with at least that buffer's bytes. It runs once, in one dimension: grid_size
// work-groups of block_size work-items, so that get_group_id(0) is the grid point and
// get_local_id(0) the thread; blocks run in any order, and at once. shared_bytes is what its
// __local variables take, all declared in the kernel. There is no scratch: what a work-item needs
// for itself are its private variables and arrays, so scratch_bytes is 0, and so is entry.
//
// For nvptx64, `code` is PTX for the target's processor (or what NVIDIA's tools assembled from it),
// with one entry, `kernel`, of num_arguments parameters of 64 bits, nothing else being passed. They
// are what the parameters of opencl-c are, and the kernel is launched in the same way, %ctaid.x and
// %tid.x being the numbers. shared_bytes is what it declares in .shared; scratch_bytes and entry
// are 0.
//
// For amdgcn, `code` is a code object of version 5 of AMDHSA's convention for the target's
// processor: an ELF shared object with one kernel, whose descriptor is `kernel.kd`, and without
// relocations. Its arguments are num_arguments numbers of 64 bits, one after another, nothing
// hidden being passed. They are what the parameters of opencl-c are, and the kernel is dispatched
// in the same way, in one dimension; it may demand block_size. The group memory that the descriptor
// has holds shared_bytes, and its private memory what a work-item keeps; scratch_bytes and entry
// are 0. What stands behind the file's end is no part of it.
//
// For spirv64, `code` is a module of SPIR-V 1.2 with the capability Kernel, for 64-bit addresses,
// in words of the host's byte order. It has exactly one entry point, of any name, with
// num_arguments parameters: pointers to CrossWorkgroup memory, which are what the parameters of
// opencl-c are. The kernel is launched in the same way, WorkgroupId and LocalInvocationId being the
// numbers; if it has a LocalSize, that is block_size. shared_bytes is what its Workgroup variables
// take; scratch_bytes and entry are 0.
//
// Kernels of opencl-c, nvptx64, amdgcn and spirv64 that take a slot table have other parameters, so
// that a list with other buffers needs another table and no other command:
//
//   __kernel void any_name(__global const ulong* restrict table, ulong a, ulong b, …)
//
// table[i] is the address of slot i, and each argument is what PackSlot makes of its slot and
// offset: a's bytes begin at table[a >> kSlotOffsetBits] + (a & kSlotOffsetMask). Nobody writes the
// table while the kernel runs.
//
// A kernel whose image says `runs_parts` runs any part of its grid in one launch. For x86-64 all
// do. For the others its function has one more parameter, the last: the first grid point of the
// launch, as a number of 64 bits, to be added to the block's own number, which counts from 0.
struct KernelImage {
  std::string name;           // x86-64: also the symbol
  std::string architecture;   // Target::architecture
  std::string code;           // machine code, PTX, code object, SPIR-V or OpenCL C, by architecture
  int64_t entry = 0;          // x86-64: offset of the function in `code`
  int64_t grid_size = 1;      // how many independent tasks, or blocks of threads
  int block_size = 1;         // threads of a block; x86-64: 1
  int64_t shared_bytes = 0;   // memory that a block's threads share; x86-64: 0
  int64_t scratch_bytes = 0;  // per thread
  int num_arguments = 0;
  bool takes_slot_table = false;
  bool runs_parts = false;
  // What Driver::Finish has made of `code`, and the device loads in its place; empty: it loads
  // `code`.
  std::string finished;
  std::vector<Access> access;  // of each argument; empty: unknown, so all may be written
  // Estimates, from which a driver decides whether to wake other threads.
  int64_t flops = 0;
  int64_t bytes = 0;

  // Of the function; not for x86-64.
  int num_parameters() const {
    return num_arguments + (takes_slot_table ? 1 : 0) + (runs_parts ? 1 : 0);
  }

  std::string Serialize() const;
  // False if `data` is not what Serialize wrote (another version, cut short, damaged).
  static bool Deserialize(const std::string& data, KernelImage* image);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_KERNEL_IMAGE_H_
