#include "server/memory/host_memory.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"

namespace kiln::memory {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMebibyte = 1 << 20;

TEST(HostMemory, CountsByUseUntilAChargeEnds) {
  const auto memory = std::make_shared<HostMemory>(160 * kMebibyte, 20);
  const auto account = memory->NewAccount("session s1");
  {
    auto graph = account->Reserve(Use::kGraphs, 10);
    auto blob = account->Reserve(Use::kBlobs, 20);
    ASSERT_TRUE(graph.ok() && blob.ok());
    EXPECT_TRUE(graph->Resize(15).ok());
    EXPECT_EQ(memory->used_bytes(Use::kGraphs), 15);
    EXPECT_EQ(account->bytes(), 35);
    const Charge moved = *std::move(blob);
    EXPECT_EQ(blob->bytes(), 0);
    EXPECT_EQ(moved.bytes(), 20);
    EXPECT_EQ(memory->used_bytes(), 35);
  }
  EXPECT_EQ(memory->used_bytes(), 0);
  EXPECT_EQ(account->bytes(), 0);
}

TEST(HostMemory, RefusesWithWhoHoldsWhat) {
  const auto memory = std::make_shared<HostMemory>(160 * kMebibyte, 20);
  const auto account = memory->NewAccount("session s1");
  auto held = account->Reserve(Use::kBlobs, 60 * kMebibyte);
  ASSERT_TRUE(held.ok());
  const absl::Status refused = account->Reserve(Use::kGraphs, 60 * kMebibyte).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(errors::Reason(refused), "HOST_MEMORY");
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("host memory is too small for 60.0 MiB of graphs: 60.0 MiB of 160.0 MiB are in use "
                "(blobs 60.0 MiB), 60.0 MiB of it by session s1; each session is guaranteed 2.0 "
                "MiB, and all sessions of a user may hold up to 4 times the memory that is free"));
  EXPECT_EQ(memory->used_bytes(), 60 * kMebibyte);
  EXPECT_EQ(memory->refused(), 1);
  EXPECT_FALSE(held->Resize(80 * kMebibyte).ok());
  EXPECT_EQ(held->bytes(), 60 * kMebibyte);
  EXPECT_FALSE(account->Reserve(Use::kBlobs, int64_t{1} << 62).ok());
}

TEST(HostMemory, ManyThatTakeAllTheyCanLeaveRoomForOneMore) {
  const auto memory = std::make_shared<HostMemory>(160 * kMebibyte, 20);
  std::vector<Charge> charges;
  for (int i = 0; i < 10; ++i) {
    const auto greedy = memory->NewAccount("greedy");
    for (auto charge = greedy->Reserve(Use::kBlobs, kMebibyte / 16); charge.ok();
         charge = greedy->Reserve(Use::kBlobs, kMebibyte / 16)) {
      charges.push_back(*std::move(charge));
    }
    if (i == 0) {
      EXPECT_NEAR(greedy->bytes() / kMebibyte, 67, 1);
    }
  }
  EXPECT_LE(memory->used_bytes(), memory->limit_bytes());
  EXPECT_TRUE(memory->NewAccount("modest")->Reserve(Use::kHandles, 2 * kMebibyte).ok());
}

// Makes charges of a sixteenth of a mebibyte until one is refused, at most `bytes_max` bytes.
void TakeAll(Account& account, int64_t bytes_max, std::vector<Charge>* charges) {
  while (account.bytes() < bytes_max) {
    auto charge = account.Reserve(Use::kBlobs, kMebibyte / 16);
    if (!charge.ok()) return;
    charges->push_back(*std::move(charge));
  }
}

TEST(HostMemory, TheSessionsOfAUserShareAsOne) {
  const auto memory = std::make_shared<HostMemory>(160 * kMebibyte, 20);
  const auto ann = memory->NewAccount("user ann");
  std::vector<Charge> charges;
  for (int i = 0; i < 10; ++i) {
    TakeAll(*memory->NewAccount("session", ann), memory->limit_bytes(), &charges);
  }
  // A single session gets 67 MiB; nine more have their guaranteed parts and are small.
  EXPECT_LE(ann->bytes() / kMebibyte, 120);
  const auto session = memory->NewAccount("session s1", memory->NewAccount("user bob"));
  EXPECT_TRUE(session->Reserve(Use::kHandles, 5 * kMebibyte).ok());
  const absl::Status refused =
      memory->NewAccount("session s2", ann)->Reserve(Use::kBlobs, 20 * kMebibyte).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("by session s2 and "));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("by user ann; each session"));
  charges.clear();
  EXPECT_EQ(ann->bytes(), 0);
}

