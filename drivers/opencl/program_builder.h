// Builds programs with the compilers of OpenCL's platforms.
#ifndef KILN_DRIVERS_OPENCL_PROGRAM_BUILDER_H_
#define KILN_DRIVERS_OPENCL_PROGRAM_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "drivers/common/queued_device/kernel_builder.h"
#include "drivers/opencl/context.h"
#include "drivers/opencl/device_query.h"

namespace kiln::drivers::opencl {

class ProgramBuilder : public KernelBuilder {
 public:
  // FAILED_PRECONDITION if the library is missing or has no devices.
  static absl::StatusOr<std::unique_ptr<KernelBuilder>> Open(const std::string& library);

 private:
  ProgramBuilder(std::shared_ptr<const Library> cl, std::vector<DeviceFacts> devices);
  absl::StatusOr<std::string> Binary(size_t device, const KernelImage& image) override;

  const std::shared_ptr<const Library> cl_;
  const std::vector<DeviceFacts> devices_;
  std::map<size_t, std::shared_ptr<Context>> contexts_;  // by device; kept for the next program
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_PROGRAM_BUILDER_H_
