#include "server/buffers/blob_store.h"

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::buffers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// SHA-256 of "abc" (FIPS 180-2, appendix B.1).
constexpr char kAbc[] = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

// The sum of "abc", and the names that two clients may use for it.
constexpr char kSum[] = "sum64:0000000000636261";
const std::string kFirstName = absl::StrCat(kSum, ":first");
const std::string kSecondName = absl::StrCat(kSum, ":second");
const std::string kSumAndDigest = absl::StrCat(kSum, ":", kAbc);

memory::Account& Host() {
  static const auto& memory = *new auto(std::make_shared<memory::HostMemory>(1 << 20, 1));
  static const auto& account = *new auto(memory->NewAccount("test"));
  return *account;
}

absl::Status Append(BlobStore::Upload& upload, const std::string& data) {
  return upload.Append({data});
}

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
  store.Verify("ann", {kAbc});
  EXPECT_EQ(Bytes(**store.Find(2, "ann", kAbc, 1)), "abc");
  EXPECT_EQ(store.Find(2, "bob", kAbc, 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(store.Hold(2, "ann", {kAbc, "other"}, 0), ElementsAre(kAbc));
  store.CloseSession(1);
  EXPECT_TRUE(store.Find(2, "ann", kAbc, 1).ok());
  store.CloseSession(2);
  EXPECT_FALSE(store.Find(2, "ann", kAbc, 1).ok());
  EXPECT_EQ(store.bytes(), 0);
}

TEST(BlobStore, WhatNobodyHasVerifiedIsItsSessionsOwn) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kAbc, 1)), "abc");
  EXPECT_FALSE(store.Find(2, "ann", kAbc, 1).ok());
  EXPECT_FALSE(store.AreVerified("ann", {"other", kAbc}));
  EXPECT_TRUE(store.AreVerified("bob", {kAbc}));
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}, 0), IsEmpty());
  EXPECT_THAT(store.Hold(2, "ann", {kAbc}, 0), IsEmpty());
  store.Verify("bob", {kAbc});
  EXPECT_THAT(store.Hold(1, "bob", {kAbc}, 0), IsEmpty());
  store.Verify("ann", {"other", kAbc});
  EXPECT_TRUE(store.AreVerified("ann", {kAbc}));
  EXPECT_THAT(store.Hold(2, "ann", {kAbc}, 0), ElementsAre(kAbc));
}

TEST(BlobStore, WhatWasUsedBeforeItWasVerifiedMayBeForgotten) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  ASSERT_TRUE(store.Find(1, "ann", kAbc, 1).ok());  // its one use
  store.Verify("ann", {kAbc});
  store.Reclaim(1);
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}, 0), IsEmpty());
}

TEST(BlobStore, WrongDigestIsNeverThere) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kAbc, "abd").ok());
  store.Verify("ann", {kAbc});
  EXPECT_TRUE(store.AreVerified("ann", {kAbc}));  // once is enough
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}, 0), IsEmpty());
  EXPECT_FALSE(store.Find(2, "ann", kAbc, 1).ok());
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kAbc, 1)), "abd");
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  store.Verify("ann", {kAbc});
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}, 0), ElementsAre(kAbc));
  EXPECT_EQ(Bytes(**store.Find(2, "ann", kAbc, 1)), "abc");
  EXPECT_EQ(store.bytes(), 3);
}

TEST(BlobStore, SessionsThatUploadTheSameNameGetTheirOwnBytes) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kAbc, "abd").ok());
  ASSERT_TRUE(Put(store, 2, kAbc, "abc").ok());
  ASSERT_TRUE(Put(store, 3, kAbc, "abc").ok());
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kAbc, 1)), "abd");
  EXPECT_EQ(Bytes(**store.Find(2, "ann", kAbc, 1)), "abc");
  store.Verify("ann", {kAbc});
  EXPECT_THAT(store.Hold(3, "ann", {kAbc}, 0), ElementsAre(kAbc));
  EXPECT_EQ(store.bytes(), 6) << "two of equal contents";
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kAbc, 1)), "abd");
  EXPECT_EQ(Bytes(**store.Find(3, "ann", kAbc, 1)), "abc");
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}, 0), ElementsAre(kAbc));
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kAbc, 1)), "abc");
  EXPECT_EQ(store.bytes(), 3);
}

