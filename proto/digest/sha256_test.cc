#include "proto/digest/sha256.h"

#include "gtest/gtest.h"

namespace kiln {
namespace {

// Examples from FIPS 180-4.
constexpr char kOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, IsTheStandards) {
  EXPECT_EQ(Sha256Hex(""), kOfNothing);
  EXPECT_EQ(Sha256Hex("abc"), kOfAbc);
}

TEST(Sha256, PiecesAreOneText) {
  Sha256 hexadecimal, raw;
  for (Sha256* digest : {&hexadecimal, &raw}) {
    digest->Update("a");
    digest->Update("");
    digest->Update("bc");
  }
  EXPECT_EQ(hexadecimal.FinishHex(), kOfAbc);
  const std::string bytes = raw.Finish();
  ASSERT_EQ(bytes.size(), 32);
  EXPECT_EQ(bytes.substr(0, 3), "\xba\x78\x16");
}

}  // namespace
}  // namespace kiln
