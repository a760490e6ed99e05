// What the compiler must know of a device to write code for it. Plain data, no device handle. A
// driver asks the device for it or, where no interface tells, takes it from a table.
#ifndef KILN_DRIVERS_INTERFACE_TARGET_H_
#define KILN_DRIVERS_INTERFACE_TARGET_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "drivers/interface/costs.h"

namespace kiln::drivers {

// Every buffer starts at a multiple of so many bytes, on all devices.
inline constexpr int64_t kBufferAlignmentMin = 64;

// How much there is of what kernels use.
struct Limits {
  // Bytes of the widest vector register; 4 where lanes are threads.
  int vector_bytes = 16;
  int vector_registers = 16;  // of a thread
  // Hardware threads or multiprocessors that one kernel may use at once.
  int compute_units = 1;
  // Threads that share memory and barriers, at most; those among them that run in step; and those
  // that a compute unit keeps going, of all blocks. All are 1 where a task is one thread.
  int threads_per_block = 1;
  int threads_per_subgroup = 1;
  int threads_per_unit = 1;
  // Neighbours among the threads of a block that hand each other values without memory; 1: none.
  int threads_per_shuffle = 1;
  // What a thread reads or writes at once, at most, where lanes are threads; 1: whole elements.
  int bytes_per_access = 1;
  // Registers of all threads that a compute unit keeps going, in bytes. Means nothing where a task
  // is one thread; most GPUs have so many.
  int64_t register_bytes_per_unit = 256 << 10;
  // Memory that the threads of a block share.
  int64_t shared_bytes_per_block = 0;
  // Of a value that a task keeps to itself. Those of a task take twice as much at most, beside what
  // its schedule adds.
  int64_t local_bytes_max = 64 << 10;
  // Buffers that one kernel takes.
  int arguments_max = 1 << 20;
  // Per compute unit, in bytes: first-level data cache or shared memory, and the next private
  // level.
  int64_t near_memory_bytes = 32 << 10;
  int64_t private_cache_bytes = 1 << 20;
  // Of buffers and of the tensors that share one, in bytes: a power of two, not below
  // kBufferAlignmentMin.
  int64_t buffer_alignment = kBufferAlignmentMin;
};

// What the hardware does by itself.
struct Capabilities {
  bool fma = false;   // a fused multiply-add costs what a multiplication does
  bool fp64 = true;   // without it nothing of float64 is compiled
  bool fp16 = false;  // arithmetic of float16, not just conversions
  bool bf16 = false;  // likewise, of bfloat16
  // 32 threads together add up products of float16, bfloat16 and tf32 in float32 (mma.sync).
  bool matrix = false;
  bool async_copies = false;  // from memory to the block's own, while threads go on (cp.async)
};

// Who makes of images what a device loads, in a process that may end of it (Driver::Finish).
struct Finisher {
  std::string driver;   // the driver's name, "opencl"; empty: nobody, images are loaded as they are
  std::string device;   // what that driver knows the device by, in any process; for people, too
  std::string version;  // of all that takes part: what one has made is none of another's
};

struct Target {
  // A row of the compiler's table of machine codes: "x86-64", "opencl-c", "nvptx64", "amdgcn",
  // "spirv64", or "null", for which nothing is compiled.
  std::string architecture;
  // The processor as LLVM names it, for example "sapphirerapids" or "sm_90".
  std::string processor;
  // LLVM feature string: "+avx2,+fma,-f16c" for example.
  std::string features;
  // What of the architecture is used, for people, in words that the driver takes: "avx2,-f16c".
  std::string variant;

  Limits limits;
  Capabilities capabilities;
  // The kind of machine that it is.
  Costs costs = kVectorCoreCosts;
  Rates rates = kVectorCoreRates;
  Finisher finisher;

  // Whether `features` has +feature.
  bool Has(absl::string_view feature) const;
  // "x86-64/avx2,-f16c", for people.
  std::string Summary() const;
  // Names everything above that changes generated code, so neither `variant` nor `rates`: part of
  // the kernel cache's key.
  std::string CacheKey() const;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_TARGET_H_
