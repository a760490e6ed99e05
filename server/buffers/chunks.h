// Bytes in the pieces in which they came, and the memory that such pieces leave behind.
#ifndef KILN_SERVER_BUFFERS_CHUNKS_H_
#define KILN_SERVER_BUFFERS_CHUNKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/memory/host_memory.h"

namespace kiln::buffers {

// Has the system give an empty string memory for so many bytes at once, unless it has almost as
// much: to fill fresh memory page by page takes longer. Does nothing for less than 64 KiB or more
// than 2 MiB.
void Populate(std::string& chunk, size_t bytes);

// Keeps the memory of strings for the next ones: the first touch of a fresh megabyte takes the
// kernel longer than filling it takes us. Thread-safe.
class ChunkRecycler {
 public:
  // At most this many bytes wait here.
  explicit ChunkRecycler(size_t most_bytes) : most_(most_bytes) {}

  // An empty string, with memory if some waits.
  std::string Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void Give(std::string chunk) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const size_t most_;
  mutable absl::Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
};

// Used by one thread at a time while it grows; thread-safe afterwards.
class Chunks {
 public:
  // `charge` lives as long as the bytes do.
  explicit Chunks(std::shared_ptr<ChunkRecycler> recycler, memory::Charge charge = {})
      : recycler_(std::move(recycler)), charge_(std::move(charge)) {}
  ~Chunks();
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  // Takes the bytes out of `data`, without copying those of large strings that fill their memory.
  // `data` is empty after, and may have memory for the next ones.
  void Append(std::string& data);
  int64_t size() const { return size_; }
  // RESOURCE_EXHAUSTED, and nothing changes, if there is no room for it.
  absl::Status GrowCharge(int64_t bytes) { return charge_.Resize(bytes); }
  // The rest of what was charged was for taking the bytes in.
  void ShrinkCharge(int64_t bytes) { charge_.ForceResize(bytes); }
  // In order.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  const std::shared_ptr<ChunkRecycler> recycler_;
  memory::Charge charge_;
  int64_t size_ = 0;
  std::vector<std::string> pieces_;
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_CHUNKS_H_
