#include "drivers/level_zero/library.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/level_zero/error.h"

namespace kiln::drivers::level_zero {
namespace {

constexpr absl::string_view kRemedy =
    "install libze1 and Intel's driver for Level Zero (intel-level-zero-gpu)";

}  // namespace

absl::StatusOr<std::shared_ptr<const Library>> Library::Open(const std::string& name) {
  auto opened = OpenTable<Library>(name, "Level Zero's loader", kRemedy);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<Library> library = *std::move(opened);
  if (const ze_result_t code = library->Init(ZE_INIT_FLAG_GPU_ONLY); code != ZE_RESULT_SUCCESS) {
    return absl::NotFoundError(absl::StrCat(
        "Level Zero cannot use any GPU (", ErrorName(code),
        "); check that Intel's driver is installed and that kilnd may open /dev/dri/renderD*"));
  }
  return library;
}

}  // namespace kiln::drivers::level_zero
