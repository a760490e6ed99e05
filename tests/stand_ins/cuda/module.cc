// Modules, functions and launches.
#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

// The version of PTX that came with a driver.
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

// The options' buffer for errors, if there is one.
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

std::string WhatDoesNotFit(const KernelFunction& function, const CUDA_KERNEL_NODE_PARAMS& launch) {
  const ptx::DecodedFunction& decoded = *function.decoded;
  const std::array<uint32_t, 3> block = {launch.blockDimX, launch.blockDimY, launch.blockDimZ};
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  if (threads < 1 || threads > 1024 || block[0] > 1024 || block[1] > 1024 || block[2] > 64)
    return absl::StrCat("a block of ", block[0], " x ", block[1], " x ", block[2], " threads");
  if (launch.gridDimX < 1 || launch.gridDimY < 1 || launch.gridDimZ < 1 ||
      launch.gridDimX > 0x7fffffff || launch.gridDimY > 0xffff || launch.gridDimZ > 0xffff)
    return "the grid";
  if (static_cast<int64_t>(launch.sharedMemBytes) > function.dynamic_shared_max)
    return absl::StrCat(launch.sharedMemBytes, " bytes of dynamic shared memory, more than the ",
                        function.dynamic_shared_max, " that the function may have");
  if (decoded.required_threads[0] != 0 && decoded.required_threads != block)
    return "the block is not of the shape that .reqntid demands";
  if (decoded.threads_max != 0 && static_cast<int64_t>(threads) > decoded.threads_max)
    return "more threads than .maxntid allows";
  return "";
}

// kernelParams: a pointer for each parameter. extra: one buffer with all of them.
bool CopyParameters(const ptx::DecodedFunction& decoded, const CUDA_KERNEL_NODE_PARAMS& launch,
                    std::vector<uint8_t>& parameters) {
  parameters.resize(decoded.formal_bytes);
  if (decoded.parameters.empty()) return true;
  if (launch.kernelParams != nullptr && launch.extra == nullptr) {
    for (size_t i = 0; i < decoded.parameters.size(); ++i) {
      if (launch.kernelParams[i] == nullptr) return false;
      std::memcpy(&parameters[decoded.parameters[i]], launch.kernelParams[i],
                  decoded.parameter_sizes[i]);
    }
    return true;
  }
  if (launch.extra == nullptr || launch.kernelParams != nullptr) return false;
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** item = launch.extra; *item != nullptr; item += 2) {
    const auto what = reinterpret_cast<uintptr_t>(*item);
    if (what == 1) buffer = item[1];
    if (what == 2) bytes = *static_cast<const size_t*>(item[1]);
  }
  if (buffer == nullptr || bytes != parameters.size()) return false;
  std::memcpy(parameters.data(), buffer, bytes);
  return true;
}

CUresult CodeOf(ptx::FaultKind kind) {
  switch (kind) {
    case ptx::FaultKind::kNone:
      return CUDA_SUCCESS;
    case ptx::FaultKind::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ptx::FaultKind::kMisalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ptx::FaultKind::kTimeout:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

}  // namespace

CUresult MakeLaunch(const char* call, Context& context, const CUDA_KERNEL_NODE_PARAMS& parameters,
                    KernelLaunch* launch) {
  launch->function = TheRuntime().functions.Find(parameters.func);
  launch->module = launch->function == nullptr ? nullptr : launch->function->module.lock();
  if (launch->module == nullptr || launch->module->context != &context)
    return Mistake(absl::StrCat(call, ": no function of this context"), CUDA_ERROR_INVALID_HANDLE);
  const std::string wrong = WhatDoesNotFit(*launch->function, parameters);
  const std::string& name = launch->function->decoded->name;
  if (!wrong.empty())
    return Mistake(absl::StrCat(call, ", ", name, ": ", wrong), CUDA_ERROR_INVALID_VALUE);
  if (!CopyParameters(*launch->function->decoded, parameters, launch->parameters))
    return Mistake(absl::StrCat(call, ", ", name, ": the parameters"), CUDA_ERROR_INVALID_VALUE);
  launch->shape = {{parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ},
                   {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ},
                   parameters.sharedMemBytes};
  return CUDA_SUCCESS;
}

CUresult RunKernel(Context& context, const KernelLaunch& launch, Accesses* accesses) {
  std::shared_ptr<const MemorySnapshot> snapshot;
  {
    Lock lock(TheRuntime().mutex);
    snapshot = TakeSnapshot(context);
  }
  const int milliseconds = TheControl().launch_milliseconds;
  if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  if (const int code = TheControl().next_launch_fails.exchange(0))
    return static_cast<CUresult>(code);
  const KernelFunction& function = *launch.function;
  ptx::LaunchResult result = ptx::Launch(*function.program, *function.decoded, launch.shape,
                                         launch.parameters, snapshot->memory,
                                         {.branches_max = TheControl().branches_max,
                                          .find_races = TheControl().find_races,
                                          .note_accesses = accesses != nullptr});
  ++TheControl().kernels_run;
  if (result.fault.kind != ptx::FaultKind::kNone) Report(result.fault.message);
  if (accesses != nullptr) *accesses = {std::move(result.reads), std::move(result.writes)};
  return CodeOf(result.fault.kind);
}

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

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int block_size,
                                                     size_t dynamic_shared_bytes) {
  return InContext("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&](Context&, Lock&) {
    const std::shared_ptr<KernelFunction> function = TheRuntime().functions.Find(handle);
    if (function == nullptr || block_size < 1 || block_size > 1024)
      return Mistake("cuOccupancyMaxActiveBlocksPerMultiprocessor", CUDA_ERROR_INVALID_VALUE);
    const int shared = StaticSharedBytes(*function) + static_cast<int>(dynamic_shared_bytes) + 1024;
    *blocks = std::min({32, 2048 / block_size, (164 << 10) / shared});
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream handle, void** parameters, void** extra) {
  return InContext("cuLaunchKernel", [&](Context& context, Lock&) {
    const std::shared_ptr<Stream> stream = FindStream(context, handle);
    if (stream == nullptr) return Mistake("cuLaunchKernel: no stream", CUDA_ERROR_INVALID_HANDLE);
    KernelLaunch launch;
    const CUresult made = MakeLaunch("cuLaunchKernel", context,
                                     {function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                      shared_bytes, parameters, extra, nullptr, nullptr},
                                     &launch);
    if (made != CUDA_SUCCESS) return made;
    if (const int code = TheControl().next_launch_refused.exchange(0))
      return static_cast<CUresult>(code);
    Push(*stream, [&context, launch] { return RunKernel(context, launch, nullptr); });
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

}  // namespace kiln::drivers::cuda
