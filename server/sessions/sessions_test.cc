#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"
#include "server/sessions/answer_log.h"
#include "server/sessions/handle_table.h"
#include "server/sessions/id_set.h"
#include "server/sessions/registry.h"

namespace kiln::sessions {
namespace {

using ::testing::HasSubstr;

TEST(IdSet, CountingUpIsOneInterval) {
  IdSet set;
  for (uint64_t id = 1; id <= 1000; ++id) EXPECT_TRUE(set.Insert(id));
  EXPECT_EQ(set.intervals(), 1);
  EXPECT_FALSE(set.Insert(500));
  EXPECT_TRUE(set.Contains(1));
  EXPECT_TRUE(set.Contains(1000));
  EXPECT_FALSE(set.Contains(0));
  EXPECT_FALSE(set.Contains(1001));
}

TEST(IdSet, AnyOrderMeetsInOneInterval) {
  IdSet set;
  for (const uint64_t id : {10, 12, 14, 11, 13, 9}) EXPECT_TRUE(set.Insert(id));
  EXPECT_EQ(set.intervals(), 1);
  EXPECT_TRUE(set.Insert(~uint64_t{0}));
  EXPECT_EQ(set.intervals(), 2);
  EXPECT_FALSE(set.Contains(8));
  EXPECT_FALSE(set.Contains(15));
}

std::shared_ptr<const Answer> AnswerOf(uint64_t sequence, int64_t bytes = 0) {
  static const auto& memory = *new auto(std::make_shared<memory::HostMemory>(1 << 20, 1));
  Answer answer{.sequence = sequence,
                .charge = memory->NewAccount("")->Open(memory::Use::kAnswers)};
  answer.charge.ForceResize(bytes);
  return std::make_shared<const Answer>(std::move(answer));
}

TEST(AnswerLog, EachSequenceNumberOnce) {
  AnswerLog log;
  EXPECT_TRUE(*log.Receive(1));
  EXPECT_TRUE(*log.Receive(2));
  EXPECT_FALSE(*log.Receive(1));
  EXPECT_FALSE(*log.Receive(2));
  EXPECT_FALSE(log.Receive(0).ok());
  EXPECT_THAT(std::string(log.Receive(4).status().message()),
              HasSubstr("the next sequence number must be 3"));
  EXPECT_EQ(log.last_received(), 2);
}

TEST(AnswerLog, KeepsWhatIsNotAcknowledged) {
  AnswerLog log;
  // Answers come in the order of completion.
  for (const uint64_t sequence : {3, 1, 2}) log.Add(AnswerOf(sequence, 4));
  EXPECT_EQ(log.bytes(), 12);
  log.Acknowledge(1);
  const auto left = log.Unacknowledged();
  ASSERT_EQ(left.size(), 2);
  EXPECT_EQ(left[0]->sequence, 2);
  EXPECT_EQ(left[1]->sequence, 3);
  log.Acknowledge(100);
  EXPECT_TRUE(log.Unacknowledged().empty());
  EXPECT_EQ(log.bytes(), 0);
}

TEST(AnswerLog, FewAnswersMayWaitWhileMemoryIsShort) {
  AnswerLog log;
  log.Add(AnswerOf(1, 300 << 10));
  log.Add(AnswerOf(2));
  EXPECT_TRUE(log.CheckAcknowledged({2, 300 << 10}, false).ok());
  EXPECT_THAT(std::string(log.CheckAcknowledged({2, 300 << 10}, true).message()),
              HasSubstr("2 answers of 307200 bytes have not been acknowledged, and the daemon is "
                        "short of host memory"));
  EXPECT_EQ(errors::Reason(log.CheckAcknowledged({1, 300 << 10}, false)), "UNACKNOWLEDGED");
  EXPECT_EQ(errors::Reason(log.CheckAcknowledged({2, 1 << 10}, false)), "UNACKNOWLEDGED");
  log.Acknowledge(1);
  EXPECT_TRUE(log.CheckAcknowledged({1, 1 << 10}, true).ok());
}

class HandleTableTest : public ::testing::Test {
 protected:
  static runtime::ValuePointer FailedWith(const char* why) {
    return buffers::Value::Failed(absl::InternalError(why));
  }
  const std::shared_ptr<memory::Account> account_ =
      std::make_shared<memory::HostMemory>(1 << 20, 1)->NewAccount("");
  absl::Status Release(const std::vector<uint64_t>& handles) {
    std::vector<runtime::ValuePointer> released;
    return table_.Release(handles, &released);
  }

