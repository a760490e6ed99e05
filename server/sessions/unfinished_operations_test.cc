#include "server/sessions/unfinished_operations.h"

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

class UnfinishedOperationsTest : public ::testing::Test {
 protected:
  static Operation WriteOf(size_t bytes) {
    return Write{1, {ir::DType::kInt8, {static_cast<int64_t>(bytes)}}, std::string(bytes, 'x'), {}};
  }
  void Admit(uint64_t sequence, Operation operation = Barrier()) {
    unfinished_.Admit(sequence, &operation);
  }

  const std::shared_ptr<memory::Account> account_ =
      std::make_shared<memory::HostMemory>(1 << 20, 1)->NewAccount("");
  UnfinishedOperations unfinished_{account_, {3, 100'000}};
};

TEST_F(UnfinishedOperationsTest, ChargesUntilTheEnd) {
  Admit(1);
  EXPECT_GT(account_->bytes(), 0);
  const int64_t small = account_->bytes();
  Admit(2, WriteOf(50'000));
  EXPECT_GE(account_->bytes(), small + 50'000);
  unfinished_.End(2);
  EXPECT_EQ(account_->bytes(), small);
  EXPECT_FALSE(unfinished_.empty());
  unfinished_.End(1);
  EXPECT_EQ(account_->bytes(), 0);
  EXPECT_TRUE(unfinished_.empty());
}

TEST_F(UnfinishedOperationsTest, LimitsTheirNumberAndTheirBytes) {
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(unfinished_.HasRoom());
    Admit(i);
  }
  EXPECT_FALSE(unfinished_.HasRoom());
  unfinished_.End(2);
  EXPECT_TRUE(unfinished_.HasRoom());
  Admit(4, WriteOf(100'000));
  unfinished_.End(1);
  EXPECT_FALSE(unfinished_.HasRoom());
  unfinished_.End(4);
  EXPECT_TRUE(unfinished_.HasRoom());
}

TEST_F(UnfinishedOperationsTest, WhatHasNoRoomIsRefused) {
  Operation large = WriteOf(2 << 20);
  unfinished_.Admit(1, &large);
  ASSERT_TRUE(std::holds_alternative<Refused>(large));
  EXPECT_EQ(errors::Reason(std::get<Refused>(large).error), "HOST_MEMORY");
  EXPECT_THAT(std::get<Refused>(large).handles, ElementsAre(1));
  EXPECT_EQ(account_->bytes(), 0);
  unfinished_.End(1);
  EXPECT_EQ(account_->bytes(), 0);
}

TEST_F(UnfinishedOperationsTest, OneOfManyInAMessageIsRefusedSooner) {
  memory::Charge rest = account_->Open(memory::Use::kBlobs);
  rest.ForceResize(1 << 20);
  Operation alone = WriteOf(32 << 10), together = WriteOf(32 << 10);
  unfinished_.Admit(1, &alone);
  EXPECT_FALSE(std::holds_alternative<Refused>(alone));
  unfinished_.Admit(2, &together, /*travels_alone=*/false);
  EXPECT_TRUE(std::holds_alternative<Refused>(together));
}

TEST_F(UnfinishedOperationsTest, OneAtATimeWhileMemoryIsShort) {
  memory::Charge rest = account_->Open(memory::Use::kBlobs);
  rest.ForceResize(1 << 20);
  ASSERT_TRUE(account_->memory().IsShort());
  EXPECT_TRUE(unfinished_.HasRoom());
  Admit(1);
  EXPECT_FALSE(unfinished_.HasRoom());
  rest.Release();
  EXPECT_TRUE(unfinished_.HasRoom());
}

TEST_F(UnfinishedOperationsTest, BarriersWaitForAllBeforeThem) {
  for (uint64_t i = 1; i <= 3; ++i) Admit(i);
  EXPECT_THAT(unfinished_.End(2), IsEmpty());
  EXPECT_TRUE(unfinished_.AddBarrier(3));
  Admit(4);
  Admit(5);
  EXPECT_TRUE(unfinished_.AddBarrier(5));
  EXPECT_THAT(unfinished_.End(4), IsEmpty());  // after the first barrier
  EXPECT_THAT(unfinished_.End(1), ElementsAre(3));
  EXPECT_THAT(unfinished_.End(3), ElementsAre(5));
  EXPECT_THAT(unfinished_.End(5), IsEmpty());
  Admit(6);
  EXPECT_FALSE(unfinished_.AddBarrier(6));  // no earlier operation is unfinished
}

TEST_F(UnfinishedOperationsTest, ClearGivesAllBack) {
  Admit(1);
  Admit(2, WriteOf(50'000));
  unfinished_.Clear();
  EXPECT_EQ(account_->bytes(), 0);
}

}  // namespace
}  // namespace kiln::sessions
