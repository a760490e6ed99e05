#include "drivers/opencl/library.h"

#include <utility>

namespace kiln::drivers::opencl {

absl::StatusOr<std::shared_ptr<const Library>> Library::Open(const std::string& name) {
  auto opened = DynamicLibrary::Open(name);
  if (!opened.ok()) return opened.status();
  auto library = std::make_shared<Library>();
  library->library = *std::move(opened);
  absl::Status status;
#define KILN_OPENCL_FIND(function) \
  if (status.ok()) status = library->library->Find("cl" #function, &library->function)
  KILN_OPENCL_FUNCTIONS(KILN_OPENCL_FIND);
#undef KILN_OPENCL_FIND
  if (!status.ok()) return status;
  return library;
}

}  // namespace kiln::drivers::opencl
