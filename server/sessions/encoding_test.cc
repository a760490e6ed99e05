#include "server/sessions/encoding.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace kiln::sessions {
namespace {

TEST(Encoding, NumbersComeBack) {
  Encoder out;
  const std::vector<int64_t> numbers = {0, 1, -1, 127, 128, -12345, INT64_MAX, INT64_MIN};
  for (const int64_t number : numbers) out.Signed(number);
  out.Number(UINT64_MAX);
  out.Real(-0.1);
  out.Text("text");
  const std::string bytes = out.Take();
  Decoder in(bytes);
  for (const int64_t number : numbers) EXPECT_EQ(in.Signed(), number);
  EXPECT_EQ(in.Number(), UINT64_MAX);
  EXPECT_EQ(in.Real(), -0.1);
  EXPECT_EQ(in.Text(), "text");
  EXPECT_TRUE(in.AtEnd());
}

TEST(Encoding, WhatIsCutOrTooLargeFails) {
  for (const absl::string_view bytes : {"", "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"}) {
    Decoder in(bytes);
    EXPECT_EQ(in.Number(), 0);
    EXPECT_FALSE(in.ok());
  }
  Decoder text(
      "\x05"
      "four");
  EXPECT_EQ(text.Text(), "");
  EXPECT_FALSE(text.ok());
}

}  // namespace
}  // namespace kiln::sessions
