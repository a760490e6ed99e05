#include "drivers/cpu/kernel.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "drivers/cpu/worker_pool.h"

namespace kiln::drivers::cpu {
namespace {

absl::Status Check(const KernelImage& image) {
  if (absl::Status status = CheckImage(image, "x86-64"); !status.ok()) return status;
  if (image.block_size != 1 || image.shared_bytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel ", image.name, " has blocks of ", image.block_size,
                     " threads that share ", image.shared_bytes, " bytes; a CPU has no blocks"));
  }
  if (image.takes_slot_table) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the kernel ", image.name, " takes a slot table; kernels of a CPU take addresses"));
  }
  const int64_t size = image.code.size();
  if (image.entry < 0 || image.entry >= size) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel ", image.name, " starts at ",
                                                   image.entry, " of ", size, " bytes of code"));
  }
  if (image.scratch_bytes > WorkerPool::kScratchBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel ", image.name, " needs ", image.scratch_bytes,
                     " bytes of scratch memory; a CPU has ", WorkerPool::kScratchBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuKernel>> CpuKernel::Load(const KernelImage& image) {
  if (absl::Status status = Check(image); !status.ok()) return status;
  auto kernel = std::unique_ptr<CpuKernel>(new CpuKernel(image));
  const int64_t size = image.code.size();
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("no memory for the code of ", image.name));
  kernel->memory_ = memory;
  kernel->mapped_bytes_ = size;
  std::memcpy(memory, image.code.data(), size);
  if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) {
    return absl::InternalError(
        absl::StrCat("cannot make the code of ", image.name, " executable: ", strerror(errno)));
  }
  kernel->function_ = reinterpret_cast<KernelFunction>(static_cast<char*>(memory) + image.entry);
  return kernel;
}

CpuKernel::~CpuKernel() {
  if (memory_ != nullptr) munmap(memory_, mapped_bytes_);
}

}  // namespace kiln::drivers::cpu
