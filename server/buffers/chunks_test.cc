#include "server/buffers/chunks.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace kiln::buffers {
namespace {

constexpr size_t kMebibyte = 1 << 20;

std::string Pattern(size_t size) {
  std::string text(size, ' ');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 2654435761u >> 13);
  return text;
}

TEST(Chunks, BytesOfAnySizesStandInOrder) {
  const std::string expected = Pattern(5 * kMebibyte + 12345);
  Chunks chunks(std::make_shared<ChunkRecycler>(kMebibyte), static_cast<int64_t>(expected.size()));
  absl::string_view rest = expected;
  for (size_t step = 1; !rest.empty(); step = step * 7 % 300'007) {
    chunks.Append(rest.substr(0, step));
    rest.remove_prefix(std::min(step, rest.size()));
  }
  EXPECT_EQ(chunks.size(), static_cast<int64_t>(expected.size()));
  EXPECT_EQ(chunks.pieces().size(), 3);
  EXPECT_TRUE(absl::StrJoin(chunks.pieces(), "") == expected);
}

TEST(Chunks, TakeMemoryAsBytesCome) {
  constexpr auto kBlock = static_cast<int64_t>(kBlockBytes);
  Chunks chunks(std::make_shared<ChunkRecycler>(kMebibyte), 2 * kBlock + 1000);
  EXPECT_EQ(chunks.MemoryWith(0), 0);
  EXPECT_EQ(chunks.MemoryWith(1), kBlock);
  chunks.Append("x");
  EXPECT_EQ(chunks.MemoryWith(0), kBlock);
  EXPECT_EQ(chunks.MemoryWith(kBlock - 1), kBlock);
  EXPECT_EQ(chunks.MemoryWith(kBlock), 2 * kBlock);
  EXPECT_EQ(chunks.MemoryWith(2 * kBlock), 2 * kBlock + 1000);
  EXPECT_EQ(Chunks(std::make_shared<ChunkRecycler>(0), 5).MemoryWith(3), 5);
}

TEST(Chunks, TheirMemoryComesBack) {
  const auto recycler = std::make_shared<ChunkRecycler>(8 * kMebibyte);
  const auto fill = [&] {
    Chunks chunks(recycler, 3 * kMebibyte);
    chunks.Append(Pattern(3 * kMebibyte));
    return chunks.pieces();
  };
  const auto first = fill();
  EXPECT_EQ(recycler->bytes(), 3 * kMebibyte);
  const auto second = fill();
  ASSERT_EQ(second.size(), 2);
  EXPECT_EQ(second[0].data(), first[0].data());
  EXPECT_EQ(second[1].data(), first[1].data());
}

TEST(ChunkMemory, WholeBlocksAreAligned) {
  for (int i = 0; i < 5; ++i) {
    const ChunkMemory memory(kBlockBytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % kBlockBytes, 0);
    memory.data()[0] = memory.data()[kBlockBytes - 1] = 'x';
  }
}

TEST(ChunkRecycler, KeepsNoMoreThanItMay) {
  ChunkRecycler recycler(5 * kMebibyte);
  for (int i = 0; i < 5; ++i) recycler.Give(ChunkMemory(kBlockBytes));
  EXPECT_EQ(recycler.bytes(), 4 * kMebibyte);
  recycler.Give(ChunkMemory(1000));
  EXPECT_EQ(recycler.bytes(), 4 * kMebibyte);
  recycler.Give(ChunkMemory(3 * kMebibyte / 2));
  EXPECT_EQ(recycler.bytes(), 7 * kMebibyte / 2) << "those that have waited longest go";
  EXPECT_EQ(recycler.Take(kMebibyte).size(), kMebibyte);
  EXPECT_EQ(recycler.bytes(), 7 * kMebibyte / 2) << "none of this size";
  EXPECT_EQ(recycler.Take(kBlockBytes).size(), kBlockBytes);
  EXPECT_EQ(recycler.bytes(), 3 * kMebibyte / 2);
}

TEST(ChunkRecycler, DropsWhatNobodyNeeds) {
  ChunkRecycler recycler(100 * kMebibyte);
  for (int i = 0; i < 5; ++i) recycler.Give(ChunkMemory(kBlockBytes));
  recycler.DropUnused();
  EXPECT_EQ(recycler.bytes(), 5 * kBlockBytes) << "they have come since the call before";
  // Two are in use at a time, so the other cached ones are not needed.
  for (int i = 0; i < 3; ++i) {
    ChunkMemory first = recycler.Take(kBlockBytes);
    ChunkMemory second = recycler.Take(kBlockBytes);
    recycler.Give(std::move(first));
    recycler.Give(std::move(second));
  }
  recycler.DropUnused();
  EXPECT_EQ(recycler.bytes(), 2 * kBlockBytes);
  recycler.DropUnused();
  EXPECT_EQ(recycler.bytes(), 0);
  for (int i = 0; i < 5; ++i) recycler.Give(ChunkMemory(kBlockBytes));
  recycler.DropBeyond(3 * kBlockBytes + 1);
  EXPECT_EQ(recycler.bytes(), 3 * kBlockBytes);
}

}  // namespace
}  // namespace kiln::buffers
