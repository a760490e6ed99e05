#include "compiler/ir/quoted.h"

#include <string>

#include "gtest/gtest.h"

namespace kiln {
namespace {

TEST(Shortened, LeavesWhatFits) {
  EXPECT_EQ(Shortened("", 3), "");
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("a\u00e9", 3), "a\u00e9");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(Shortened("abcd", 3), "abc");
  EXPECT_EQ(Shortened(std::string(199, 'a') + "\u00e9", 200), std::string(199, 'a'));
  const std::string text = "\u20ac\U0001f600x";  // three bytes, four bytes, one
  EXPECT_EQ(Shortened(text, 2), "");
  for (size_t bytes = 3; bytes < 7; ++bytes) EXPECT_EQ(Shortened(text, bytes), "\u20ac") << bytes;
  EXPECT_EQ(Shortened(text, 7), "\u20ac\U0001f600");
}

TEST(Quoted, ShortensAndEscapes) {
  EXPECT_EQ(Quoted("a\n\"\u00e9"), "\"a\\n\\\"\u00e9\"");
  EXPECT_EQ(Quoted(std::string(80, 'a')), "\"" + std::string(80, 'a') + "\"");
  EXPECT_EQ(Quoted(std::string(81, 'a')), "\"" + std::string(80, 'a') + "...\"");
  EXPECT_EQ(Quoted("a\u202e\u2028"), "\"a\\u{202E}\\u{2028}\"");
  EXPECT_EQ(Shown(std::string(79, 'a') + "\u00e9"), std::string(79, 'a') + "...");
}

}  // namespace
}  // namespace kiln
