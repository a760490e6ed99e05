// Makes machine code executable in this process, for tests and measurements; other code loads
// images with a driver.
#ifndef KILN_COMPILER_CODEGEN_TESTING_EXECUTABLE_CODE_H_
#define KILN_COMPILER_CODEGEN_TESTING_EXECUTABLE_CODE_H_

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

  // Runs tasks [begin, end). `scratch` has image.scratch_bytes.
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

// Memory as a driver provides it: aligned to 64 bytes.
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

// Memory between two inaccessible pages: accesses past its ends crash the process. It begins at a
// multiple of 64, like a driver's, so that accesses up to 63 bytes past the end go unnoticed. So do
// those up to a page before the beginning, unless it begins directly after the first page.
class GuardedMemory {
 public:
  enum class Edge : uint8_t { kEnd, kBegin };

  explicit GuardedMemory(int64_t bytes, Edge edge = Edge::kEnd) {
    const auto used = static_cast<size_t>((bytes + kPage - 1) / kPage * kPage);
    mapped_ = used + 2 * kPage;
    base_ = static_cast<char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_, kPage, PROT_NONE);
    mprotect(base_ + kPage + used, kPage, PROT_NONE);
    data_ = base_ + kPage;
    if (edge == Edge::kEnd) data_ += used - static_cast<size_t>((bytes + 63) / 64 * 64);
  }
  ~GuardedMemory() { munmap(base_, mapped_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  void* data() const { return data_; }
  // Makes writing crash the process as well, from now on.
  void Protect() const { mprotect(base_ + kPage, mapped_ - 2 * kPage, PROT_READ); }

 private:
  static constexpr size_t kPage = 4096;
  char* base_;
  char* data_;
  size_t mapped_;
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_TESTING_EXECUTABLE_CODE_H_