TEST(HostMemory, ManySmallSessionsOfOneUserLeaveRoomForAnother) {
  const auto memory = std::make_shared<HostMemory>(160 * kMebibyte, 100);
  const auto ann = memory->NewAccount("user ann");
  std::vector<Charge> charges;
  // Each is small, so without its user it could use all shared memory.
  for (int i = 0; i < 80; ++i)
    TakeAll(*memory->NewAccount("session", ann), 5 * kMebibyte, &charges);
  EXPECT_LT(ann->bytes(), memory->limit_bytes());
  const auto bob = memory->NewAccount("session", memory->NewAccount("user bob"));
  TakeAll(*bob, 5 * kMebibyte, &charges);
  EXPECT_EQ(bob->bytes(), 5 * kMebibyte);
}

TEST(HostMemory, WhatCannotBeRefusedIsCountedAllTheSame) {
  const auto memory = std::make_shared<HostMemory>(160, 20);
  const auto account = memory->NewAccount("session s1");
  Charge charge = account->Open(Use::kAnswers);
  charge.ForceResize(155);
  EXPECT_EQ(memory->used_bytes(Use::kAnswers), 155);
  EXPECT_TRUE(memory->IsShort());
  EXPECT_FALSE(account->Reserve(Use::kAnswers, 1).ok());
  charge.Release();
  EXPECT_FALSE(memory->IsShort());
}

TEST(HostMemory, ReclaimsBeforeItRefuses) {
  const auto memory = std::make_shared<HostMemory>(160, 20);
  const auto account = memory->NewAccount("session s1");
  Charge idle = account->Open(Use::kPrograms);
  memory->SetReclaimer([&](int64_t bytes, const std::string& user) {
    EXPECT_EQ(bytes, 50);
    EXPECT_EQ(user, "");
    idle.Release();
  });
  idle.ForceResize(150);
  EXPECT_TRUE(account->Reserve(Use::kGraphs, 50).ok());
}

TEST(HostMemory, AUserHasALimitOfHisOwn) {
  const auto memory = std::make_shared<HostMemory>(1600, 2);
  const auto ann = memory->NewUserAccount("ann");
  const auto session = memory->NewAccount("session s1", ann);
  ann->SetLimit(100);
  Charge idle = session->Open(Use::kBlobs);
  std::string reclaimed_of = "nobody";
  memory->SetReclaimer([&](int64_t, const std::string& user) { reclaimed_of = user; });
  idle.ForceResize(60);
  // No other account's memory is reclaimed for it.
  const absl::Status refused = session->Reserve(Use::kGraphs, 50).status();
  EXPECT_EQ(reclaimed_of, "ann");
  EXPECT_EQ(errors::Reason(refused), "QUOTA_EXCEEDED");
  EXPECT_EQ(errors::Details(refused).at("quota"), "host_memory");
  EXPECT_EQ(errors::Details(refused).at("used"), "60");
  EXPECT_EQ(memory->used_bytes(), 60);
  EXPECT_TRUE(memory->NewAccount("session s2")->Reserve(Use::kGraphs, 50).ok());
  ann->SetLimit(0);
  EXPECT_TRUE(session->Reserve(Use::kGraphs, 50).ok());
}

// Shared memory that stays counted would be missing from then on.
TEST(HostMemory, AUsersOwnChargeCountsTheSameWhenItEnds) {
  const auto memory = std::make_shared<HostMemory>(1600, 2);
  const auto ann = memory->NewUserAccount("ann");
  const auto session = memory->NewAccount("session s1", ann);
  for (int i = 0; i < 100; ++i) {
    Charge of_session = session->Open(Use::kBlobs);
    of_session.ForceResize(200);
    Charge of_user = ann->Open(Use::kTransfers);
    of_user.ForceResize(100);
    EXPECT_EQ(ann->bytes(), 300);
    of_session.Release();
  }
  EXPECT_FALSE(memory->IsShort());
  EXPECT_TRUE(memory->NewAccount("session s2")->Reserve(Use::kGraphs, 800).ok());
}

TEST(HostMemory, ThreadsLeaveNothingBehind) {
  const auto memory = std::make_shared<HostMemory>(1600, 4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([account = memory->NewAccount("session")] {
      for (int i = 0; i < 2000; ++i) account->Reserve(Use::kGraphs, i % 300).IgnoreError();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory->used_bytes(), 0);
}

}  // namespace
}  // namespace kiln::memory
