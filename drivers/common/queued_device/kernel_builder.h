// Builds kernels into binaries for other processes to load (Driver::Finish).
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_KERNEL_BUILDER_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_KERNEL_BUILDER_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::drivers {

// A driver's class adds the vendor's compiler. Not thread-safe.
class KernelBuilder {
 public:
  virtual ~KernelBuilder() = default;
  // Errors: those of Driver::Finish.
  absl::StatusOr<KernelImage> Build(const KernelImage& image, const Finisher& finisher);

 protected:
  // `devices`: what each of this process's devices would be named by.
  explicit KernelBuilder(std::vector<Finisher> devices) : devices_(std::move(devices)) {}

 private:
  // The image, which is not finished, as what this device loads. Any of the matching devices: a
  // binary for one works on all of them.
  virtual absl::StatusOr<std::string> Binary(size_t device, const KernelImage& image) = 0;

  const std::vector<Finisher> devices_;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_KERNEL_BUILDER_H_