// A client that uploads wrong bytes under one name many times gets a bounded number of them hashed.
TEST(BlobStore, OneQuestionVerifiesFewBlobsOfAName) {
  BlobStore store(100);
  for (BlobStore::SessionNumber session = 1; session <= 16; ++session)
    ASSERT_TRUE(Put(store, session, kAbc, "abd").ok());
  ASSERT_TRUE(Put(store, 17, kAbc, "abc").ok());
  store.Verify("ann", {kAbc});
  EXPECT_TRUE(store.Hold(18, "ann", {kAbc}, 0).empty());
  store.Verify("ann", {kAbc});
  EXPECT_THAT(store.Hold(18, "ann", {kAbc}, 0), ElementsAre(kAbc));
}

// Sessions are saved one by one: a blob that several share would be saved for each.
TEST(BlobStore, WhatASessionHasUsedIsNotKeptForIt) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  store.Verify("ann", {kAbc});
  EXPECT_THAT(store.Hold(2, "ann", {kAbc}, 0), ElementsAre(kAbc));
  EXPECT_EQ(store.HeldBy(1).size(), 1);
  EXPECT_TRUE(store.Find(1, "ann", kAbc, 1).ok());
  EXPECT_TRUE(store.HeldBy(1).empty());
  EXPECT_EQ(store.HeldBy(2).size(), 1);
  ASSERT_TRUE(Put(store, 1, "a", "x").ok());
  EXPECT_TRUE(store.Find(1, "ann", "a", 2).ok());
  EXPECT_EQ(store.HeldBy(1).size(), 1) << "a private one is uploaded once";
}

TEST(BlobStore, ASessionHoldsItsOwnBeforeWhatIsShared) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  store.Verify("ann", {kAbc});
  ASSERT_TRUE(Put(store, 1, kAbc, "abd").ok());
  ASSERT_TRUE(Put(store, 1, "a", "x").ok());
  const auto held = store.HeldBy(1);
  ASSERT_EQ(held.size(), 2);
  EXPECT_EQ(held[0].first, "a");
  EXPECT_EQ(Bytes(*held[1].second), "abd");
  store.Delete(1, "ann", {kAbc, "a"});
  EXPECT_EQ(store.bytes(), 0);
}

// Every name that Hold returns has its digest, for any overlap of uploads, queries and closed
// sessions.
TEST(BlobStore, ManyThreadsNeverFindWrongBytes) {
  log::SetLevel(log::Level::kError);  // thousands of warnings
  BlobStore store(1 << 20);
  std::vector<std::thread> threads;
  for (int64_t session = 1; session <= 8; ++session) {
    threads.emplace_back([&store, session] {
      for (int round = 0; round < 500; ++round) {
        const bool is_right = (session + round) % 3 != 0;
        const std::string sent = is_right ? "abc" : "abd";
        EXPECT_TRUE(Put(store, session, kAbc, sent).ok());
        EXPECT_EQ(Bytes(**store.Find(session, "ann", kAbc, 1)), sent);
        store.Verify("ann", {kAbc});
        if (!store.Hold(session, "ann", {kAbc}, 1).empty()) {
          EXPECT_EQ(Bytes(**store.Find(session, "ann", kAbc, 1)), "abc");
        }
        const auto others = store.Find(9, "ann", kAbc, 1);
        if (others.ok()) {
          EXPECT_EQ(Bytes(**others), "abc");
        }
        const std::string own = absl::StrCat(kSum, ":", session);
        EXPECT_TRUE(Put(store, session, own, sent).ok());
        store.Verify("ann", {kSumAndDigest});
        if (!store.Hold(session, "ann", {kSumAndDigest}, 1).empty()) {
          EXPECT_EQ(Bytes(**store.Find(session, "ann", kSumAndDigest, 1)), "abc");
        }
        EXPECT_EQ(Bytes(**store.Find(session, "ann", own, 2)), sent);
        if (round % 7 == 0) store.CloseSession(session);
        if (round % 11 == 0) store.Reclaim(1);
      }
      store.CloseSession(session);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.bytes(), 0);
}

TEST(BlobStore, PrivateNamesBelongToTheirSession) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, "weights", "one").ok());
  ASSERT_TRUE(Put(store, 2, "weights", "second").ok());
  EXPECT_EQ(Bytes(**store.Find(1, "ann", "weights", 1)), "one");
  EXPECT_EQ(Bytes(**store.Find(2, "ann", "weights", 1)), "second");
  EXPECT_EQ(store.bytes(), 9);
  ASSERT_TRUE(Put(store, 1, "weights", "again").ok());
  EXPECT_EQ(store.bytes(), 11);
  store.Delete(1, "ann", {"weights"});
  EXPECT_FALSE(store.Find(1, "ann", "weights", 1).ok());
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
  const absl::Status hopeless = store.Begin(1, "ann", "c", ~uint64_t{0}, Host()).status();
  EXPECT_EQ(hopeless.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(hopeless.message()),
              HasSubstr("larger than the limit for all blobs (10 bytes)"));
}

