#include "drivers/cuda/kernel.h"

#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/cuda/error.h"

namespace kiln::drivers::cuda {
namespace {

constexpr char kEntry[] = "kernel";
// Only the first errors matter.
constexpr size_t kLogBytesMax = 2000;

// Whether the error is caused by the code.
bool BlamesCode(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_NOT_FOUND:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaKernel>> CudaKernel::Load(std::shared_ptr<Context> context,
                                                             const Target& target,
                                                             const KernelImage& image) {
  if (absl::Status status = CheckBlockImage(image, target, "PTX"); !status.ok()) return status;
  if (image.grid_size > std::numeric_limits<int32_t>::max()) {
    return RefusedKernel(image, "has a grid of ", image.grid_size,
                         " blocks; at most 2^31 - 1 are allowed");
  }
  std::unique_ptr<CudaKernel> kernel(new CudaKernel(std::move(context), image));
  Context::Use use(*kernel->context_);
  if (!use.ok()) return kernel->context_->Health();
  if (absl::Status status = kernel->LoadModule(); !status.ok()) return status;
  if (absl::Status status = kernel->CheckFunction(target.limits); !status.ok()) return status;
  return kernel;
}

CudaKernel::~CudaKernel() {
  if (module_ == nullptr) return;
  Context::Use use(*context_);
  if (use.ok()) context_->cuda().ModuleUnload(module_);
}

absl::Status CudaKernel::LoadModule() {
  const Library& cuda = context_->cuda();
  std::string log(kLogBytesMax, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA takes numbers in pointers.
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUresult code = cuda.ModuleLoadDataEx(&module_, image().code.c_str(), 2, options, values);
  if (code != CUDA_SUCCESS) module_ = nullptr;
  if (code == CUDA_SUCCESS) code = cuda.ModuleGetFunction(&function_, module_, kEntry);
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  log.resize(log.find_last_not_of('\0') + 1);
  absl::StripAsciiWhitespace(&log);
  if (BlamesCode(code))
    return RefusedKernel(image(), "cannot be assembled: ", ErrorName(cuda, code), "\n", log);
  return context_->Failure(absl::StrCat("cannot load the kernel ", image().name), code);
}

absl::Status CudaKernel::CheckFunction(const Limits& limits) const {
  const Library& cuda = context_->cuda();
  // Less than the device's maximum if a thread needs many registers.
  int threads = 0;
  int shared_bytes = 0;
  CUresult code =
      cuda.FuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function_);
  if (code == CUDA_SUCCESS)
    code = cuda.FuncGetAttribute(&shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function_);
  if (code != CUDA_SUCCESS)
    return context_->Failure(absl::StrCat("cannot inspect the kernel ", image().name), code);
  if (image().block_size > threads) {
    return BlocksTooLarge(
        absl::StrCat("the kernel ", image().name, " has blocks of ", image().block_size,
                     " threads; in its assembled form the device allows ", threads),
        threads);
  }
  if (shared_bytes > limits.shared_bytes_per_block) {
    return RefusedKernel(image(), "declares ", shared_bytes,
                         " bytes of shared memory; the device has ", limits.shared_bytes_per_block);
  }
  return absl::OkStatus();
}

}  // namespace kiln::drivers::cuda
