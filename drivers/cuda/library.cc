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
  auto opened = OpenTable<Library>(name, "NVIDIA's driver", kRemedy);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<Library> library = *std::move(opened);
  if (const CUresult code = library->Init(0); code != CUDA_SUCCESS) {
    return absl::NotFoundError(
        absl::StrCat("CUDA cannot use any device (", ErrorName(*library, code),
                     "); check that nvidia-smi lists one and that kilnd may open /dev/nvidia*"));
  }
  int version = 0;
  if (library->DriverGetVersion(&version) != CUDA_SUCCESS || version < kVersionMin) {
    return absl::NotFoundError(absl::StrCat("NVIDIA's driver supports ", VersionName(version),
                                            "; Kiln needs ", VersionName(kVersionMin), "; ",
                                            kRemedy));
  }
  return library;
}

}  // namespace kiln::drivers::cuda
