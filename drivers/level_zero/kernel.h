// A kernel that Level Zero has made of SPIR-V, or of the binary that an image was finished with.
#ifndef KILN_DRIVERS_LEVEL_ZERO_KERNEL_H_
#define KILN_DRIVERS_LEVEL_ZERO_KERNEL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/interface/device.h"
#include "drivers/level_zero/context.h"

namespace kiln::drivers::level_zero {

class LevelZeroKernel : public LoadedKernel {
 public:
  // INVALID_ARGUMENT: the image is for another architecture, asks for more than the device has, or
  // its module does not build; the message then ends with what the compiler said, shortened.
  // FinishedRefused if the device does not take its binary.
  static absl::StatusOr<std::unique_ptr<LevelZeroKernel>> Load(std::shared_ptr<Context> context,
                                                               const KernelImage& image);
  ~LevelZeroKernel() override;

  const KernelImage& image() const override { return image_; }
  const Context* context() const { return context_.get(); }
  // Its arguments are whose who sets them: the device's submission thread.
  ze_kernel_handle_t function() const { return function_; }

  // What a device of this kind, with this version of the driver, makes the kernel from without
  // compiling. UNIMPLEMENTED if this one gives no binaries.
  absl::StatusOr<std::string> Binary() const;

 private:
  LevelZeroKernel(std::shared_ptr<Context> context, const KernelImage& image)
      : context_(std::move(context)), image_(image) {}
  absl::Status Build();
  absl::Status MakeFunction();
  absl::Status CheckFunction() const;

  const std::shared_ptr<Context> context_;
  const KernelImage image_;
  ze_module_handle_t module_ = nullptr;
  ze_kernel_handle_t function_ = nullptr;
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_KERNEL_H_
