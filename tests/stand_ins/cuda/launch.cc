// Launches of kernels.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/objects.h"

namespace kiln::drivers::cuda {
namespace {

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
  TheControl().launch_gate.Pass();
  if (const int code = TheControl().next_launch_fails.exchange(0))
    return static_cast<CUresult>(code);
  const KernelFunction& function = *launch.function;
  ptx::LaunchResult result = ptx::Launch(*function.program, *function.decoded, launch.shape,
                                         launch.parameters, snapshot->memory,
                                         {.branches_max = TheControl().branches_max,
                                          .find_races = TheControl().find_races,
                                          .note_accesses = accesses != nullptr});
  ++TheControl().kernels_run;
  TheControl().time.HasLaunched();
  TheControl().HasRunOn(context.device);
  if (result.fault.kind != ptx::FaultKind::kNone) Report(result.fault.message);
  if (accesses != nullptr) *accesses = {std::move(result.reads), std::move(result.writes)};
  return CodeOf(result.fault.kind);
}

extern "C" {

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int block_size,
                                                     size_t dynamic_shared_bytes) {
  return InContext("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&](Context&, Lock&) {
    const std::shared_ptr<KernelFunction> function = TheRuntime().functions.Find(handle);
    if (function == nullptr || block_size < 1 || block_size > 1024)
      return Mistake("cuOccupancyMaxActiveBlocksPerMultiprocessor", CUDA_ERROR_INVALID_VALUE);
    const int shared = static_cast<int>(function->decoded->shared_bytes) +
                       static_cast<int>(dynamic_shared_bytes) + 1024;
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
