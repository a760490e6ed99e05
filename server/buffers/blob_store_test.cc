#include "server/buffers/blob_store.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::buffers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// SHA-256 of "abc" (FIPS 180-2, appendix B.1).
constexpr char kAbc[] = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

memory::Account& Host() {
  static const auto& memory = *new auto(std::make_shared<memory::HostMemory>(1 << 20, 1));
  static const auto& account = *new auto(memory->NewAccount("test"));
  return *account;
}

absl::Status Append(BlobStore::Upload& upload, std::string data) { return upload.Append(data); }

std::string Bytes(const Chunks& chunks) { return absl::StrJoin(chunks.pieces(), ""); }

absl::Status Put(BlobStore& store, int64_t session, const std::string& name,
                 const std::string& data) {
  auto upload = store.Begin(session, "ann", name, data.size(), Host());
  if (!upload.ok()) return upload.status();
  if (absl::Status status = Append(**upload, data); !status.ok()) return status;
  return (*upload)->Finish();
}

TEST(BlobStore, VerifiedBlobIsSharedByTheUsersSessions) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  EXPECT_EQ(Bytes(**store.Find(2, "ann", kAbc)), "abc");
  EXPECT_EQ(store.Find(2, "bob", kAbc).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(store.Hold(2, "ann", {kAbc, "other"}), ElementsAre(kAbc));
  store.EndSession(1);
  EXPECT_TRUE(store.Find(2, "ann", kAbc).ok());
  store.EndSession(2);
  EXPECT_FALSE(store.Find(2, "ann", kAbc).ok());
  EXPECT_EQ(store.bytes(), 0);
}

TEST(BlobStore, BadNamesAreQuotedInWholeCharacters) {
  const std::string message(BlobStore::CheckName(":" + std::string(78, 'a') + "\u00e9").message());
  EXPECT_THAT(message, HasSubstr(std::string(78, 'a') + "...\" is neither"));
}

TEST(BlobStore, WrongDigestIsRefused) {
  BlobStore store(100);
  const absl::Status status = Put(store, 1, kAbc, "abd");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("digest"));
  EXPECT_EQ(store.bytes(), 0);
}

TEST(BlobStore, PrivateNamesBelongToTheirSession) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, "weights", "one").ok());
  ASSERT_TRUE(Put(store, 2, "weights", "second").ok());
  EXPECT_EQ(Bytes(**store.Find(1, "ann", "weights")), "one");
  EXPECT_EQ(Bytes(**store.Find(2, "ann", "weights")), "second");
  EXPECT_EQ(store.bytes(), 9);
  ASSERT_TRUE(Put(store, 1, "weights", "again").ok());
  EXPECT_EQ(store.bytes(), 11);
  store.Delete(1, "ann", {"weights"});
  EXPECT_FALSE(store.Find(1, "ann", "weights").ok());
  EXPECT_EQ(store.bytes(), 6);
}

TEST(BlobStore, LimitCountsWhatHasComeOfUnfinishedUploads) {
  BlobStore store(10);
  auto first = store.Begin(1, "ann", "a", 8, Host());
  ASSERT_TRUE(first.ok());
  auto second = store.Begin(2, "bob", "b", 6, Host());
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE(Append(**first, "12345").ok());
  ASSERT_TRUE(Append(**second, "123").ok());
  EXPECT_EQ(store.bytes(), 8);
  const absl::Status refused = Append(**second, "456");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("8 of 10"));
  first->reset();
  EXPECT_TRUE(Append(**second, "456").ok());
  EXPECT_TRUE((*second)->Finish().ok());
  EXPECT_EQ(store.bytes(), 6);
  EXPECT_EQ(store.Begin(1, "ann", "c", ~uint64_t{0}, Host()).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Announcing much and sending nothing keeps nobody from sending.
TEST(BlobStore, WhatIsOnlyAnnouncedTakesNothing) {
  const auto memory = std::make_shared<memory::HostMemory>(64 << 20, 2);
  const auto ann = memory->NewAccount("session s1");
  const auto bob = memory->NewAccount("session s2");
  BlobStore store(64 << 20);
  std::vector<std::unique_ptr<BlobStore::Upload>> announced;
  for (int i = 0; i < 100; ++i)
    announced.push_back(*store.Begin(1, "ann", absl::StrCat(i), 60 << 20, *ann));
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_LT(memory->used_bytes(), 1 << 20);
  auto upload = *store.Begin(2, "bob", "b", 8 << 20, *bob);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Append(*upload, std::string(1 << 20, 'x')).ok());
  EXPECT_TRUE(upload->Finish().ok());
  announced.clear();
  EXPECT_EQ(ann->bytes(), 0);
}

TEST(BlobStore, BytesAreChargedForAsLongAsAnybodyHasThem) {
  const auto memory = std::make_shared<memory::HostMemory>(1 << 20, 1);
  const auto account = memory->NewAccount("session s1");
  BlobStore store(1 << 20);
  EXPECT_EQ(store.Begin(1, "ann", "a", 1 << 20, *account).status().code(),
            absl::StatusCode::kResourceExhausted);
  {
    auto upload = store.Begin(1, "ann", "a", 3, *account);
    ASSERT_TRUE(upload.ok());
    EXPECT_GE(account->bytes(), 3);
    ASSERT_TRUE(Append(**upload, "abc").ok() && (*upload)->Finish().ok());
  }
  BlobStore::Blob blob = *store.Find(1, "ann", "a");
  store.Delete(1, "ann", {"a"});
  EXPECT_GE(account->bytes(), 3);
  blob.reset();
  EXPECT_EQ(account->bytes(), 0);
  EXPECT_EQ(store.bytes(), 0);
}

TEST(BlobStore, WhatHasBeenUsedMayBeForgotten) {
  BlobStore store(10);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  EXPECT_FALSE(Put(store, 1, "a", "12345678").ok());
  EXPECT_TRUE(store.Find(1, "ann", kAbc).ok());
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}), ElementsAre(kAbc));  // wanted again
  store.Reclaim(3);
  EXPECT_TRUE(store.Find(1, "ann", kAbc).ok());
  EXPECT_TRUE(Put(store, 1, "a", "12345678").ok());
  EXPECT_THAT(store.Hold(1, "ann", {kAbc, "a"}), ElementsAre("a"));
  EXPECT_EQ(store.bytes(), 8);
  EXPECT_TRUE(store.Find(1, "ann", "a").ok());
  store.Reclaim(8);
  EXPECT_TRUE(store.Find(1, "ann", "a").ok());  // private names stay
}

TEST(BlobStore, TooFewAndTooManyBytes) {
  BlobStore store(100);
  auto upload = store.Begin(1, "ann", "a", 3, Host());
  ASSERT_TRUE(Append(**upload, "ab").ok());
  EXPECT_EQ((*upload)->Finish().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Append(**upload, "cd").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Append(**upload, "c").ok());
  EXPECT_TRUE((*upload)->Finish().ok());
}

TEST(BlobStore, BadNames) {
  EXPECT_FALSE(BlobStore::CheckName("").ok());
  EXPECT_FALSE(BlobStore::CheckName("sha256:abc").ok());
  EXPECT_FALSE(BlobStore::CheckName("md5:abc").ok());
  EXPECT_FALSE(BlobStore::CheckName(std::string(257, 'a')).ok());
  EXPECT_TRUE(BlobStore::CheckName("data/0").ok());
}

}  // namespace
}  // namespace kiln::buffers
