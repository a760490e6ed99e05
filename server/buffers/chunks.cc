#include "server/buffers/chunks.h"

#include <algorithm>
#include <cstring>

#include "proto/check/check.h"

namespace kiln::buffers {

Chunks::~Chunks() {
  for (ChunkMemory& memory : memory_) recycler_->Give(std::move(memory));
}

int64_t Chunks::MemoryWith(int64_t more) const {
  constexpr auto kBlock = static_cast<int64_t>(kBlockBytes);
  return std::min((size_ + more + kBlock - 1) / kBlock * kBlock, announced_);
}

void Chunks::Append(absl::string_view data) {
  KILN_CHECK_LE(data.size(), announced_ - size_);
  while (!data.empty()) {
    if (pieces_.empty() || pieces_.back().size() == memory_.back().size()) {
      const auto missing = static_cast<size_t>(announced_ - size_);
      memory_.push_back(recycler_->Take(std::min(missing, kBlockBytes)));
      pieces_.emplace_back(memory_.back().data(), 0);
    }
    absl::string_view& filled = pieces_.back();
    const size_t bytes = std::min(data.size(), memory_.back().size() - filled.size());
    std::memcpy(memory_.back().data() + filled.size(), data.data(), bytes);
    filled = {filled.data(), filled.size() + bytes};
    size_ += static_cast<int64_t>(bytes);
    data.remove_prefix(bytes);
  }
  KILN_VALIDATE(*this, memory_.size());
}

void Chunks::Validate() const {
  KILN_CHECK_EQ(pieces_.size(), memory_.size());
  int64_t size = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    KILN_CHECK_EQ(pieces_[i].data(), memory_[i].data());
    KILN_CHECK(!pieces_[i].empty());
    KILN_CHECK_LE(pieces_[i].size(), memory_[i].size());
    // Only the last one may have room left.
    KILN_CHECK(i + 1 == pieces_.size() || pieces_[i].size() == memory_[i].size()) << "piece " << i;
    size += static_cast<int64_t>(pieces_[i].size());
  }
  KILN_CHECK_EQ(size, size_);
  KILN_CHECK_LE(size_, announced_);
}

}  // namespace kiln::buffers
