// A kernel built from its source, or from the binary of a finished image.
#ifndef KILN_DRIVERS_OPENCL_KERNEL_H_
#define KILN_DRIVERS_OPENCL_KERNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/interface/device.h"
#include "drivers/opencl/context.h"
#include "drivers/opencl/device_query.h"

namespace kiln::drivers::opencl {

class OpenClKernel : public QueuedKernel {
 public:
  // INVALID_ARGUMENT: the image is for another architecture, needs more than the device has, or its
  // source does not compile; the message then ends with the compiler's log, shortened.
  // FinishedRefused if the device rejects its binary.
  static absl::StatusOr<std::unique_ptr<OpenClKernel>> Load(std::shared_ptr<Context> context,
                                                            const DeviceFacts& facts,
                                                            const KernelImage& image);

  // The binary from which a device of this kind, with this driver version, loads the kernel without
  // compiling. UNIMPLEMENTED if the driver gives no binaries.
  absl::StatusOr<std::string> Binary() const;

  // Another object for the same function, with separate arguments.
  absl::StatusOr<Handle<cl_kernel>> MakeFunction() const;

 private:
  OpenClKernel(std::shared_ptr<Context> context, const KernelImage& image)
      : QueuedKernel(context.get(), image), context_(std::move(context)) {}
  absl::Status Build(const DeviceFacts& facts);
  absl::Status BuildFromBinary(const DeviceFacts& facts);
  absl::Status FindFunction();
  absl::Status CheckFunction(const DeviceFacts& facts) const;
  std::string BuildLog() const;

  const std::shared_ptr<Context> context_;
  Handle<cl_program> program_;
  std::string function_name_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_KERNEL_H_
