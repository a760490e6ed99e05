// Modules and their functions.
#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

// The PTX version of a driver version.
int PtxVersionOf(int driver_version) {
  const int major = driver_version / 1000;
  const int minor = driver_version % 1000 / 10;
  if (major == 12) return 80 + (minor <= 5 ? minor : minor - 1);  // 12.5 and 12.6 have 8.5
  return (major - 4) * 10 + minor;
}

// Why a device cannot run code for `target`, sm_80 or sm_90a; "" if it can.
std::string WhyNotFor(const std::string& target) {
  const int capability = TheControl().compute_capability;
  std::string number = target.substr(std::min<size_t>(3, target.size()));
  const bool exact = !number.empty() && (number.back() == 'a' || number.back() == 'f');
  if (exact) number.pop_back();
  int wanted = 0;
  if (target.substr(0, 3) != "sm_" || !absl::SimpleAtoi(number, &wanted))
    return absl::StrCat("the target ", target, " is not known");
  const bool runs = exact ? wanted == capability : wanted <= capability;
  return runs ? "" : absl::StrCat("code for ", target, " on a device of sm_", capability);
}

// Writes to the options' buffer for errors, if there is one.
void WriteLog(const std::string& text, unsigned count, CUjit_option* options, void** values) {
  char* buffer = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
      bytes = reinterpret_cast<uintptr_t>(values[i]);
      values[i] = reinterpret_cast<void*>(std::min(bytes, text.size()));
    }
  }
  if (buffer == nullptr || bytes == 0) return;
  const size_t copied = std::min(bytes - 1, text.size());
  std::memcpy(buffer, text.data(), copied);
  buffer[copied] = '\0';
}

