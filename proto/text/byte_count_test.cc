#include "proto/text/byte_count.h"

#include "gtest/gtest.h"

namespace kiln {
namespace {

TEST(ByteCount, IsParsed) {
  EXPECT_EQ(*ParseBytes("512MiB"), 512 << 20);
  EXPECT_EQ(*ParseBytes("2.5GB"), 2500000000);
  EXPECT_EQ(*ParseBytes("17"), 17);
  EXPECT_EQ(*ParseBytes("3B"), 3);
  for (const char* bad : {"", "MiB", "-1", "1XB", "1e40", "nan"})
    EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
}

}  // namespace
}  // namespace kiln
