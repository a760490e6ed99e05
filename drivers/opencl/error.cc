#include "drivers/opencl/error.h"

#include "absl/strings/str_cat.h"
#include "drivers/opencl/command_buffer.h"

namespace kiln::drivers::opencl {
namespace {

struct NamedCode {
  cl_int code;
  absl::string_view name;
};

// The codes that the driver's calls may return.
#define KILN_NAMED(code) \
  { code, #code }
constexpr NamedCode kCodes[] = {
    KILN_NAMED(CL_DEVICE_NOT_FOUND),
    KILN_NAMED(CL_DEVICE_NOT_AVAILABLE),
    KILN_NAMED(CL_COMPILER_NOT_AVAILABLE),
    KILN_NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    KILN_NAMED(CL_OUT_OF_RESOURCES),
    KILN_NAMED(CL_OUT_OF_HOST_MEMORY),
    KILN_NAMED(CL_PROFILING_INFO_NOT_AVAILABLE),
    KILN_NAMED(CL_MEM_COPY_OVERLAP),
    KILN_NAMED(CL_BUILD_PROGRAM_FAILURE),
    KILN_NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    KILN_NAMED(CL_INVALID_VALUE),
    KILN_NAMED(CL_INVALID_BINARY),
    KILN_NAMED(CL_INVALID_DEVICE),
    KILN_NAMED(CL_INVALID_CONTEXT),
    KILN_NAMED(CL_INVALID_COMMAND_QUEUE),
    KILN_NAMED(CL_INVALID_BUILD_OPTIONS),
    KILN_NAMED(CL_INVALID_PROGRAM),
    KILN_NAMED(CL_INVALID_PROGRAM_EXECUTABLE),
    KILN_NAMED(CL_INVALID_KERNEL),
    KILN_NAMED(CL_INVALID_ARG_INDEX),
    KILN_NAMED(CL_INVALID_ARG_VALUE),
    KILN_NAMED(CL_INVALID_KERNEL_ARGS),
    KILN_NAMED(CL_INVALID_WORK_GROUP_SIZE),
    KILN_NAMED(CL_INVALID_WORK_ITEM_SIZE),
    KILN_NAMED(CL_INVALID_EVENT),
    KILN_NAMED(CL_INVALID_OPERATION),
    KILN_NAMED(CL_INVALID_GLOBAL_WORK_SIZE),
    KILN_NAMED(CL_INVALID_COMMAND_BUFFER_KHR),
    KILN_NAMED(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR),
    KILN_NAMED(CL_INCOMPATIBLE_COMMAND_QUEUE_KHR),
};
#undef KILN_NAMED

}  // namespace

std::string ErrorName(cl_int code) {
  for (const NamedCode& known : kCodes) {
    if (known.code == code) return absl::StrCat(known.name, " (", code, ")");
  }
  return absl::StrCat("the error ", code);
}

absl::Status ToStatus(absl::string_view what, cl_int code) {
  if (code == CL_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", ErrorName(code));
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

bool MeansLost(cl_int code) {
  switch (code) {
    // These were valid when the driver made them, so the device is lost.
    case CL_INVALID_DEVICE:
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_DEVICE_NOT_AVAILABLE:
      return true;
    default:
      return false;
  }
}

}  // namespace kiln::drivers::opencl