CUresult CheckModule(const ptx::LoadedModule& loaded, std::string* why) {
  if (loaded.version > PtxVersionOf(TheControl().driver_version)) {
    *why = absl::StrCat("PTX ", loaded.version / 10, ".", loaded.version % 10,
                        " is newer than the driver");
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  *why = WhyNotFor(loaded.target);
  if (!why->empty()) return CUDA_ERROR_INVALID_PTX;
  for (const ptx::DecodedFunction& function : loaded.program.functions) {
    if (function.is_entry && function.formal_bytes > kParameterBytesMax) {
      *why = absl::StrCat(function.name, " has too many parameters: ", function.formal_bytes,
                          " bytes of ", kParameterBytesMax);
      return CUDA_ERROR_INVALID_PTX;
    }
    if (!function.is_entry || function.shared_bytes <= kSharedBytesDefault) continue;
    *why = absl::StrCat(function.name, " uses too much shared data: ", function.shared_bytes);
    return CUDA_ERROR_INVALID_PTX;
  }
  return CUDA_SUCCESS;
}

CUresult LoadModule(Context& context, CUmodule* handle, const char* text, std::string* why) {
  if (text == nullptr || handle == nullptr)
    return Mistake("cuModuleLoadData: no image", CUDA_ERROR_INVALID_VALUE);
  if (const int code = TheControl().next_load_fails.exchange(0)) {
    *why = "a test lets this fail";
    return static_cast<CUresult>(code);
  }
  if (std::memcmp(text, "\x7f", 1) == 0) {
    *why = "machine code cannot be interpreted";
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  std::vector<CUdeviceptr> variables;
  bool out_of_memory = false;
  auto loaded = ptx::Load(text, [&](int64_t bytes, int64_t) {
    Allocation* made = nullptr;
    if (Allocate(context.device, &context, std::max<int64_t>(bytes, 1), true, nullptr, &made) !=
        CUDA_SUCCESS) {
      out_of_memory = true;
      static uint8_t nowhere[1];
      return ptx::Region{0, 0, nowhere};
    }
    std::memset(made->host, 0, made->bytes);
    variables.push_back(made->address);
    return ptx::Region{made->address, static_cast<uint64_t>(bytes), made->host};
  });
  CUresult result = CUDA_SUCCESS;
  if (out_of_memory) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  } else if (!loaded.ok()) {
    *why = std::string(loaded.status().message());
    result = CUDA_ERROR_INVALID_PTX;
  } else {
    result = CheckModule(**loaded, why);
  }
  if (result != CUDA_SUCCESS) {
    for (CUdeviceptr address : variables) Free(address);
    TheRuntime().message = *why;
    return result;
  }
  *handle =
      TheRuntime().modules.Add(std::make_shared<Module>(Module{&context, *std::move(loaded), {}}));
  ++TheControl().modules_loaded;
  return CUDA_SUCCESS;
}

int StaticSharedBytes(const KernelFunction& function) {
  return static_cast<int>(function.decoded->shared_bytes);
}

}  // namespace

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  return InContext("cuModuleLoadDataEx", [&](Context& context, Lock&) {
    std::string why;
    const CUresult result = LoadModule(context, module, static_cast<const char*>(image), &why);
    WriteLog(why, count, options, values);
    return result;
  });
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleUnload(CUmodule handle) {
  return InContext("cuModuleUnload", [&](Context& context, Lock& lock) {
    const std::shared_ptr<Module> module = TheRuntime().modules.Find(handle);
    if (module == nullptr || module->context != &context)
      return Mistake("cuModuleUnload: no module", CUDA_ERROR_INVALID_HANDLE);
    WaitForAll(context, lock);
    for (const auto& [name, function] : module->functions) TheRuntime().functions.Remove(function);
    for (const ptx::LoadedVariable& variable : module->loaded->variables)
      Free(variable.region.address);
    TheRuntime().modules.Remove(handle);
    return AnswerOf(context);
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return InContext("cuModuleGetFunction", [&](Context&, Lock&) {
    const std::shared_ptr<Module> module = TheRuntime().modules.Find(handle);
    if (module == nullptr || name == nullptr)
      return Mistake("cuModuleGetFunction: no module", CUDA_ERROR_INVALID_HANDLE);
    const ptx::DecodedFunction* const decoded = module->loaded->program.FindEntry(name);
    if (decoded == nullptr) return CUDA_ERROR_NOT_FOUND;
    CUfunction& known = module->functions[name];
    if (known == nullptr) {
      const int rest = kSharedBytesDefault - static_cast<int>(decoded->shared_bytes);
      known = TheRuntime().functions.Add(std::make_shared<KernelFunction>(
          KernelFunction{module, decoded, &module->loaded->program, rest}));
    }
    *function = known;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                              const char* name) {
  return InContext("cuModuleGetGlobal", [&](Context&, Lock&) {
    const std::shared_ptr<Module> module = TheRuntime().modules.Find(handle);
    if (module == nullptr)
      return Mistake("cuModuleGetGlobal: no module", CUDA_ERROR_INVALID_HANDLE);
    const ptx::LoadedVariable* const variable = module->loaded->FindVariable(name);
    if (variable == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = variable->region.address;
    if (bytes != nullptr) *bytes = variable->region.bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return InContext("cuFuncGetAttribute", [&](Context&, Lock&) {
    const std::shared_ptr<KernelFunction> function = TheRuntime().functions.Find(handle);
    if (function == nullptr)
      return Mistake("cuFuncGetAttribute: no function", CUDA_ERROR_INVALID_HANDLE);
    const int64_t threads_max = function->decoded->threads_max;
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = threads_max != 0 ? static_cast<int>(threads_max) : 1024;
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = StaticSharedBytes(*function);
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = 0;
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(function->decoded->local_bytes);
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = TheControl().compute_capability;
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->dynamic_shared_max;
        return CUDA_SUCCESS;
    }
    return Mistake("cuFuncGetAttribute: the attribute", CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return InContext("cuFuncSetAttribute", [&](Context&, Lock&) {
    const std::shared_ptr<KernelFunction> function = TheRuntime().functions.Find(handle);
    if (function == nullptr)
      return Mistake("cuFuncSetAttribute: no function", CUDA_ERROR_INVALID_HANDLE);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value + StaticSharedBytes(*function) > kSharedBytesMax)
      return Mistake("cuFuncSetAttribute: the attribute or its value", CUDA_ERROR_INVALID_VALUE);
    function->dynamic_shared_max = value;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::cuda
