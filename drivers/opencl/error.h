// What OpenCL's error codes mean to Kiln.
#ifndef KILN_DRIVERS_OPENCL_ERROR_H_
#define KILN_DRIVERS_OPENCL_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/opencl/library.h"

namespace kiln::drivers::opencl {

// "CL_OUT_OF_RESOURCES (-5)".
std::string ErrorName(cl_int code);

// OK for CL_SUCCESS. RESOURCE_EXHAUSTED where memory was lacking, else INTERNAL. `what` was tried:
// "clFinish" or "cannot launch softmax".
absl::Status ToStatus(absl::string_view what, cl_int code);

// Whether the code alone says that the device will not work again.
bool MeansLost(cl_int code);

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_ERROR_H_
