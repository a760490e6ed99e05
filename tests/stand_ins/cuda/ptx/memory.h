// The memories of a kernel, with checks of each access.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_MEMORY_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::stand_ins::ptx {

// Generic addresses of memory other than global, and the size of each window.
inline constexpr uint64_t kSharedWindow = uint64_t{0x7e} << 40;
inline constexpr uint64_t kLocalWindow = uint64_t{0x7d} << 40;
inline constexpr uint64_t kParameterWindow = uint64_t{0x7c} << 40;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 40;

// One live allocation.
struct Region {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint8_t* host = nullptr;
};

// The allocations that a launch may access. Constant while it runs.
class GlobalMemory {
 public:
  GlobalMemory() = default;
  explicit GlobalMemory(std::vector<Region> regions);
  // The allocation that contains the address, or null.
  const Region* Find(uint64_t address) const;
  // "12 bytes past the end of the allocation of 64 bytes at 0x…".
  std::string Describe(uint64_t address) const;

 private:
  std::vector<Region> regions_;  // by address
};

// A block's shared memory. Two threads that access the same byte without a barrier between them,
// one of them writing, are reported as a race, in whatever order they happen to be interpreted.
class SharedMemory {
 public:
  static constexpr uint16_t kNobody = 0xffff;

  void Reset(int64_t bytes, int threads);
  int64_t bytes() const { return static_cast<int64_t>(content_.size()); }
  uint8_t* content() { return content_.data(); }

  // All threads have reached a barrier.
  void Barrier() { ++epoch_; }
  // All threads of a warp have synchronized.
  void WarpBarrier(int warp) { ++warp_epochs_[warp]; }

  enum class Use { kRead, kWrite, kAtomic };
  // "" or the thread that it races with.
  std::string Note(Use use, int64_t offset, int64_t bytes, int thread);
  // An asynchronous copy fills these bytes: no thread may access them until it ends.
  std::string BeginCopy(int64_t offset, int64_t bytes, int thread);
  std::string EndCopy(int64_t offset, int64_t bytes, int thread);

 private:
  struct Byte {
    uint32_t epoch = 0;
    uint32_t writer_warp_epoch = 0;
    uint32_t reader_warp_epoch = 0;
    uint16_t writer = kNobody;
    uint16_t reader = kNobody;
    bool many_readers = false;  // of the same warp as `reader`
    bool reader_warps = false;  // of several warps
    bool atomic = false;        // how it was written
    bool copying = false;
  };
  std::string Conflict(const Byte& byte, Use use, int64_t offset, int thread) const;

  std::vector<uint8_t> content_;
  std::vector<Byte> shadow_;  // empty with a single thread
  std::vector<uint32_t> warp_epochs_;
  uint32_t epoch_ = 0;
};

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_MEMORY_H_
