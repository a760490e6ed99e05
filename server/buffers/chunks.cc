#include "server/buffers/chunks.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

namespace kiln::buffers {
namespace {

constexpr size_t kSmallPiece = 64 << 10;  // smaller ones are copied together
constexpr size_t kLargestKept = 2 << 20;  // larger ones would hide in messages that wait for more
constexpr uintptr_t kPage = 4096;

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14
#endif

}  // namespace

void Populate(std::string& chunk, size_t bytes) {
  if (bytes < kSmallPiece || bytes > kLargestKept) return;
  if (chunk.capacity() >= bytes / 8 * 7) return;
  chunk.reserve(bytes);
  const auto start = reinterpret_cast<uintptr_t>(chunk.data());
  const uintptr_t first = (start + kPage - 1) / kPage * kPage;
  const uintptr_t end = (start + bytes) / kPage * kPage;
  // An older kernel refuses, and memory comes page by page.
  madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
}

std::string ChunkRecycler::Take() {
  absl::MutexLock lock(&mutex_);
  if (waiting_.empty()) return {};
  std::string chunk = std::move(waiting_.back());
  waiting_.pop_back();
  bytes_ -= chunk.capacity();
  return chunk;
}

void ChunkRecycler::Give(std::string chunk) {
  chunk.clear();
  absl::MutexLock lock(&mutex_);
  if (chunk.capacity() < kSmallPiece || chunk.capacity() > kLargestKept ||
      bytes_ + chunk.capacity() > most_)
    return;
  bytes_ += chunk.capacity();
  waiting_.push_back(std::move(chunk));
}

size_t ChunkRecycler::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

Chunks::~Chunks() {
  for (std::string& piece : pieces_) recycler_->Give(std::move(piece));
}

void Chunks::Append(std::string& data) {
  size_ += static_cast<int64_t>(data.size());
  // A string with much room to spare would hold more memory than its bytes are charged for.
  const bool fills_its_memory = data.size() >= data.capacity() / 8 * 7;
  if (data.size() >= kSmallPiece && fills_its_memory) {
    // The caller gets a used string in exchange, whose pages its next message need not touch first.
    pieces_.push_back(recycler_->Take());
    pieces_.back().swap(data);
    return;
  }
  if (pieces_.empty() || pieces_.back().size() + data.size() > kSmallPiece) pieces_.emplace_back();
  // Exactly: strings that grow by themselves take up to twice their size.
  if (data.size() >= kSmallPiece) pieces_.back().reserve(data.size());
  pieces_.back().append(data);
  data.clear();
  if (data.capacity() > kLargestKept) data.shrink_to_fit();
}

}  // namespace kiln::buffers
