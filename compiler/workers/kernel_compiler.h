// Who makes kernels' images where the compiler does not do it itself.
#ifndef KILN_COMPILER_WORKERS_KERNEL_COMPILER_H_
#define KILN_COMPILER_WORKERS_KERNEL_COMPILER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::workers {

// All that an image is made of, as text and plain data, so that it can cross into another process.
struct KernelJob {
  std::string name;
  std::string kernel;    // kernel::Print
  std::string schedule;  // schedule::Print
  drivers::Target target;
  // An image that was made of these, and that target.finisher is to finish; kernel and schedule are
  // then empty.
  std::optional<drivers::KernelImage> unfinished = std::nullopt;
  // Called on the caller's thread when a worker begins with it, again where another has to. May be
  // null; it stays in this process.
  std::function<void()> on_begin = nullptr;
};

// compiler::CompileJob, a driver's Finish, or a test's.
using CompileFunction = std::function<absl::StatusOr<drivers::KernelImage>(const KernelJob&)>;

class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  // The image, or the error with its payloads, as a CompileFunction gives them; an implementation
  // may add errors of its own. Thread-safe.
  virtual absl::StatusOr<drivers::KernelImage> Compile(const KernelJob& job) = 0;
};

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_KERNEL_COMPILER_H_
