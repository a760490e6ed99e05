// A kernel that does nothing.
#ifndef KILN_DRIVERS_NULL_KERNEL_H_
#define KILN_DRIVERS_NULL_KERNEL_H_

#include "drivers/interface/device.h"

namespace kiln::drivers::null {

class NullKernel : public LoadedKernel {
 public:
  explicit NullKernel(const KernelImage& image) : image_(image) {}
  const KernelImage& image() const override { return image_; }

 private:
  const KernelImage image_;
};

}  // namespace kiln::drivers::null

#endif  // KILN_DRIVERS_NULL_KERNEL_H_
