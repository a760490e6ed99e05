// Modules from SPIR-V or in the stand-in's own format, and kernels.
#include <algorithm>
#include <cstring>

#include "tests/stand_ins/level_zero/objects.h"

namespace kiln::drivers::level_zero {
namespace {

using stand_ins::level_zero::ReadSpirv;

// A native module: this magic, the driver's version, and the SPIR-V.
constexpr char kNativeMagic[] = "KILNZEB";

std::string NativeHeader() {
  std::string header(kNativeMagic, sizeof(kNativeMagic));
  header += std::to_string(TheControl().driver_version.load());
  header.resize(16);
  return header;
}

// The SPIR-V of a native module; empty: it is not a native module of this version.
std::string SpirvOfNative(const std::string& binary) {
  const std::string header = NativeHeader();
  return binary.compare(0, header.size(), header) == 0 ? binary.substr(header.size()) : "";
}

ze_result_t GiveLog(const std::string& text, ze_module_build_log_handle_t* log,
                    ze_result_t answer) {
  if (log != nullptr) *log = TheRuntime().logs.Add(std::make_shared<BuildLog>(BuildLog{text}));
  return answer;
}

ze_result_t MakeModule(std::shared_ptr<Context> context, int device, const ze_module_desc_t& desc,
                       ze_module_handle_t* made, ze_module_build_log_handle_t* log) {
  Control& control = TheControl();
  auto module = std::make_shared<Module>();
  module->context = std::move(context);
  module->device = device;
  module->spirv.assign(reinterpret_cast<const char*>(desc.pInputModule), desc.inputSize);
  const bool is_native = desc.format == ZE_MODULE_FORMAT_NATIVE;
  if (is_native) module->spirv = SpirvOfNative(module->spirv);
  if (is_native && module->spirv.empty())
    return GiveLog("another version's", log, ZE_RESULT_ERROR_INVALID_NATIVE_BINARY);
  std::string why = ReadSpirv(module->spirv, &module->facts);
  if (why.empty() && static_cast<int>(module->facts.minor_version) > control.spirv_minor)
    why = "it is of a newer version of SPIR-V";
  if (!is_native && control.next_build_fails.exchange(false)) why = "line 1: wrong";
  if (why.empty() && !control.host_kernels) {
    const std::string options = desc.pBuildFlags == nullptr ? "" : desc.pBuildFlags;
    module->program = TheRuntime().opencl->Build(module->spirv, options, &why);
    if (module->program != nullptr) why.clear();
  }
  if (!why.empty()) return GiveLog(why, log, ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
  ++(is_native ? control.binaries_loaded : control.modules_built);
  *made = TheRuntime().modules.Add(std::move(module));
  return GiveLog("", log, ZE_RESULT_SUCCESS);
}

// Calls `body`(Module&) for a live module.
template <typename Body>
ze_result_t OfModule(const char* call, ze_module_handle_t handle, Body body) {
  return Guarded(call, [&](Lock&) {
    const auto module = TheRuntime().modules.Find(handle);
    if (module == nullptr)
      return Mistake(std::string(call) + " of no module", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    return body(module);
  });
}
template <typename Body>
ze_result_t OfKernel(const char* call, ze_kernel_handle_t handle, Body body) {
  return Guarded(call, [&](Lock&) {
    const auto kernel = TheRuntime().kernels.Find(handle);
    if (kernel == nullptr)
      return Mistake(std::string(call) + " of no kernel", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    return body(*kernel);
  });
}

// A pointer argument must lead to known memory.
bool IsPointerOf(const Kernel& kernel, const void* value) {
  char* pointer = nullptr;
  std::memcpy(&pointer, value, sizeof(pointer));
  return pointer == nullptr || FindAllocation(*kernel.module->context, pointer, 0) != nullptr;
}

}  // namespace

extern "C" {

ze_result_t zeModuleCreate(ze_context_handle_t context, ze_device_handle_t device,
                           const ze_module_desc_t* desc, ze_module_handle_t* module,
                           ze_module_build_log_handle_t* log) {
  return Guarded("zeModuleCreate", [&](Lock&) {
    const auto found = TheRuntime().contexts.Find(context);
    const int number = DeviceOf(device);
    if (found == nullptr || number < 0 || desc == nullptr ||
        desc->stype != ZE_STRUCTURE_TYPE_MODULE_DESC || desc->inputSize == 0 ||
        desc->pInputModule == nullptr || desc->pConstants != nullptr) {
      return Mistake("zeModuleCreate with no context, device, code or with another structure",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    if (const ze_result_t answer = AnswerOf(*found, number); answer != ZE_RESULT_SUCCESS)
      return answer;
    return MakeModule(found, number, *desc, module, log);
  });
}

ze_result_t zeModuleDestroy(ze_module_handle_t module) {
  return OfModule("zeModuleDestroy", module, [&](const std::shared_ptr<Module>& found) {
    bool has_kernels = false;
    TheRuntime().kernels.ForEach(
        [&](const Kernel& kernel) { has_kernels |= kernel.module == found; });
    if (has_kernels)
      return Mistake("zeModuleDestroy of a module with kernels",
                     ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    TheRuntime().modules.Remove(module);
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeModuleBuildLogDestroy(ze_module_build_log_handle_t log) {
  return Guarded("zeModuleBuildLogDestroy", [&](Lock&) {
    if (TheRuntime().logs.Remove(log)) return ZE_RESULT_SUCCESS;
    return Mistake("zeModuleBuildLogDestroy of no log", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
  });
}

ze_result_t zeModuleBuildLogGetString(ze_module_build_log_handle_t log, size_t* bytes, char* text) {
  return Guarded("zeModuleBuildLogGetString", [&](Lock&) {
    const auto found = TheRuntime().logs.Find(log);
    if (found == nullptr)
      return Mistake("zeModuleBuildLogGetString of no log", ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    const size_t size = found->text.size() + 1;
    if (text != nullptr) std::copy_n(found->text.c_str(), std::min(*bytes, size), text);
    *bytes = size;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeModuleGetNativeBinary(ze_module_handle_t module, size_t* bytes, uint8_t* binary) {
  return OfModule("zeModuleGetNativeBinary", module, [&](const std::shared_ptr<Module>& found) {
    if (!TheControl().gives_binaries) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    const std::string native = NativeHeader() + found->spirv;
    if (binary != nullptr && *bytes < native.size()) {
      return Mistake("zeModuleGetNativeBinary into too few bytes", ZE_RESULT_ERROR_INVALID_SIZE);
    }
    if (binary != nullptr) std::memcpy(binary, native.data(), native.size());
    *bytes = native.size();
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeModuleGetKernelNames(ze_module_handle_t module, uint32_t* count, const char** names) {
  return OfModule("zeModuleGetKernelNames", module, [&](const std::shared_ptr<Module>& found) {
    const std::vector<EntryPoint>& entries = found->facts.entry_points;
    const auto there = static_cast<uint32_t>(entries.size());
    const uint32_t wanted = names == nullptr ? 0 : std::min(*count, there);
    for (uint32_t i = 0; i < wanted; ++i) names[i] = entries[i].name.c_str();
    *count = wanted == 0 ? there : wanted;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeKernelCreate(ze_module_handle_t module, const ze_kernel_desc_t* desc,
                           ze_kernel_handle_t* kernel) {
  return OfModule("zeKernelCreate", module, [&](const std::shared_ptr<Module>& found) {
    if (desc == nullptr || desc->stype != ZE_STRUCTURE_TYPE_KERNEL_DESC ||
        desc->pKernelName == nullptr) {
      return Mistake("zeKernelCreate with another structure", ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    for (const EntryPoint& entry : found->facts.entry_points) {
      if (entry.name != desc->pKernelName) continue;
      auto made = std::make_shared<Kernel>();
      made->module = found;
      made->entry = &entry;
      made->arguments.resize(entry.parameters.size());
      *kernel = TheRuntime().kernels.Add(std::move(made));
      return ZE_RESULT_SUCCESS;
    }
    return Mistake("zeKernelCreate of a name that the module has not",
                   ZE_RESULT_ERROR_INVALID_KERNEL_NAME);
  });
}

ze_result_t zeKernelDestroy(ze_kernel_handle_t kernel) {
  return OfKernel("zeKernelDestroy", kernel, [&](Kernel& found) {
    bool in_use = false;
    TheRuntime().lists.ForEach([&](const List& list) {
      for (const Command& command : list.commands)
        in_use |= list.in_flight > 0 && command.kernel.get() == &found;
    });
    if (in_use) {
      return Mistake("zeKernelDestroy of a kernel that a list on its way launches",
                     ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    }
    found.destroyed = true;
    TheRuntime().kernels.Remove(kernel);
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeKernelSetGroupSize(ze_kernel_handle_t kernel, uint32_t x, uint32_t y, uint32_t z) {
  return OfKernel("zeKernelSetGroupSize", kernel, [&](Kernel& found) {
    const uint64_t threads = uint64_t{x} * y * z;
    const auto threads_max = static_cast<uint64_t>(TheControl().block_threads_max.load());
    const uint32_t* wanted = found.entry->group_size;
    const bool fits = wanted[0] == 0 || (wanted[0] == x && wanted[1] == y && wanted[2] == z);
    if (threads == 0 || threads > threads_max || !fits) {
      return Mistake("zeKernelSetGroupSize that the kernel does not allow",
                     ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION);
    }
    const uint32_t sizes[] = {x, y, z};
    std::copy(sizes, sizes + 3, found.group_size);
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeKernelSetArgumentValue(ze_kernel_handle_t kernel, uint32_t index, size_t bytes,
                                     const void* value) {
  return OfKernel("zeKernelSetArgumentValue", kernel, [&](Kernel& found) {
    if (index >= found.arguments.size()) {
      return Mistake("zeKernelSetArgumentValue beyond the last one",
                     ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX);
    }
    const EntryPoint::Parameter& parameter = found.entry->parameters[index];
    if (bytes != parameter.bytes || value == nullptr) {
      return Mistake("zeKernelSetArgumentValue of another size",
                     ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
    }
    if (parameter.is_pointer && !IsPointerOf(found, value)) {
      return Mistake("zeKernelSetArgumentValue with a pointer to no memory of the context",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    const auto* begin = static_cast<const uint8_t*>(value);
    found.arguments[index] = std::vector<uint8_t>(begin, begin + bytes);
    ++TheControl().arguments_set;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeKernelSetIndirectAccess(ze_kernel_handle_t kernel, uint32_t flags) {
  return OfKernel("zeKernelSetIndirectAccess", kernel, [&](Kernel& found) {
    if ((flags & ~7u) != 0) {
      return Mistake("zeKernelSetIndirectAccess with unknown flags",
                     ZE_RESULT_ERROR_INVALID_ENUMERATION);
    }
    found.indirect = (flags & ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE) != 0;
    return ZE_RESULT_SUCCESS;
  });
}

ze_result_t zeKernelGetProperties(ze_kernel_handle_t kernel, ze_kernel_properties_t* properties) {
  return OfKernel("zeKernelGetProperties", kernel, [&](Kernel& found) {
    if (properties == nullptr || properties->stype != ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES) {
      return Mistake("zeKernelGetProperties into another structure",
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    properties->numKernelArgs = static_cast<uint32_t>(found.arguments.size());
    properties->requiredGroupSizeX = found.entry->group_size[0];
    properties->requiredGroupSizeY = found.entry->group_size[1];
    properties->requiredGroupSizeZ = found.entry->group_size[2];
    properties->maxSubgroupSize = 16;
    properties->maxNumSubgroups = static_cast<uint32_t>(TheControl().block_threads_max) / 16;
    properties->localMemSize = static_cast<uint32_t>(found.module->facts.shared_bytes);
    return ZE_RESULT_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::level_zero
