// The interface through which the compiler delegates the making of kernels' images.
#ifndef KILN_COMPILER_WORKERS_KERNEL_COMPILER_H_
#define KILN_COMPILER_WORKERS_KERNEL_COMPILER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::workers {

// Decisions that were not the compiler's own, made in a worker before they are made in the process
// that asked: an invariant that they violate ends only the worker. Either about the part of a
// program that `graph` is, or about KernelJob::kernel.
struct Rehearsal {
  std::string graph;    // graph::Print, before the pass "normalize"; empty: it is about the kernel
  std::string key;      // partition::GraphKey of what that pass and the next make of it
  std::string choices;  // partition::Print
  std::vector<std::string> disabled_passes;
  std::string setting;  // search::Print, for the kernel
};

// All inputs of an image, as text and plain data, so that they can be sent to another process.
struct KernelJob {
  std::string name;
  std::string kernel;    // kernel::Print
  std::string schedule;  // schedule::Print
  drivers::Target target;
  // If set, an image made from these inputs that target.finisher is to finish; `kernel` and
  // `schedule` are then empty.
  std::optional<drivers::KernelImage> unfinished = std::nullopt;
  // If set, the answer is an image without code, or why these decisions cannot be made.
  std::optional<Rehearsal> rehearsal = std::nullopt;
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
