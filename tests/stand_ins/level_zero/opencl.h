// An OpenCL runtime that takes SPIR-V, on which the stand-in runs its kernels: Intel's for
// processors, which tests/intel_opencl fetches.
#ifndef KILN_TESTS_STAND_INS_LEVEL_ZERO_OPENCL_H_
#define KILN_TESTS_STAND_INS_LEVEL_ZERO_OPENCL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln::stand_ins::level_zero {

struct OpenClApi;

// An argument of a kernel: a number, or the address of memory.
struct OpenClArgument {
  std::vector<uint8_t> bytes;
  bool is_pointer = false;
};

// Thread-safe.
class OpenClProgram {
 public:
  virtual ~OpenClProgram() = default;
  // Runs a kernel to its end. Why it did not, else empty.
  virtual std::string Run(const std::string& kernel, const std::vector<OpenClArgument>& arguments,
                          size_t groups, size_t group_size) = 0;
};

// Thread-safe; one for the process.
class OpenClRuntime {
 public:
  virtual ~OpenClRuntime() = default;
  // Null with the compiler's log. Without its optimizations, which give some kernels of ours wrong
  // values (drivers/opencl/README.md).
  virtual std::unique_ptr<OpenClProgram> Build(const std::string& spirv, const std::string& options,
                                               std::string* log) = 0;
};

// Null where there is none, with the reason.
OpenClRuntime* FindOpenClRuntime(std::string* why_none);

}  // namespace kiln::stand_ins::level_zero

#endif  // KILN_TESTS_STAND_INS_LEVEL_ZERO_OPENCL_H_
