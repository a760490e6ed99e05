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
  auto opened = DynamicLibrary::Open(name);
  if (!opened.ok()) {
    return absl::NotFoundError(absl::StrCat("Level Zero's loader is not installed (",
                                            opened.status().message(), "); ", kRemedy));
  }
  auto library = std::make_shared<Library>();
  library->library = *std::move(opened);
  absl::Status status;
#define KILN_LEVEL_ZERO_FIND(function) \
  if (status.ok()) status = library->library->Find("ze" #function, &library->function)
  KILN_LEVEL_ZERO_FUNCTIONS(KILN_LEVEL_ZERO_FIND);
#undef KILN_LEVEL_ZERO_FIND
  if (!status.ok()) {
    return absl::NotFoundError(
        absl::StrCat("Level Zero's loader is too old (", status.message(), "); ", kRemedy));
  }
  if (const ze_result_t code = library->Init(ZE_INIT_FLAG_GPU_ONLY); code != ZE_RESULT_SUCCESS) {
    return absl::NotFoundError(absl::StrCat(
        "Level Zero cannot use any GPU (", ErrorName(code),
        "); check that Intel's driver is installed and that kilnd may open /dev/dri/renderD*"));
  }
  return library;
}

}  // namespace kiln::drivers::level_zero