// An upload that is announced but not sent does not block others.
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

// One byte of a large blob takes a block of memory, and the block counts.
TEST(BlobStore, WhatABlobHoldsIsCharged) {
  const auto memory = std::make_shared<memory::HostMemory>(64 << 20, 1);
  const auto account = memory->NewAccount("session s1");
  BlobStore store(64 << 20);
  std::vector<std::unique_ptr<BlobStore::Upload>> uploads;
  absl::Status status;
  while (status.ok()) {
    uploads.push_back(
        *store.Begin(1, "ann", absl::StrCat("blob", uploads.size()), 40 << 20, *account));
    status = Append(*uploads.back(), "x");
    ASSERT_LE(uploads.size(), 40) << "more blocks than there is memory";
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(errors::Details(status)["blob"], absl::StrCat("blob", uploads.size() - 1));
  EXPECT_GE(account->bytes(), static_cast<int64_t>((uploads.size() - 1) * kBlockBytes));
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
  BlobStore::Blob blob = *store.Find(1, "ann", "a", 1);
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
  EXPECT_TRUE(store.Find(1, "ann", kAbc, 1).ok());
  store.Verify("ann", {kAbc});
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}, 0), ElementsAre(kAbc));  // wanted again
  store.Reclaim(3);
  EXPECT_TRUE(store.Find(1, "ann", kAbc, 1).ok());
  EXPECT_TRUE(Put(store, 1, "a", "12345678").ok());
  EXPECT_THAT(store.Hold(1, "ann", {kAbc, "a"}, 0), ElementsAre("a"));
  EXPECT_EQ(store.bytes(), 8);
  EXPECT_TRUE(store.Find(1, "ann", "a", 1).ok());
  store.Reclaim(8);
  EXPECT_TRUE(store.Find(1, "ann", "a", 1).ok());  // private names are kept
}

TEST(BlobStore, WhatASessionWantsIsKeptWhileOthersUseIt) {
  BlobStore store(10);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  store.Verify("ann", {kAbc});
  EXPECT_THAT(store.Hold(2, "ann", {kAbc}, 0), ElementsAre(kAbc));
  EXPECT_TRUE(store.Find(1, "ann", kAbc, 1).ok());
  store.Reclaim(3);
  EXPECT_TRUE(store.Find(2, "ann", kAbc, 1).ok());
  store.Reclaim(3);
  EXPECT_FALSE(store.Find(2, "ann", kAbc, 1).ok());
}

// A session asks again while an earlier operation of it is still waiting.
TEST(BlobStore, WhatIsWantedAgainIsKeptWhileEarlierOperationsUseIt) {
  BlobStore store(10);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  store.Verify("ann", {kAbc});
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}, 5), ElementsAre(kAbc));
  EXPECT_THAT(store.Hold(1, "ann", {kAbc}, 4), ElementsAre(kAbc));  // arrives late
  EXPECT_TRUE(store.Find(1, "ann", kAbc, 5).ok());
  store.Reclaim(3);
  EXPECT_TRUE(store.Find(1, "ann", kAbc, 6).ok());
  store.Reclaim(3);
  EXPECT_FALSE(store.Find(1, "ann", kAbc, 7).ok());
}

TEST(BlobStore, TooFewAndTooManyBytes) {
  BlobStore store(100);
  auto upload = store.Begin(1, "ann", "a", 3, Host());
  ASSERT_TRUE(Append(**upload, "ab").ok());
  EXPECT_EQ((*upload)->Finish().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Append(**upload, "cd").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE((*upload)->is_complete());
  EXPECT_TRUE(Append(**upload, "c").ok());
  EXPECT_TRUE((*upload)->is_complete());
  EXPECT_TRUE((*upload)->Finish().ok());
  EXPECT_EQ(Append(**upload, "d").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Bytes(**store.Find(1, "ann", "a", 1)), "abc");
}

TEST(BlobStore, ASumSaysWhatMayBeThere) {
  BlobStore store(100);
  EXPECT_THAT(store.Hold(1, "ann", {kSum}, 0), IsEmpty());
  ASSERT_TRUE(Put(store, 1, kFirstName, "abc").ok());
  EXPECT_THAT(store.Hold(2, "ann", {kSum, "sum64:0000000000636262"}, 0), ElementsAre(kSum));
  EXPECT_THAT(store.Hold(2, "bob", {kSum}, 0), IsEmpty());
  EXPECT_TRUE(store.HeldBy(2).empty());
  EXPECT_FALSE(store.Find(2, "ann", kSum, 1).ok());
  EXPECT_FALSE(store.Find(2, "ann", kFirstName, 1).ok());
  EXPECT_THAT(store.Hold(1, "ann", {kFirstName}, 0), ElementsAre(kFirstName));
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kFirstName, 1)), "abc");
}

