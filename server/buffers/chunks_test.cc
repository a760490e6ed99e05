#include "server/buffers/chunks.h"

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace kiln::buffers {
namespace {

constexpr size_t kMebibyte = 1 << 20;

TEST(Chunks, LargePiecesAreTakenAndTheirMemoryComesBack) {
  auto recycler = std::make_shared<ChunkRecycler>(10 * kMebibyte);
  std::string data(kMebibyte, 'a');
  const char* const memory = data.data();
  {
    Chunks chunks(recycler);
    chunks.Append(data);
    EXPECT_EQ(chunks.pieces().front().data(), memory);
    EXPECT_TRUE(data.empty());
  }
  EXPECT_GE(recycler->bytes(), kMebibyte);
  Chunks chunks(recycler);
  data.assign(kMebibyte, 'b');
  chunks.Append(data);
  EXPECT_EQ(data.data(), memory) << "the next data may use the first one's memory";
  EXPECT_EQ(recycler->bytes(), 0u);
}

TEST(Chunks, SmallPiecesKeepOnlyWhatTheyNeed) {
  Chunks chunks(std::make_shared<ChunkRecycler>(kMebibyte));
  std::string expected, data;
  data.reserve(kMebibyte);
  for (int i = 0; i < 100000; ++i) {
    data += static_cast<char>('a' + i % 26);
    expected += data;
    chunks.Append(data);
  }
  EXPECT_EQ(chunks.size(), 100000);
  EXPECT_EQ(absl::StrJoin(chunks.pieces(), ""), expected);
  EXPECT_EQ(chunks.pieces().size(), 2u);
  EXPECT_GE(data.capacity(), kMebibyte);
}

TEST(Chunks, SizesMayMix) {
  Chunks chunks(std::make_shared<ChunkRecycler>(kMebibyte));
  std::string expected;
  for (const size_t size : {3, 200000, 0, 70000, 5, 65536, 1}) {
    std::string data(size, static_cast<char>('a' + size % 26));
    expected += data;
    chunks.Append(data);
  }
  EXPECT_EQ(absl::StrJoin(chunks.pieces(), ""), expected);
}

TEST(Chunks, PopulatedMemoryIsAsLargeAsAsked) {
  for (const size_t size : {0, 5, 70001, 1 << 20}) {
    std::string data;
    Populate(data, size);
    EXPECT_GE(data.capacity(), size < 64 << 10 ? 0 : size);
    const char* const memory = data.data();
    Populate(data, size);
    EXPECT_EQ(data.data(), memory);
    data.assign(size, 'x');
    EXPECT_EQ(data, std::string(size, 'x'));
  }
}

TEST(ChunkRecycler, KeepsNoMoreThanItMay) {
  ChunkRecycler recycler(2 * kMebibyte);
  for (int i = 0; i < 5; ++i) recycler.Give(std::string(kMebibyte * 3 / 4, 'x'));
  EXPECT_LE(recycler.bytes(), 2 * kMebibyte);
  EXPECT_GE(recycler.bytes(), kMebibyte);
  EXPECT_GE(recycler.Take().capacity(), kMebibyte / 2);
}

}  // namespace
}  // namespace kiln::buffers
