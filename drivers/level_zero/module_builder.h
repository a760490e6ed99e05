// Builds modules with the compiler of Level Zero's driver.
#ifndef KILN_DRIVERS_LEVEL_ZERO_MODULE_BUILDER_H_
#define KILN_DRIVERS_LEVEL_ZERO_MODULE_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/kernel_builder.h"
#include "drivers/level_zero/context.h"
#include "drivers/level_zero/device_query.h"

namespace kiln::drivers::level_zero {

class ModuleBuilder : public KernelBuilder {
 public:
  // FAILED_PRECONDITION if the library is missing or has no devices.
  static absl::StatusOr<std::unique_ptr<KernelBuilder>> Open(const std::string& library);

 private:
  ModuleBuilder(std::shared_ptr<const Library> ze, std::vector<DeviceFacts> devices);
  absl::StatusOr<std::string> Binary(size_t device, const KernelImage& image) override;

  const std::shared_ptr<const Library> ze_;
  const std::vector<DeviceFacts> devices_;
  std::map<size_t, std::shared_ptr<Context>> contexts_;  // by device; kept for the next module
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_MODULE_BUILDER_H_
