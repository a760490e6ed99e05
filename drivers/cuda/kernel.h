// A kernel that CUDA has assembled and loaded.
#ifndef KILN_DRIVERS_CUDA_KERNEL_H_
#define KILN_DRIVERS_CUDA_KERNEL_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/cuda/context.h"
#include "drivers/interface/device.h"

namespace kiln::drivers::cuda {

class CudaKernel : public QueuedKernel {
 public:
  // INVALID_ARGUMENT: the image is for another architecture, needs more than the device has, or
  // CUDA rejects its code; the message then ends with CUDA's log, shortened.
  static absl::StatusOr<std::unique_ptr<CudaKernel>> Load(std::shared_ptr<Context> context,
                                                          const Target& target,
                                                          const KernelImage& image);
  ~CudaKernel() override;

  CUfunction function() const { return function_; }

 private:
  CudaKernel(std::shared_ptr<Context> context, const KernelImage& image)
      : QueuedKernel(context.get(), image), context_(std::move(context)) {}
  absl::Status LoadModule();
  absl::Status CheckFunction(const Limits& limits) const;

  const std::shared_ptr<Context> context_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_KERNEL_H_
