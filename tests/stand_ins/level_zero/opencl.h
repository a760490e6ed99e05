// An OpenCL runtime that takes SPIR-V, on which the stand-in runs its kernels: Intel's for
// processors, which tests/intel_opencl downloads.
#ifndef KILN_TESTS_STAND_INS_LEVEL_ZERO_OPENCL_H_
#define KILN_TESTS_STAND_INS_LEVEL_ZERO_OPENCL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln::stand_ins::level_zero {

struct OpenClApi;

// A kernel argument: a number, or an address of memory.
struct OpenClArgument {
  std::vector<uint8_t> bytes;
  bool is_pointer = false;
};

// Thread-safe.
class OpenClProgram {
 public:
  virtual ~OpenClProgram() = default;
  // Runs a kernel to its end. Returns the error, else empty.
  virtual std::string Run(const std::string& kernel, const std::vector<OpenClArgument>& arguments,
                          size_t groups, size_t group_size) = 0;
};

// Thread-safe; one object for the process.
class OpenClRuntime {
 public:
  virtual ~OpenClRuntime() = default;
  // Returns null, with the compiler's log, on failure. Disables optimization, which miscompiles
  // some kernels (drivers/opencl/README.md).
  virtual std::unique_ptr<OpenClProgram> Build(const std::string& spirv, const std::string& options,
                                               std::string* log) = 0;
};

// Null if there is none, with the reason.
OpenClRuntime* FindOpenClRuntime(std::string* why_none);

}  // namespace kiln::stand_ins::level_zero

#endif  // KILN_TESTS_STAND_INS_LEVEL_ZERO_OPENCL_H_
