#include "drivers/opencl/library.h"

#include <utility>

namespace kiln::drivers::opencl {

absl::StatusOr<std::shared_ptr<const Library>> Library::Open(const std::string& name) {
  auto opened = DynamicLibrary::Open(name);
  if (!opened.ok()) return opened.status();
  const auto library = std::make_shared<const Library>(*std::move(opened));
  if (!library->status().ok()) return library->status();
  return library;
}

}  // namespace kiln::drivers::opencl
