// A kernel that was built from its source, or from the binary that an image was finished with.
#ifndef KILN_DRIVERS_OPENCL_KERNEL_H_
#define KILN_DRIVERS_OPENCL_KERNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "drivers/interface/device.h"
#include "drivers/opencl/context.h"
#include "drivers/opencl/device_query.h"

namespace kiln::drivers::opencl {

class OpenClKernel : public LoadedKernel {
 public:
  // INVALID_ARGUMENT: the image is for another architecture, asks for more than the device has, or
  // its source does not compile; the message then ends with what the compiler said, shortened.
  // FinishedRefused if the device does not take its binary.
  static absl::StatusOr<std::unique_ptr<OpenClKernel>> Load(std::shared_ptr<Context> context,
                                                            const DeviceFacts& facts,
                                                            const KernelImage& image);

  const KernelImage& image() const override { return image_; }
  const Context* context() const { return context_.get(); }

  // What a device of this kind, with this version of the driver, makes the kernel from without
  // compiling. UNIMPLEMENTED if this one gives no binaries.
  absl::StatusOr<std::string> Binary() const;

  // Another object for the same function, with arguments of its own.
  absl::StatusOr<Handle<cl_kernel>> MakeFunction() const;

 private:
  OpenClKernel(std::shared_ptr<Context> context, const KernelImage& image)
      : context_(std::move(context)), image_(image) {}
  absl::Status Build(const DeviceFacts& facts);
  absl::Status BuildFromBinary(const DeviceFacts& facts);
  absl::Status FindFunction();
  absl::Status CheckFunction(const DeviceFacts& facts) const;
  std::string BuildLog() const;

  const std::shared_ptr<Context> context_;
  const KernelImage image_;
  Handle<cl_program> program_;
  std::string function_name_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_KERNEL_H_
