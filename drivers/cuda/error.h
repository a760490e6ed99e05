// Translation of CUDA's error codes.
#ifndef KILN_DRIVERS_CUDA_ERROR_H_
#define KILN_DRIVERS_CUDA_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/cuda/library.h"

namespace kiln::drivers::cuda {

// The library's text: "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
std::string ErrorName(const Library& cuda, CUresult code);

// OK for CUDA_SUCCESS, RESOURCE_EXHAUSTED for lack of memory, else INTERNAL. `what` describes the
// failed action: "cannot launch the kernel softmax".
absl::Status ToStatus(const Library& cuda, absl::string_view what, CUresult code);

// Whether the context is permanently broken after this error (NVIDIA: a "sticky" error).
bool MeansLost(CUresult code);

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_ERROR_H_
