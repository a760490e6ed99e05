#include "server/runtime/cache/program_request.h"

#include "gtest/gtest.h"
#include "server/errors/errors.h"
#include "server/quota/refusal.h"

namespace kiln::runtime {
namespace {

TEST(Payer, PaysForOneGraphBesideAnotherUntilItsLastCopyIsGone) {
  const auto memory = std::make_shared<memory::HostMemory>(64 << 20, 4);
  const auto account = memory->NewAccount("session s1");
  int64_t one_graph = 0;
  {
    const Payer payer(account);
    const Payer copy = payer;
    const Grow first = payer.ForNextGraph();
    ASSERT_TRUE(first(10).ok());
    ASSERT_TRUE(first(100).ok()) << "it grows";
    one_graph = account->bytes();
    EXPECT_GT(one_graph, 0);
    ASSERT_TRUE(copy.ForNextGraph()(100).ok());
    EXPECT_EQ(account->bytes(), 2 * one_graph);
    EXPECT_TRUE(LacksHostMemory(copy.ForNextGraph()(1 << 20)));
  }
  EXPECT_EQ(account->bytes(), 0);
  EXPECT_TRUE(Payer(nullptr).ForNextGraph()(1 << 30).ok());
}

TEST(Payer, IsNotRefusedWhatAnEarlierDaemonHad) {
  const auto memory = std::make_shared<memory::HostMemory>(1 << 20, 4);
  const auto account = memory->NewAccount("session s1");
  EXPECT_FALSE(Payer(account).Reserve(memory::Use::kPrograms, 2 << 20).ok());
  const Payer again(account, Admission::kAgain);
  const auto charge = again.Reserve(memory::Use::kPrograms, 2 << 20);
  ASSERT_TRUE(charge.ok());
  EXPECT_EQ(account->bytes(), 2 << 20);
  EXPECT_TRUE(again.ForNextGraph()(1 << 20).ok());
}

TEST(LacksHostMemory, IsNotWhatADeviceLacks) {
  const absl::Status status = absl::ResourceExhaustedError("full");
  EXPECT_TRUE(LacksHostMemory(errors::WithReason(status, "HOST_MEMORY")));
  EXPECT_FALSE(LacksHostMemory(errors::WithReason(status, "OUT_OF_MEMORY")));
  EXPECT_FALSE(LacksHostMemory(absl::OkStatus()));
  // One user's limit does not apply to another user.
  EXPECT_TRUE(LacksHostMemory(quota::Refusal({"ann", quota::Resource::kHostMemory}, 5, 9, 10)));
  EXPECT_FALSE(LacksHostMemory(quota::Refusal({"ann", quota::Resource::kDeviceMemory}, 5, 9, 10)));
}

TEST(PayersInTurn, PayOnceEachUnlessTheirSessionHasEnded) {
  const auto memory = std::make_shared<memory::HostMemory>(64 << 20, 4);
  const auto first = memory->NewAccount("session s1"), last = memory->NewAccount("session s3");
  auto ended = memory->NewAccount("session s2");
  PayersInTurn payers;
  for (const auto& account : {first, ended, first, last, last}) payers.Add(account);
  const auto user = memory->NewAccount("user ann");
  EXPECT_TRUE(payers.Add(memory->NewAccount("session s4", user)));
  const auto other = memory->NewAccount("session s5", user);
  EXPECT_TRUE(payers.Add(other)) << "the user's only session has ended";
  EXPECT_FALSE(payers.Add(memory->NewAccount("session s6", user)));
  ended.reset();
  EXPECT_EQ(payers.Next().account(), last) << "the first pays already";
  EXPECT_EQ(payers.Next().account(), other);
  EXPECT_EQ(payers.Next().account(), nullptr);
}

}  // namespace
}  // namespace kiln::runtime