TEST(BlobStore, WhatHasTheSumIsFoundByItsDigest) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kFirstName, "abc").ok());
  EXPECT_FALSE(store.AreVerified("ann", {kSumAndDigest}));
  EXPECT_TRUE(store.AreVerified("ann", {kFirstName, kSum, kAbc}));
  EXPECT_TRUE(store.AreVerified("bob", {kSumAndDigest}));
  EXPECT_THAT(store.Hold(2, "ann", {kSumAndDigest}, 0), IsEmpty());
  store.Verify("ann", {kSumAndDigest});
  EXPECT_TRUE(store.AreVerified("ann", {kSumAndDigest}));
  EXPECT_THAT(store.Hold(2, "ann", {kSumAndDigest}, 0), ElementsAre(kSumAndDigest));
  EXPECT_EQ(Bytes(**store.Find(2, "ann", kSumAndDigest, 1)), "abc");
  EXPECT_FALSE(store.Find(2, "bob", kSumAndDigest, 1).ok());
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kFirstName, 1)), "abc") << "its session has not used it";
  store.CloseSession(1);
  EXPECT_TRUE(store.Find(2, "ann", kSumAndDigest, 1).ok());
  store.CloseSession(2);
  EXPECT_EQ(store.bytes(), 0);
}

TEST(BlobStore, WhatHasTheSumAloneIsNotThere) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kFirstName, "cba").ok());  // the name is wrong
  store.Verify("ann", {kSumAndDigest});
  EXPECT_TRUE(store.AreVerified("ann", {kSumAndDigest}));  // once is enough
  EXPECT_THAT(store.Hold(1, "ann", {kSumAndDigest}, 0), IsEmpty());
  ASSERT_TRUE(Put(store, 2, kSecondName, "abc").ok());
  store.Verify("ann", {kSumAndDigest});
  EXPECT_THAT(store.Hold(1, "ann", {kSumAndDigest}, 0), ElementsAre(kSumAndDigest));
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kSumAndDigest, 1)), "abc");
  EXPECT_EQ(Bytes(**store.Find(1, "ann", kFirstName, 1)), "cba");
}

TEST(BlobStore, ADigestIsVerifiedUnderItsOwnNameToo) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kSumAndDigest, "abd").ok());
  store.Verify("ann", {kSumAndDigest});
  EXPECT_THAT(store.Hold(2, "ann", {kSumAndDigest}, 0), IsEmpty());
  ASSERT_TRUE(Put(store, 1, kSumAndDigest, "abc").ok());
  store.Verify("ann", {kSumAndDigest});
  EXPECT_THAT(store.Hold(2, "ann", {kSumAndDigest, kSum}, 0), ElementsAre(kSumAndDigest, kSum));
  EXPECT_EQ(store.bytes(), 3);
}

TEST(BlobStore, WhatStatesASumIsForgottenOnceItHasBeenUsed) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kFirstName, "abc").ok());
  store.Reclaim(3);
  EXPECT_EQ(store.HeldBy(1).size(), 1);
  store.Verify("ann", {kSumAndDigest});
  store.Reclaim(6);
  EXPECT_THAT(store.Hold(1, "ann", {kSumAndDigest, kFirstName}, 0), ElementsAre(kFirstName))
      << "nobody has asked for the digest, but its session waits to use what it sent";
  ASSERT_TRUE(store.Find(1, "ann", kFirstName, 1).ok());
  EXPECT_TRUE(store.HeldBy(1).empty());
  store.Verify("ann", {kSumAndDigest});
  EXPECT_EQ(store.bytes(), 3) << "used, it is there under the digest alone";
  EXPECT_THAT(store.Hold(2, "ann", {kSumAndDigest}, 0), ElementsAre(kSumAndDigest));
  ASSERT_TRUE(store.Find(2, "ann", kSumAndDigest, 1).ok());
  store.Reclaim(3);
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_THAT(store.Hold(1, "ann", {kSum}, 0), IsEmpty());
}

