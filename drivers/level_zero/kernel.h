// A kernel that Level Zero has made from SPIR-V, or from the binary of a finished image.
#ifndef KILN_DRIVERS_LEVEL_ZERO_KERNEL_H_
#define KILN_DRIVERS_LEVEL_ZERO_KERNEL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/interface/device.h"
#include "drivers/level_zero/context.h"

namespace kiln::drivers::level_zero {

class LevelZeroKernel : public QueuedKernel {
 public:
  // INVALID_ARGUMENT: the image is for another architecture, needs more than the device has, or its
  // module does not build; the message then ends with the compiler's log, shortened.
  // FinishedRefused if the device rejects its binary.
  static absl::StatusOr<std::unique_ptr<LevelZeroKernel>> Load(std::shared_ptr<Context> context,
                                                               const KernelImage& image);
  ~LevelZeroKernel() override;

  // Its arguments may only be set by one thread, the device's submission thread.
  ze_kernel_handle_t function() const { return function_; }

  // The binary from which a device of this kind, with this driver version, loads the kernel without
  // compiling. UNIMPLEMENTED if the driver gives no binaries.
  absl::StatusOr<std::string> Binary() const;

 private:
  LevelZeroKernel(std::shared_ptr<Context> context, const KernelImage& image)
      : QueuedKernel(context.get(), image), context_(std::move(context)) {}
  absl::Status Build();
  absl::Status MakeFunction();
  absl::Status CheckFunction() const;

  const std::shared_ptr<Context> context_;
  ze_module_handle_t module_ = nullptr;
  ze_kernel_handle_t function_ = nullptr;
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_KERNEL_H_
