#include "drivers/hsa/library.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/hsa/error.h"

namespace kiln::drivers::hsa {
namespace {

constexpr absl::string_view kRemedy = "install ROCm 5.4 or newer (the package hsa-rocr)";

}  // namespace

absl::StatusOr<std::shared_ptr<const Library>> Library::Open(const std::string& name) {
  auto opened = OpenTable<Library>(name, "AMD's HSA runtime", kRemedy);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<Library> library = *std::move(opened);
  // Without the kernel driver, the result is HSA_STATUS_ERROR_OUT_OF_RESOURCES.
  if (const hsa_status_t code = library->init(); code != HSA_STATUS_SUCCESS) {
    return absl::NotFoundError(absl::StrCat(
        "HSA cannot use any device (", ErrorName(*library, code),
        "); check that /dev/kfd exists and that kilnd may open it and /dev/dri/renderD*"));
  }
  library->initialised = true;
  uint64_t frequency = 0;
  if (library->system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency) ==
          HSA_STATUS_SUCCESS &&
      frequency > 0) {
    library->ticks_per_second = static_cast<double>(frequency);
  }
  return library;
}

Library::~Library() {
  if (initialised) shut_down();
}

}  // namespace kiln::drivers::hsa
