#include "server/buffers/blob_name.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::buffers {
namespace {

using testing::HasSubstr;

const std::string kDigits(64, 'a');
const std::string kDigest = "sha256:" + kDigits;
constexpr char kSomeSum[] = "sum64:0123456789abcdef";

TEST(BlobName, PlainOnesSayNothingAboutTheirBytes) {
  for (const std::string name : {"data/0", "sha256", "sum64"}) {
    EXPECT_TRUE(CheckBlobName(name).ok()) << name;
    EXPECT_FALSE(IsContentAddressed(name)) << name;
    EXPECT_EQ(SumIn(name), "");
    EXPECT_EQ(DigestIn(name), "");
    EXPECT_FALSE(IsSumAlone(name));
  }
}

TEST(BlobName, ADigest) {
  EXPECT_TRUE(CheckBlobName(kDigest).ok());
  EXPECT_TRUE(IsContentAddressed(kDigest));
  EXPECT_EQ(DigestIn(kDigest), kDigits);
  EXPECT_EQ(SumIn(kDigest), "");
}

TEST(BlobName, ASumBeforeAName) {
  const std::string name = absl::StrCat(kSomeSum, ":upload-1");
  EXPECT_TRUE(CheckBlobName(name).ok());
  EXPECT_TRUE(IsContentAddressed(name));
  EXPECT_EQ(SumIn(name), absl::StrCat(kSomeSum, ":"));
  EXPECT_EQ(DigestIn(name), "");
  EXPECT_FALSE(IsSumAlone(name));
}

TEST(BlobName, ASumBeforeADigest) {
  const std::string name = absl::StrCat(kSomeSum, ":", kDigest);
  EXPECT_TRUE(CheckBlobName(name).ok());
  EXPECT_EQ(SumIn(name), absl::StrCat(kSomeSum, ":"));
  EXPECT_EQ(DigestIn(name), kDigits);
}

TEST(BlobName, ASumAloneAsksAndNamesNothing) {
  EXPECT_TRUE(IsSumAlone(kSomeSum));
  EXPECT_FALSE(CheckBlobName(kSomeSum).ok());
  EXPECT_EQ(SumIn(kSomeSum), "");
}

TEST(BlobName, BadOnes) {
  const std::string sum = absl::StrCat(kSomeSum, ":");
  for (const std::string& name :
       {std::string(), std::string("sha256:abc"), std::string("md5:abc"), std::string(257, 'a'),
        "sha256:" + std::string(64, 'A'), kDigest + "0", sum, sum + "a:b", sum + "sha256:abc",
        sum + std::string(257, 'a'), sum + sum + "a", std::string("sum64:0123:a"),
        std::string("sum64:0123456789ABCDEF:a"), std::string("sum64:"), kDigest + ":" + kDigest}) {
    EXPECT_FALSE(CheckBlobName(name).ok()) << name;
  }
}

TEST(BlobName, BadOnesAreQuotedInWholeCharacters) {
  const std::string message(CheckBlobName(":" + std::string(78, 'a') + "\u00e9").message());
  EXPECT_THAT(message, HasSubstr(std::string(78, 'a') + "...\": use"));
}

}  // namespace
}  // namespace kiln::buffers
