#include "proto/coding/coding.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace kiln {
namespace {

using std::string_literals::operator""s;

TEST(Coding, BytesAreAsThePageSays) {
  const struct {
    void (*write)(ByteWriter&);
    std::string bytes;
  } kCases[] = {{[](ByteWriter& out) { out.Fixed32(0x01020304); }, "\x04\x03\x02\x01"},
                {[](ByteWriter& out) { out.Fixed64(0x0102); }, "\x02\x01\0\0\0\0\0\0"s},
                {[](ByteWriter& out) { out.Number(0); }, "\0"s},
                {[](ByteWriter& out) { out.Number(127); }, "\x7f"},
                {[](ByteWriter& out) { out.Number(300); }, "\xac\x02"},
                {[](ByteWriter& out) { out.Number(~uint64_t{0}); },
                 "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
                {[](ByteWriter& out) { out.Signed(-1); }, "\x01"},
                {[](ByteWriter& out) { out.Signed(64); }, "\x80\x01"},
                {[](ByteWriter& out) { out.Real(0); }, "\0"s},
                {[](ByteWriter& out) { out.Real(1); }, "\x80\x80\x80\x80\x80\x80\x80\xf8\x3f"},
                {[](ByteWriter& out) { out.Text("ab"); },
                 "\x02"
                 "ab"},
                {[](ByteWriter& out) { out.Field("ab"); }, "\x02\0\0\0\0\0\0\0ab"s},
                {[](ByteWriter& out) { out.PlainField(uint16_t{1}); }, "\x02\0\0\0\0\0\0\0\x01\0"s},
                {[](ByteWriter& out) { out.Bytes("ab"); }, "ab"}};
  for (const auto& row : kCases) {
    ByteWriter out;
    row.write(out);
    EXPECT_EQ(out.Take(), row.bytes);
  }
}

TEST(Coding, ValuesComeBack) {
  constexpr int64_t kNumbers[] = {0,
                                  1,
                                  -1,
                                  127,
                                  128,
                                  -128,
                                  1 << 20,
                                  std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::min()};
  for (const int64_t number : kNumbers) {
    ByteWriter out;
    out.Fixed32(static_cast<uint32_t>(number));
    out.Fixed64(static_cast<uint64_t>(number));
    out.Number(static_cast<uint64_t>(number));
    out.Signed(number);
    out.Real(static_cast<double>(number));
    out.Text("text");
    out.Field("");
    out.PlainField(number);
    const std::string bytes = out.Take();
    ByteReader in(bytes);
    EXPECT_EQ(in.Fixed32(), static_cast<uint32_t>(number));
    EXPECT_EQ(in.Fixed64(), static_cast<uint64_t>(number));
    EXPECT_EQ(in.Number(), static_cast<uint64_t>(number));
    EXPECT_EQ(in.Signed(), number);
    EXPECT_EQ(in.Real(), static_cast<double>(number));
    EXPECT_EQ(in.Text(), "text");
    EXPECT_EQ(in.Field(), "");
    int64_t plain = 0;
    in.PlainField(&plain);
    EXPECT_EQ(plain, number);
    EXPECT_TRUE(in.AtEnd());
  }
}

TEST(Coding, EveryErrorEndsTheReading) {
  const struct {
    std::string bytes;
    void (*read)(ByteReader&);
  } kCases[] = {{"abc", [](ByteReader& in) { in.Fixed32(); }},
                {"abcdefg", [](ByteReader& in) { in.Fixed64(); }},
                {"", [](ByteReader& in) { in.Number(); }},
                {"\x80", [](ByteReader& in) { in.Number(); }},
                // More than 64 bits.
                {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", [](ByteReader& in) { in.Number(); }},
                {"\x02"
                 "a",
                 [](ByteReader& in) { in.Text(); }},
                {"\x02\0\0\0\0\0\0\0a"s, [](ByteReader& in) { in.Field(); }},
                {"\x01\0\0\0\0\0\0\0ab"s,
                 [](ByteReader& in) {
                   int16_t value = 0;
                   in.PlainField(&value);
                 }},
                {"\x02"
                 "a",
                 [](ByteReader& in) { in.Count(); }},
                {"\x03", [](ByteReader& in) { in.Below(3); }}};
  for (const auto& row : kCases) {
    ByteReader in(row.bytes);
    row.read(in);
    EXPECT_FALSE(in.ok()) << row.bytes;
    EXPECT_FALSE(in.AtEnd());
    EXPECT_EQ(in.Number(), 0);
    EXPECT_EQ(in.Rest(), "");
  }
}

}  // namespace
}  // namespace kiln
