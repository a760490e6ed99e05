#include "server/sessions/pending_table.h"

#include <memory>
#include <string>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"

namespace kiln::sessions {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PendingTableTest : public ::testing::Test {
 protected:
  static Operation WriteOf(size_t bytes) {
    return Write{1, {ir::DType::kInt8, {static_cast<int64_t>(bytes)}}, std::string(bytes, 'x'), {}};
  }
  void Admit(uint64_t sequence, Operation operation = Barrier()) {
    pending_.Admit(sequence, &operation);
  }

  const std::shared_ptr<memory::Account> account_ =
      std::make_shared<memory::HostMemory>(1 << 20, 1)->NewAccount("");
  PendingTable pending_{account_, {3, 100'000}};
};

TEST_F(PendingTableTest, ChargesUntilTheEnd) {
  Admit(1);
  EXPECT_GT(account_->bytes(), 0);
  const int64_t small = account_->bytes();
  Admit(2, WriteOf(50'000));
  EXPECT_GE(account_->bytes(), small + 50'000);
  pending_.End(2);
  EXPECT_EQ(account_->bytes(), small);
  EXPECT_FALSE(pending_.empty());
  pending_.End(1);
  EXPECT_EQ(account_->bytes(), 0);
  EXPECT_TRUE(pending_.empty());
}

TEST_F(PendingTableTest, LimitsTheirNumberAndTheirBytes) {
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(pending_.HasRoom());
    Admit(i);
  }
  EXPECT_FALSE(pending_.HasRoom());
  pending_.End(2);
  EXPECT_TRUE(pending_.HasRoom());
  Admit(4, WriteOf(100'000));
  pending_.End(1);
  EXPECT_FALSE(pending_.HasRoom());
  pending_.End(4);
  EXPECT_TRUE(pending_.HasRoom());
}

TEST_F(PendingTableTest, WhatHasNoRoomIsRefused) {
  Operation large = WriteOf(2 << 20);
  pending_.Admit(1, &large);
  ASSERT_TRUE(std::holds_alternative<Refused>(large));
  EXPECT_EQ(errors::Reason(std::get<Refused>(large).error), "HOST_MEMORY");
  EXPECT_THAT(std::get<Refused>(large).handles, ElementsAre(1));
  EXPECT_EQ(account_->bytes(), 0);
  pending_.End(1);
  EXPECT_EQ(account_->bytes(), 0);
}

TEST_F(PendingTableTest, OneOfManyInAMessageIsRefusedSooner) {
  memory::Charge rest = account_->Open(memory::Use::kBlobs);
  rest.ForceResize(1 << 20);
  Operation alone = WriteOf(32 << 10), together = WriteOf(32 << 10);
  pending_.Admit(1, &alone);
  EXPECT_FALSE(std::holds_alternative<Refused>(alone));
  pending_.Admit(2, &together, /*travels_alone=*/false);
  EXPECT_TRUE(std::holds_alternative<Refused>(together));
}

TEST_F(PendingTableTest, OneAtATimeWhileMemoryIsShort) {
  memory::Charge rest = account_->Open(memory::Use::kBlobs);
  rest.ForceResize(1 << 20);
  ASSERT_TRUE(account_->memory().IsShort());
  EXPECT_TRUE(pending_.HasRoom());
  Admit(1);
  EXPECT_FALSE(pending_.HasRoom());
  rest.Release();
  EXPECT_TRUE(pending_.HasRoom());
}

TEST_F(PendingTableTest, BarriersWaitForAllBeforeThem) {
  for (uint64_t i = 1; i <= 3; ++i) Admit(i);
  EXPECT_THAT(pending_.End(2), IsEmpty());
  EXPECT_TRUE(pending_.AddBarrier(3));
  Admit(4);
  Admit(5);
  EXPECT_TRUE(pending_.AddBarrier(5));
  EXPECT_THAT(pending_.End(4), IsEmpty());  // after the first barrier
  EXPECT_THAT(pending_.End(1), ElementsAre(3));
  EXPECT_THAT(pending_.End(3), ElementsAre(5));
  EXPECT_THAT(pending_.End(5), IsEmpty());
  Admit(6);
  EXPECT_FALSE(pending_.AddBarrier(6));  // no earlier operation is pending
}

using PendingTableDeathTest = PendingTableTest;

TEST_F(PendingTableDeathTest, OperationsAreAdmittedOnceAndEndOnce) {
  Admit(1);
  Admit(2);
  EXPECT_DEATH(Admit(2), "operation 2 after 2");
  EXPECT_DEATH(pending_.SetExecuted(3, PendingBarrier()), "operation 3 was not admitted");
  pending_.SetExecuted(2, PendingBarrier());
  EXPECT_DEATH(pending_.SetExecuted(2, PendingBarrier()), "operation 2 is executed twice");
  EXPECT_DEATH(pending_.End(2), "operation 2 is still executed");
  pending_.End(1);
  EXPECT_DEATH(pending_.End(1), "operation 1 is not pending");
}

TEST_F(PendingTableTest, TakingAllGivesAllBack) {
  Admit(1);
  Admit(2, WriteOf(50'000));
  pending_.TakeAll();
  EXPECT_EQ(account_->bytes(), 0);
}

}  // namespace
}  // namespace kiln::sessions
