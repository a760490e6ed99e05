#include "proto/text/printable.h"

#include "gtest/gtest.h"

namespace kiln {
namespace {

TEST(Printable, LeavesWhatIsRead) {
  for (const char* text : {"", "train.py:31 <b>", "é € 日本語 😀", "a\\b", "עברית"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(Printable("\x1b[2J\a"), "\\x1B[2J\\x07");
  EXPECT_EQ(Printable("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(Printable(std::string("\0\x7f", 2)), "\\x00\\x7F");
  EXPECT_EQ(Printable("\u009b2J"), "\\x9B2J");
}

TEST(Printable, EscapesWhatHidesOrTurnsText) {
  EXPECT_EQ(Printable("a\u202eb\u2066c\u200f"), "a\\u{202E}b\\u{2066}c\\u{200F}");
  EXPECT_EQ(Printable("a\u200bb\ufeff\u2028\u00ad"), "a\\u{200B}b\\u{FEFF}\\u{2028}\\xAD");
  EXPECT_EQ(Printable("\U000e0041"), "\\u{E0041}");
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(Printable("\xff\x80z"), "\\xFF\\x80z");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xC0\\xAF");                  // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xED\\xA0\\x80");         // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80").substr(0, 4), "\\xF4");  // beyond Unicode
  EXPECT_EQ(Printable("\xe2\x82"), "\\xE2\\x82");                  // cut off
  EXPECT_EQ(Printable("\xc2\x1b"), "\\xC2\\x1B");
}

TEST(PrintableLines, KeepsLinesAndTabs) {
  EXPECT_EQ(PrintableLines("a\n\tb\x1b\r\n"), "a\n\tb\\x1B\\r\n");
}

TEST(PrintableInQuotes, EscapesQuotationMarksAndBackslashes) {
  EXPECT_EQ(PrintableInQuotes("a\"b\\\u202e\n"), "a\\\"b\\\\\\u{202E}\\n");
}

}  // namespace
}  // namespace kiln
