// The interface through which the compiler delegates the making of kernels' images.
#ifndef KILN_COMPILER_WORKERS_KERNEL_COMPILER_H_
#define KILN_COMPILER_WORKERS_KERNEL_COMPILER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::workers {

// All inputs of an image, as text and plain data, so that they can be sent to another process.
struct KernelJob {
  std::string name;
  std::string kernel;    // kernel::Print
  std::string schedule;  // schedule::Print
  drivers::Target target;
  // If set, an image made from these inputs that target.finisher is to finish; `kernel` and
  // `schedule` are then empty.
  std::optional<drivers::KernelImage> unfinished = std::nullopt;
  // Called on the caller's thread when a worker begins the job, and again if another worker retries
  // it. May be null; it is not sent to the worker.
  std::function<void()> on_begin = nullptr;
};

// compiler::CompileJob, a driver's Finish, or a test's function.
using CompileFunction = std::function<absl::StatusOr<drivers::KernelImage>(const KernelJob&)>;

class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  // Returns the image, or the error with its payloads, as a CompileFunction does; an implementation
  // may add its own errors. Thread-safe.
  virtual absl::StatusOr<drivers::KernelImage> Compile(const KernelJob& job) = 0;
};

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_KERNEL_COMPILER_H_
