#include "drivers/cuda/library.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/cuda/error.h"

namespace kiln::drivers::cuda {
namespace {

constexpr int kVersionMin = 12000;  // CUDA 12.0
constexpr absl::string_view kRemedy = "install NVIDIA's driver 525 or a newer one";

std::string VersionName(int version) {
  return absl::StrCat("CUDA ", version / 1000, ".", version % 1000 / 10);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Library>> Library::Open(const std::string& name) {
  auto opened = DynamicLibrary::Open(name);
  if (!opened.ok()) {
    return absl::NotFoundError(absl::StrCat("NVIDIA's driver is not installed (",
                                            opened.status().message(), "); ", kRemedy));
  }
  auto library = std::make_shared<Library>();
  library->library = *std::move(opened);
  absl::Status status;
#define KILN_CUDA_FIND(function) \
  if (status.ok()) status = library->library->Find("cu" #function, &library->function)
  KILN_CUDA_FUNCTIONS(KILN_CUDA_FIND);
#undef KILN_CUDA_FIND
  if (!status.ok()) {
    return absl::NotFoundError(
        absl::StrCat("NVIDIA's driver is too old (", status.message(), "); ", kRemedy));
  }
  if (const CUresult code = library->Init(0); code != CUDA_SUCCESS) {
    return absl::NotFoundError(
        absl::StrCat("CUDA cannot use any device (", ErrorName(*library, code),
                     "); check that nvidia-smi lists one and that kilnd may open /dev/nvidia*"));
  }
  int version = 0;
  if (library->DriverGetVersion(&version) != CUDA_SUCCESS || version < kVersionMin) {
    return absl::NotFoundError(absl::StrCat("NVIDIA's driver supports CUDA ", VersionName(version),
                                            "; Kiln needs ", VersionName(kVersionMin), "; ",
                                            kRemedy));
  }
  return library;
}

}  // namespace kiln::drivers::cuda
