#include "drivers/common/dynamic_library.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::drivers {

absl::StatusOr<std::unique_ptr<DynamicLibrary>> DynamicLibrary::Open(const std::string& name) {
  // RTLD_NOW, so that a library with missing symbols fails here and not in the middle of a call;
  // RTLD_LOCAL, so that two vendors' libraries do not see each other's symbols. See dlopen(3).
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr)
    return absl::NotFoundError(absl::StrCat("cannot open ", name, ": ", dlerror()));
  return std::unique_ptr<DynamicLibrary>(new DynamicLibrary(name, handle));
}

DynamicLibrary::DynamicLibrary(std::string name, void* handle)
    : name_(std::move(name)), handle_(handle) {}

DynamicLibrary::~DynamicLibrary() { dlclose(handle_); }

absl::StatusOr<void*> DynamicLibrary::Address(const std::string& symbol) const {
  void* address = dlsym(handle_, symbol.c_str());
  if (address == nullptr)
    return absl::NotFoundError(absl::StrCat(name_, " has no symbol ", symbol));
  return address;
}

}  // namespace kiln::drivers