// Many blobs with the same sum do not make a query slow.
TEST(BlobStore, OneQuestionLooksAtFewBlobsOfASum) {
  BlobStore store(1 << 10);
  for (int i = 100; i < 164; ++i)
    ASSERT_TRUE(Put(store, 1, absl::StrCat(kSum, ":", i), absl::StrCat(i)).ok());
  ASSERT_TRUE(Put(store, 1, kSecondName, "abc").ok());
  for (int i = 0; i < 10; ++i) store.Verify("ann", {kSumAndDigest});
  EXPECT_TRUE(store.AreVerified("ann", {kSumAndDigest}));
  EXPECT_THAT(store.Hold(1, "ann", {kSumAndDigest}, 0), IsEmpty());
  store.Delete(1, "ann", {absl::StrCat(kSum, ":", 163)});
  store.Verify("ann", {kSumAndDigest});
  EXPECT_THAT(store.Hold(1, "ann", {kSumAndDigest}, 0), ElementsAre(kSumAndDigest));
}

// Bytes that another session waits for are not counted against the sender.
TEST(BlobStore, WhatIsThereUnderTwoNamesCountsOnce) {
  BlobStore store(8);
  ASSERT_TRUE(Put(store, 1, kFirstName, "abc").ok());
  store.Verify("ann", {kSumAndDigest});
  EXPECT_THAT(store.Hold(2, "ann", {kSumAndDigest}, 0), ElementsAre(kSumAndDigest));
  EXPECT_EQ(store.bytes(), 3);
  EXPECT_TRUE(Put(store, 1, "a", "12345").ok());
  store.Delete(1, "ann", {kFirstName});
  EXPECT_EQ(store.bytes(), 8);
  store.CloseSession(2);
  EXPECT_EQ(store.bytes(), 8) << "its first session holds it, too";
  store.CloseSession(1);
  EXPECT_EQ(store.bytes(), 0);
}

TEST(BlobStore, ReclaimForgetsAsManyBytesAsItSays) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kFirstName, "abc").ok());
  store.Verify("ann", {kSumAndDigest});  // also kept for the session's own use
  ASSERT_TRUE(Put(store, 1, "sum64:0000000000000000:used", "123").ok());
  ASSERT_TRUE(store.Find(1, "ann", "sum64:0000000000000000:used", 1).ok());
  const int64_t before = Host().bytes();
  store.Reclaim(3);
  EXPECT_LT(Host().bytes(), before);
  EXPECT_EQ(store.bytes(), 3);
}

// A name with a sum may be uploaded again while its bytes are also stored under a digest.
TEST(BlobStore, WhatIsSentAgainCountsOnce) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kFirstName, "abc").ok());
  store.Verify("ann", {kSumAndDigest});
  ASSERT_TRUE(Put(store, 1, kFirstName, "abcd").ok());
  EXPECT_EQ(store.bytes(), 7);
  store.Reclaim(3);
  EXPECT_EQ(store.bytes(), 4);
}

TEST(BlobStore, WhoEndsWithoutUsingABlobKeepsNobodyFromForgettingIt) {
  BlobStore store(100);
  ASSERT_TRUE(Put(store, 1, kAbc, "abc").ok());
  store.Verify("ann", {kAbc});
  ASSERT_TRUE(store.Find(1, "ann", kAbc, 1).ok());
  EXPECT_THAT(store.Hold(2, "ann", {kAbc}, 0), ElementsAre(kAbc));
  store.CloseSession(2);
  store.Reclaim(3);
  EXPECT_EQ(store.bytes(), 0);
}

TEST(BlobStore, WhatHasTheNameIsVerifiedBesideManyOthersOfItsSum) {
  BlobStore store(1 << 10);
  for (int i = 100; i < 164; ++i)
    ASSERT_TRUE(Put(store, 1, absl::StrCat(kSum, ":", i), absl::StrCat(i)).ok());
  for (int i = 0; i < 10; ++i) store.Verify("ann", {kSumAndDigest});
  ASSERT_TRUE(Put(store, 1, kSumAndDigest, "abc").ok());
  store.Verify("ann", {kSumAndDigest});
  EXPECT_THAT(store.Hold(2, "ann", {kSumAndDigest}, 0), ElementsAre(kSumAndDigest));
}

// A client does not ask after a restart whether a blob without a digest still exists.
TEST(BlobStore, WhatIsOneSessionsAloneComesBackWhereThereIsNoRoom) {
  BlobStore store(3);
  const auto put_again = [&](const std::string& name) {
    const auto upload = store.BeginAgain(1, "ann", name, 3, Host());
    return Append(**upload, "abc").ok() && (*upload)->Finish().ok();
  };
  EXPECT_TRUE(put_again(kFirstName));
  EXPECT_TRUE(put_again("a"));
  EXPECT_TRUE(put_again(kSecondName));
  EXPECT_FALSE(put_again(kSumAndDigest));
}

}  // namespace
}  // namespace kiln::buffers
