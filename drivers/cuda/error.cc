#include "drivers/cuda/error.h"

#include "absl/strings/str_cat.h"

namespace kiln::drivers::cuda {

std::string ErrorName(const Library& cuda, CUresult code) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuda.GetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr)
    return absl::StrCat("the error ", static_cast<int>(code));
  const std::string named = absl::StrCat(name, " (", static_cast<int>(code), ")");
  if (cuda.GetErrorString(code, &text) != CUDA_SUCCESS || text == nullptr) return named;
  return absl::StrCat(named, ": ", text);
}

absl::Status ToStatus(const Library& cuda, absl::string_view what, CUresult code) {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", ErrorName(cuda, code));
  if (code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

bool MeansLost(CUresult code) {
  switch (code) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_INVALID_CONTEXT:  // it was valid when the driver made it
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

}  // namespace kiln::drivers::cuda
