// Translation of OpenCL's error codes.
#ifndef KILN_DRIVERS_OPENCL_ERROR_H_
#define KILN_DRIVERS_OPENCL_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "drivers/opencl/library.h"

namespace kiln::drivers::opencl {

// "CL_OUT_OF_RESOURCES (-5)".
std::string ErrorName(cl_int code);

// OK for CL_SUCCESS, RESOURCE_EXHAUSTED for lack of memory, else INTERNAL. `what` describes the
// failed action: "clFinish" or "cannot launch softmax".
absl::Status ToStatus(absl::string_view what, cl_int code);

// Whether this code alone means that the device is permanently broken.
bool MeansLost(cl_int code);

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_ERROR_H_
