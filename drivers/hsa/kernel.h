// A kernel of a code object that the HSA runtime has loaded.
#ifndef KILN_DRIVERS_HSA_KERNEL_H_
#define KILN_DRIVERS_HSA_KERNEL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "drivers/hsa/context.h"
#include "drivers/interface/device.h"

namespace kiln::drivers::hsa {

class HsaKernel : public QueuedKernel {
 public:
  // INVALID_ARGUMENT: the image is for another architecture, needs more than the device has, or HSA
  // rejects its code object.
  static absl::StatusOr<std::unique_ptr<HsaKernel>> Load(std::shared_ptr<Context> context,
                                                         const KernelImage& image);
  ~HsaKernel() override;

  // Values for its dispatch packets.
  uint64_t object() const { return object_; }
  uint32_t group_bytes() const { return group_bytes_; }
  uint32_t private_bytes() const { return private_bytes_; }
  // Bytes of its parameters, which are numbers of 64 bits.
  int64_t argument_bytes() const { return 8 * int64_t{image().num_parameters()}; }

 private:
  HsaKernel(std::shared_ptr<Context> context, const KernelImage& image)
      : QueuedKernel(context.get(), image), context_(std::move(context)) {}
  absl::Status LoadCode(hsa_code_object_reader_t reader);
  absl::Status CheckSymbol(hsa_executable_symbol_t symbol, const Limits& limits);

  const std::shared_ptr<Context> context_;
  hsa_executable_t executable_ = {};
  hsa_executable_symbol_t symbol_ = {};
  uint64_t object_ = 0;
  uint32_t group_bytes_ = 0;
  uint32_t private_bytes_ = 0;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_KERNEL_H_
