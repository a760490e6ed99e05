// Bytes of a known total size, collected as they arrive.
#ifndef KILN_SERVER_BUFFERS_CHUNKS_H_
#define KILN_SERVER_BUFFERS_CHUNKS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/buffers/chunk_memory.h"
#include "server/memory/host_memory.h"

namespace kiln::buffers {

// Used by one thread at a time while it grows; thread-safe afterwards.
class Chunks {
 public:
  // `announced`: the most bytes that will arrive. Memory is allocated as they do, in blocks of
  // kBlockBytes; the last block has the size of the remaining bytes. `charge` lives as long as the
  // bytes.
  Chunks(std::shared_ptr<ChunkRecycler> recycler, int64_t announced, memory::Charge charge = {})
      : recycler_(std::move(recycler)), announced_(announced), charge_(std::move(charge)) {}
  ~Chunks();
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  // Copies the bytes. Requires: at most the announced size in total.
  void Append(absl::string_view data);
  int64_t size() const { return size_; }
  // Bytes of memory it would use with `more` bytes added.
  int64_t MemoryWith(int64_t more) const;
  // RESOURCE_EXHAUSTED, without a change, if there is no memory left.
  absl::Status GrowCharge(int64_t bytes) { return charge_.Resize(bytes); }
  // In order. Requires: it does not grow any more.
  const std::vector<absl::string_view>& pieces() const { return pieces_; }

 private:
  void Validate() const;

  const std::shared_ptr<ChunkRecycler> recycler_;
  const int64_t announced_;
  memory::Charge charge_;
  int64_t size_ = 0;
  std::vector<ChunkMemory> memory_;
  std::vector<absl::string_view> pieces_;  // the filled part of each
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_CHUNKS_H_
