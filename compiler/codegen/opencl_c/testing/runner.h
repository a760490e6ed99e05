// Runs printed kernels on an OpenCL device, for tests.
#ifndef KILN_COMPILER_CODEGEN_OPENCL_C_TESTING_RUNNER_H_
#define KILN_COMPILER_CODEGEN_OPENCL_C_TESTING_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/codegen/opencl_c/source.h"

namespace kiln::codegen {

// Not thread-safe.
class OpenClRunner {
 public:
  // Opens the first device of libOpenCL.so.1's first platform whose name contains `platform`.
  // NOT_FOUND says what is missing.
  static absl::StatusOr<std::unique_ptr<OpenClRunner>> Open(const std::string& platform);
  ~OpenClRunner();

  // Returns for example "OpenCL 3.0 PoCL …, a processor's name, the platform's name".
  std::string DeviceName() const;
  bool HasFloat64() const;

  // Compiles the output of PrintSource and runs it: for each task a block of `threads`, or, if that
  // is 1, a work-item for each task and one more, which must do nothing. Each argument holds a
  // buffer's content before and after. Returns INTERNAL with the compiler's messages, for a failed
  // call, or for a write past the end of a buffer.
  absl::Status Run(const std::string& source, int64_t tasks, int threads,
                   absl::Span<std::vector<uint8_t>* const> arguments);

 private:
  struct Impl;
  explicit OpenClRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_OPENCL_C_TESTING_RUNNER_H_
