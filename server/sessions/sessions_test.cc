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
              HasSubstr("the next sequence number is 3"));
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
  EXPECT_EQ(log.size(), 0);
  EXPECT_EQ(log.bytes(), 0);
}

TEST(HandleTable, NeverReused) {
  HandleTable table;
  const auto value = buffers::Value::Failed(absl::InternalError("x"));
  EXPECT_TRUE(table.CheckNew({1, 2}).ok());
  EXPECT_THAT(std::string(table.CheckNew({1, 1}).message()), HasSubstr("handle 1 is given twice"));
  table.Bind(1, value);
  EXPECT_TRUE(table.Release(1).ok());
  EXPECT_FALSE(table.CheckNew({1}).ok());
  EXPECT_THAT(std::string(table.Find(1).status().message()), HasSubstr("has been released"));
  EXPECT_THAT(std::string(table.Find(2).status().message()), HasSubstr("is unknown"));
  EXPECT_EQ(table.Release(1).code(), absl::StatusCode::kNotFound);
}

TEST(HandleTable, PoisonLeavesWhatIsThere) {
  HandleTable table;
  const auto value = buffers::Value::Failed(absl::InternalError("old"));
  table.Bind(1, value);
  table.Poison({0, 1, 2}, absl::InternalError("new"));
  EXPECT_EQ((*table.Find(1))->status().message(), "old");
  EXPECT_EQ((*table.Find(2))->status().message(), "new");
  EXPECT_EQ(table.size(), 2);
}

TEST(RandomId, IsLongAndNew) {
  EXPECT_EQ(RandomId().size(), 32);
  EXPECT_NE(RandomId(), RandomId());
}

}  // namespace
}  // namespace kiln::sessions
