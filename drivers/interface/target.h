// The properties of a device that the compiler needs to generate code. Plain data, no device
// handle. A driver asks the device for them or, where no interface reports them, takes them from a
// table.
#ifndef KILN_DRIVERS_INTERFACE_TARGET_H_
#define KILN_DRIVERS_INTERFACE_TARGET_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "drivers/interface/costs.h"

namespace kiln::drivers {

// Every buffer on every device is aligned to this many bytes.
inline constexpr int64_t kBufferAlignmentMin = 64;

// The amount of each resource that kernels use.
struct Limits {
  // Bytes of the widest vector register; 4 where lanes are threads.
  int vector_bytes = 16;
  int vector_registers = 16;  // per thread
  // Hardware threads or multiprocessors that one kernel may use at once.
  int compute_units = 1;
  // The most threads that share memory and barriers; how many of them run in lockstep; and the most
  // threads, of all blocks, that a compute unit keeps resident. All are 1 where a task is one
  // thread.
  int threads_per_block = 1;
  int threads_per_subgroup = 1;
  int threads_per_unit = 1;
  // The number of neighbouring threads of a block that exchange values without memory; 1: none.
  int threads_per_shuffle = 1;
  // The widest access of a thread where lanes are threads; 1: whole elements.
  int bytes_per_access = 1;
  // Bytes of the registers of all threads resident on a compute unit. Not used where a task is one
  // thread; most GPUs have the default.
  int64_t register_bytes_per_unit = 256 << 10;
  // Memory shared by the threads of a block.
  int64_t shared_bytes_per_block = 0;
  // Limit for one value that a task keeps private. All private values of a task take at most twice
  // as much, in addition to what its schedule adds.
  int64_t local_bytes_max = 64 << 10;
  // The most buffers that one kernel takes.
  int arguments_max = 1 << 20;
  // Bytes per compute unit: first-level data cache or shared memory, and the next private cache
  // level.
  int64_t near_memory_bytes = 32 << 10;
  int64_t private_cache_bytes = 1 << 20;
  // Alignment in bytes of buffers and of the tensors that share one: a power of two, at least
  // kBufferAlignmentMin.
  int64_t buffer_alignment = kBufferAlignmentMin;
};

// Hardware features.
struct Capabilities {
  bool fma = false;   // a fused multiply-add costs as much as a multiplication
  bool fp64 = true;   // without it, nothing of float64 is compiled
  bool fp16 = false;  // arithmetic of float16, not just conversions
  bool bf16 = false;  // arithmetic of bfloat16, not just conversions
  // Matrix instructions: 32 threads accumulate products of float16, bfloat16 and tf32 in float32
  // (mma.sync).
  bool matrix = false;
  bool async_copies = false;  // from memory to a block's shared memory (cp.async)
};

// The driver that turns images into what a device loads, in a separate process (Driver::Finish),
// because the vendor's compiler may crash.
struct Finisher {
  std::string driver;   // the driver's name, "opencl"; empty: images are loaded as they are
  std::string device;   // that driver's name for it in any process, readable
  std::string version;  // of all components; images are for one version only
};

struct Target {
  // A row of the compiler's table of machine codes: "x86-64", "opencl-c", "nvptx64", "amdgcn",
  // "spirv64", or "null", for which nothing is compiled.
  std::string architecture;
  // The processor as LLVM names it, for example "sapphirerapids" or "sm_90".
  std::string processor;
  // LLVM feature string: "+avx2,+fma,-f16c" for example.
  std::string features;
  // The parts of the architecture that are used, for people, in the syntax that the driver accepts:
  // "avx2,-f16c".
  std::string variant;

  Limits limits;
  Capabilities capabilities;
  // The costs of this kind of machine.
  Costs costs = kVectorCoreCosts;
  Rates rates = kVectorCoreRates;
  Finisher finisher;

  // Whether `features` has +feature.
  bool Has(absl::string_view feature) const;
  // "x86-64/avx2,-f16c", for people.
  std::string Summary() const;
  // Names every field above that changes generated code, so neither `variant` nor `rates`; part of
  // the kernel cache's key.
  std::string CacheKey() const;
  // Names the kind of hardware for which a schedule was measured (server/tuner): equal on all
  // machines that run a kernel equally fast. Contains only what the device reports, so neither
  // costs nor limits that Kiln sets, nor versions of a compiler or a language: a new version of
  // Kiln must find what an earlier one has measured. Stored for years.
  std::string HardwareKey() const;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_TARGET_H_