  HandleTable table_{account_};
};

TEST_F(HandleTableTest, NeverReused) {
  EXPECT_TRUE(table_.Reserve({1, 2}).ok());
  EXPECT_THAT(std::string(table_.Reserve({1, 1}).message()), HasSubstr("handle 1 is given twice"));
  table_.Bind({1}, {FailedWith("x")});
  EXPECT_TRUE(Release({1}).ok());
  EXPECT_FALSE(table_.Reserve({1}).ok());
  EXPECT_THAT(std::string(table_.Find(1).status().message()), HasSubstr("has been released"));
  EXPECT_THAT(std::string(table_.Find(2).status().message()), HasSubstr("is unknown"));
  EXPECT_EQ(Release({1}).code(), absl::StatusCode::kNotFound);
}

TEST_F(HandleTableTest, ReleasesWhatItKnowsAndNamesTheRest) {
  ASSERT_TRUE(table_.Reserve({1, 2}).ok());
  table_.Bind({1, 2}, {FailedWith("one"), FailedWith("two")});
  EXPECT_THAT(std::string(Release({1, 7, 2, 8}).message()), HasSubstr("handle 7 is unknown"));
  EXPECT_FALSE(table_.Find(1).ok());
  EXPECT_FALSE(table_.Find(2).ok());
}

TEST_F(HandleTableTest, FailedBindingsLeaveWhatIsThere) {
  ASSERT_TRUE(table_.Reserve({1}).ok());
  table_.Bind({1}, {FailedWith("old")});
  table_.BindFailed({0, 1, 2}, absl::InternalError("new"));
  EXPECT_EQ((*table_.Find(1))->status().message(), "old");
  EXPECT_EQ((*table_.Find(2))->status().message(), "new");
  EXPECT_FALSE(table_.Find(0).ok());
}

TEST_F(HandleTableTest, ChargesForWhatItHolds) {
  ASSERT_TRUE(table_.Reserve({1, 2, 3}).ok());
  const int64_t reserved = account_->bytes();
  EXPECT_GT(reserved, 0);
  table_.Bind({1}, {FailedWith("x")});
  EXPECT_LT(account_->bytes(), reserved);  // memory of handles that were not bound is freed
  const int64_t one = account_->bytes();
  table_.BindFailed({2}, absl::InternalError(std::string(1000, 'x')));
  EXPECT_GE(account_->bytes(), one + 1000);
}

TEST_F(HandleTableTest, NothingIsBoundWithoutRoom) {
  std::vector<uint64_t> many(2000);
  for (uint64_t i = 0; i < many.size(); ++i) many[i] = i + 1;
  EXPECT_TRUE(absl::IsResourceExhausted(table_.Reserve(many)));
  table_.BindFailed(many, absl::InternalError("no room"));
  EXPECT_FALSE(table_.Find(1).ok());
  EXPECT_EQ(account_->bytes(), 0);
}

TEST_F(HandleTableTest, HoldsNothingOnceEmptied) {
  ASSERT_TRUE(table_.Reserve({1, 2}).ok());
  table_.Bind({1, 2}, {FailedWith("x"), FailedWith("y")});
  EXPECT_EQ(table_.TakeAll().size(), 2);
  EXPECT_EQ(account_->bytes(), 0);
  EXPECT_FALSE(Release({1}).ok());
  EXPECT_EQ(account_->bytes(), 0);
}

using HandleTableDeathTest = HandleTableTest;

TEST_F(HandleTableDeathTest, BindsOnlyWhatIsReservedAndNew) {
  EXPECT_DEATH(table_.Bind({1}, {FailedWith("x")}), "invariant violated.*not reserved");
  ASSERT_TRUE(table_.Reserve({1}).ok());
  table_.Bind({1}, {FailedWith("x")});
  ASSERT_TRUE(table_.Reserve({2}).ok());
  EXPECT_DEATH(table_.Bind({1}, {FailedWith("y")}), "handle 1 is bound twice");
  EXPECT_DEATH((void)table_.Rebind(2, FailedWith("y")), "handle 2 is unknown");
}

TEST(AnswerLogDeathTest, AnOperationHasOneAnswer) {
  AnswerLog log;
  log.Add(AnswerOf(1));
  EXPECT_DEATH(log.Add(AnswerOf(1)), "operation 1 is answered twice");
}

TEST(RandomId, IsLongAndNew) {
  EXPECT_EQ(RandomId().size(), 32);
  EXPECT_NE(RandomId(), RandomId());
}

}  // namespace
}  // namespace kiln::sessions
