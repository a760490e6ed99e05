// What CUDA's error codes mean to Kiln.
#ifndef KILN_DRIVERS_CUDA_ERROR_H_
#define KILN_DRIVERS_CUDA_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/cuda/library.h"

namespace kiln::drivers::cuda {

// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered", as the library has
// it.
std::string ErrorName(const Library& cuda, CUresult code);

// OK for CUDA_SUCCESS. RESOURCE_EXHAUSTED where memory was lacking, else INTERNAL. `what` was
// tried: "cannot launch the kernel softmax".
absl::Status ToStatus(const Library& cuda, absl::string_view what, CUresult code);

// Whether the code says that the context will not work again: NVIDIA calls such errors sticky.
bool MeansLost(CUresult code);

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_ERROR_H_
