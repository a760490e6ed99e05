// Builds programs into binaries for other processes to load.
#ifndef KILN_DRIVERS_OPENCL_PROGRAM_BUILDER_H_
#define KILN_DRIVERS_OPENCL_PROGRAM_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"
#include "drivers/opencl/context.h"
#include "drivers/opencl/device_query.h"

namespace kiln::drivers::opencl {

// The implementation of OpenClDriver::Finish. Not thread-safe.
class ProgramBuilder {
 public:
  // FAILED_PRECONDITION if the library is missing or has no devices.
  static absl::StatusOr<std::unique_ptr<ProgramBuilder>> Open(const std::string& library);

  absl::StatusOr<KernelImage> Build(const KernelImage& image, const Finisher& finisher);

 private:
  ProgramBuilder(std::shared_ptr<const Library> cl, std::vector<DeviceFacts> devices)
      : cl_(std::move(cl)), devices_(std::move(devices)) {}
  // Any of the matching devices: a binary for one works on all of them.
  absl::StatusOr<const DeviceFacts*> Find(const Finisher& finisher) const;
  // The device's context, which is kept for the next program.
  absl::StatusOr<std::shared_ptr<Context>> ContextOf(const DeviceFacts& facts);

  const std::shared_ptr<const Library> cl_;
  const std::vector<DeviceFacts> devices_;
  std::map<cl_device_id, std::shared_ptr<Context>> contexts_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_PROGRAM_BUILDER_H_
