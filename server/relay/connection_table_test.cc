#include "server/relay/connection_table.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ConnectionTableTest : public ::testing::Test {
 protected:
  // Adds a connection one second after the previous one.
  std::vector<uint64_t> Add(uint64_t number, const std::string& origin = "here") {
    now_ += absl::Seconds(1);
    activities_[number] = std::make_shared<ConnectionTable::Activity>(now_);
    return table_.Add(number, origin, activities_[number]);
  }
  std::vector<uint64_t> AddOfUser(uint64_t number, const std::string& user) {
    std::vector<uint64_t> closed = Add(number);
    for (const uint64_t other : table_.SetUser(number, user)) closed.push_back(other);
    return closed;
  }

  absl::Time now_ = absl::UnixEpoch();
  std::map<uint64_t, std::shared_ptr<ConnectionTable::Activity>> activities_;
  ConnectionTable table_{
      {.connections_max = 6, .user_max = 3, .strangers_max = 3, .all_strangers_max = 4}};
};

TEST_F(ConnectionTableTest, OfAnOwnerWithTooManyTheMostSilentOneCloses) {
  for (const uint64_t number : {1, 2, 3}) EXPECT_THAT(AddOfUser(number, "ann"), IsEmpty());
  activities_[1]->Note(now_ + absl::Seconds(1));
  EXPECT_THAT(AddOfUser(4, "ann"), ElementsAre(2));
  EXPECT_THAT(AddOfUser(5, "bob"), IsEmpty());
  EXPECT_EQ(table_.size(), 4);
}

TEST_F(ConnectionTableTest, StrangersOfOneOriginAreOneOwner) {
  for (const uint64_t number : {1, 2, 3}) EXPECT_THAT(Add(number), IsEmpty());
  EXPECT_THAT(Add(4, "there"), IsEmpty());
  EXPECT_THAT(Add(5), ElementsAre(1));
  // Connections of known users do not count as strangers.
  EXPECT_THAT(table_.SetUser(5, "ann"), IsEmpty());
  EXPECT_THAT(Add(6), IsEmpty());
}

// A user with few connections gets in, and keeps theirs.
TEST_F(ConnectionTableTest, WhereAllAreTooManyTheOwnerWithTheMostLosesOne) {
  EXPECT_THAT(AddOfUser(1, "bob"), IsEmpty());
  EXPECT_THAT(AddOfUser(2, "cat"), IsEmpty());
  EXPECT_THAT(AddOfUser(3, "dan"), IsEmpty());
  for (const uint64_t number : {4, 5, 6}) EXPECT_THAT(AddOfUser(number, "ann"), IsEmpty());
  EXPECT_THAT(AddOfUser(7, "eve"), ElementsAre(4));
  EXPECT_THAT(AddOfUser(8, "ann"), ElementsAre(5));
}

// A client with many addresses, or with many accounts on a Unix socket.
TEST_F(ConnectionTableTest, StrangersOfManyOriginsCloseEachOther) {
  for (const uint64_t number : {1, 2, 3}) EXPECT_THAT(AddOfUser(number, "ann"), IsEmpty());
  for (const uint64_t number : {4, 5, 6})
    EXPECT_THAT(Add(number, std::to_string(number)), IsEmpty());
  // There are too many in total, and more than an eighth of them are strangers.
  EXPECT_THAT(Add(7, "0"), ElementsAre(4));
  EXPECT_THAT(Add(8, "1"), ElementsAre(5));
  // The origin with more than the others loses one first.
  EXPECT_THAT(Add(9, "1"), ElementsAre(8));
  table_.Remove(1);
  table_.Remove(2);
  EXPECT_THAT(Add(10, "2"), IsEmpty());
  EXPECT_THAT(Add(11, "2"), ElementsAre(10));
}

TEST_F(ConnectionTableTest, AConnectionThatHasEndedCountsNoMore) {
  for (const uint64_t number : {1, 2, 3}) Add(number);
  table_.Remove(1);
  table_.Remove(1);
  EXPECT_THAT(Add(4), IsEmpty());
  EXPECT_THAT(table_.SetUser(1, "ann"), IsEmpty());
  EXPECT_EQ(table_.size(), 3);
}

}  // namespace
}  // namespace kiln::relay
