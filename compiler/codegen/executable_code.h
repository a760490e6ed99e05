// Machine code made runnable in this process, for tests and measurements; programs load images with
// a driver.
#ifndef KILN_COMPILER_CODEGEN_EXECUTABLE_CODE_H_
#define KILN_COMPILER_CODEGEN_EXECUTABLE_CODE_H_

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "drivers/interface/kernel_image.h"

namespace kiln::codegen {

class ExecutableCode {
 public:
  explicit ExecutableCode(const drivers::KernelImage& image)
      : image_(image), bytes_(image.code.size()) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(memory_, image.code.data(), bytes_);
    mprotect(memory_, bytes_, PROT_READ | PROT_EXEC);
  }
  ~ExecutableCode() { munmap(memory_, bytes_); }
  ExecutableCode(const ExecutableCode&) = delete;
  ExecutableCode& operator=(const ExecutableCode&) = delete;

  // Tasks [begin, end); scratch of image.scratch_bytes.
  void Run(void* const* arguments, int64_t begin, int64_t end, void* scratch) const {
    using Function = void (*)(void* const*, int64_t, int64_t, void*);
    reinterpret_cast<Function>(static_cast<char*>(memory_) + image_.entry)(arguments, begin, end,
                                                                           scratch);
  }

 private:
  const drivers::KernelImage image_;
  const size_t bytes_;
  void* memory_;
};

// Memory as a driver gives it: aligned to 64 bytes.
class AlignedMemory {
 public:
  explicit AlignedMemory(int64_t bytes)
      : data_(std::aligned_alloc(64, static_cast<size_t>((bytes + 64) / 64 * 64))) {}
  ~AlignedMemory() { std::free(data_); }
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_EXECUTABLE_CODE_H_
