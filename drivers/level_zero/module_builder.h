// Builds modules into binaries for other processes to load.
#ifndef KILN_DRIVERS_LEVEL_ZERO_MODULE_BUILDER_H_
#define KILN_DRIVERS_LEVEL_ZERO_MODULE_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"
#include "drivers/level_zero/context.h"
#include "drivers/level_zero/device_query.h"

namespace kiln::drivers::level_zero {

// The implementation of LevelZeroDriver::Finish. Not thread-safe.
class ModuleBuilder {
 public:
  // FAILED_PRECONDITION if the library is missing or has no devices.
  static absl::StatusOr<std::unique_ptr<ModuleBuilder>> Open(const std::string& library);

  absl::StatusOr<KernelImage> Build(const KernelImage& image, const Finisher& finisher);

 private:
  ModuleBuilder(std::shared_ptr<const Library> ze, std::vector<DeviceFacts> devices)
      : ze_(std::move(ze)), devices_(std::move(devices)) {}
  // Any of the matching devices: a binary for one works on all of them.
  absl::StatusOr<const DeviceFacts*> Find(const Finisher& finisher) const;
  // The device's context, which is kept for the next module.
  absl::StatusOr<std::shared_ptr<Context>> ContextOf(const DeviceFacts& facts);

  const std::shared_ptr<const Library> ze_;
  const std::vector<DeviceFacts> devices_;
  std::map<ze_device_handle_t, std::shared_ptr<Context>> contexts_;
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_MODULE_BUILDER_H_
