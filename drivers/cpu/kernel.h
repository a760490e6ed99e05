// A kernel's machine code in executable memory.
#ifndef KILN_DRIVERS_CPU_KERNEL_H_
#define KILN_DRIVERS_CPU_KERNEL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "drivers/interface/device.h"

namespace kiln::drivers::cpu {

using KernelFunction = void (*)(void* const* arguments, int64_t grid_begin, int64_t grid_end,
                                void* scratch);

// The pages are either writable or executable, never both.
class CpuKernel : public LoadedKernel {
 public:
  // INVALID_ARGUMENT: the image is for another architecture, its entry is outside its code, or it
  // needs more scratch than a thread has.
  static absl::StatusOr<std::unique_ptr<CpuKernel>> Load(const KernelImage& image);
  ~CpuKernel() override;

  const KernelImage& image() const override { return image_; }
  KernelFunction function() const { return function_; }

 private:
  explicit CpuKernel(const KernelImage& image) : image_(image) {}

  const KernelImage image_;
  void* memory_ = nullptr;
  int64_t mapped_bytes_ = 0;
  KernelFunction function_ = nullptr;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_KERNEL_H_
