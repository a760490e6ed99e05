#include "server/sessions/program_table.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"

namespace kiln::sessions {
namespace {

using ::testing::HasSubstr;

// Uses invalid graphs, which need neither a device nor a compiler.
class ProgramTableTest : public ::testing::Test {
 protected:
  static DefineProgram BrokenProgram(uint64_t program) {
    return {program, absl::InvalidArgumentError("no such op"), "broken"};
  }
  absl::Status Find(uint64_t program) {
    return table_.Find(++sequence_, RunProgram{program, {}, {}, {}, false}).status();
  }

  uint64_t sequence_ = 0;
  const std::shared_ptr<memory::Account> account_ =
      std::make_shared<memory::HostMemory>(1 << 20, 1)->NewAccount("");
  ProgramTable table_{{nullptr, nullptr, {}, account_, 4, "ann"}};
};

TEST_F(ProgramTableTest, ABrokenGraphIsTheErrorOfItsRuns) {
  EXPECT_EQ(table_.Define(BrokenProgram(1)).status().message(), "no such op");
  EXPECT_EQ(Find(1).message(), "no such op");
  EXPECT_EQ(table_.MustWaitFor(++sequence_, RunProgram{1, {}, {}, {}, false}), nullptr);
}

TEST_F(ProgramTableTest, NumbersAreNeverReused) {
  EXPECT_THAT(std::string(table_.Define(BrokenProgram(0)).status().message()),
              HasSubstr("program id 0 is not allowed"));
  EXPECT_FALSE(table_.Define(BrokenProgram(1)).ok());
  EXPECT_TRUE(table_.Release(1).ok());
  EXPECT_EQ(errors::Reason(table_.Define(BrokenProgram(1)).status()), "PROGRAM_REUSED");
}

TEST_F(ProgramTableTest, SaysWhetherANumberWasReleased) {
  EXPECT_FALSE(table_.Define(BrokenProgram(1)).ok());
  EXPECT_TRUE(table_.Release(1).ok());
  EXPECT_THAT(std::string(Find(1).message()), HasSubstr("program 1 has been released"));
  EXPECT_THAT(std::string(table_.Release(1).message()), HasSubstr("has been released"));
  EXPECT_THAT(std::string(Find(2).message()), HasSubstr("program 2 is unknown"));
  EXPECT_THAT(std::string(table_.Release(2).message()), HasSubstr("is unknown in this session"));
}

TEST_F(ProgramTableTest, WithoutRoomANumberStaysFree) {
  memory::Charge rest = account_->Open(memory::Use::kBlobs);
  rest.ForceResize(1 << 20);
  EXPECT_EQ(errors::Reason(table_.Define(BrokenProgram(1)).status()), "HOST_MEMORY");
  EXPECT_EQ(table_.size(), 0);
  EXPECT_THAT(std::string(Find(1).message()), HasSubstr("program 1 is unknown"));
  rest.Release();
  EXPECT_EQ(table_.Define(BrokenProgram(1)).status().message(), "no such op");
}

TEST_F(ProgramTableTest, EntriesAreChargedUntilTheyGo) {
  EXPECT_FALSE(table_.Define(BrokenProgram(1)).ok());
  EXPECT_FALSE(table_.Define(BrokenProgram(2)).ok());
  const int64_t both = account_->bytes();
  EXPECT_GT(both, 0);
  EXPECT_TRUE(table_.Release(1).ok());
  EXPECT_EQ(account_->bytes(), both / 2);
  EXPECT_EQ(table_.TakeAll().size(), 1);
  EXPECT_EQ(table_.size(), 0);
  EXPECT_EQ(account_->bytes(), 0);
}

}  // namespace
}  // namespace kiln::sessions
