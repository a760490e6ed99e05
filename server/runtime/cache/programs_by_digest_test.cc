#include "server/runtime/cache/programs_by_digest.h"

#include <atomic>
#include <optional>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/errors/errors.h"
#include "server/runtime/testing/copy_source.h"
#include "server/testing/fake_compiler.h"
#include "server/testing/fake_device.h"

namespace kiln::runtime {
namespace {

using Result = absl::StatusOr<std::shared_ptr<const BoundProgram>>;

class ProgramsByDigestTest : public ::testing::Test {
 protected:
  // A client that asks for a graph of four floats, under its own source key.
  struct Client {
    explicit Client(std::string key, std::shared_ptr<memory::Account> account = nullptr)
        : source(std::make_shared<kiln::testing::CopySource>(std::move(key), 4)),
          payer(std::move(account)) {}
    std::shared_ptr<const GraphSource> source;
    Payer payer;
    std::shared_ptr<ProgramFuture> future = std::make_shared<ProgramFuture>();
    absl::Notification answered;
    std::optional<Result> result;
  };

  ProgramCompiler::Options Options() {
    ProgramCompiler::Options options;
    options.compile = [this](const auto& graph, const auto& target, const auto& options) {
      if (compiled_++ == 0) at_first_compile_();
      if (fails_) return absl::StatusOr<compiler::CompiledProgram>(absl::InternalError("defect"));
      return kiln::testing::FakeCompile(graph, target, options);
    };
    options.metrics = &metrics_;
    options.clock = kiln::testing::StoppedClock();
    return options;
  }
  ProgramRequest RequestOf(const Client& client) {
    ProgramRequest request{client.source, {}, &device_, "", client.payer};
    request.first_call = std::make_shared<FirstCall>(kiln::testing::StoppedClock().steady, "");
    return request;
  }
  void Ask(Client& client) {
    const ProgramRequest request = RequestOf(client);
    programs_.GetOrCompile(request, *request.Build(), client.future, [&client](Result result) {
      client.result = result;
      client.future->Resolve(std::move(result));
      client.answered.Notify();
    });
  }

  // As Ask, but a lack of memory is left to another attempt. The caller resolves the future.
  void TryInVain(Client& client) {
    const ProgramRequest request = RequestOf(client);
    programs_.GetOrCompile(request, *request.Build(), client.future,
                           [&client](Result result) { client.result = std::move(result); });
    EXPECT_TRUE(LacksHostMemory(client.result->status()));
  }

  metrics::Metrics metrics_{"test"};
  ManagedDevice device_{std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1000), 0,
                        metrics_.ForDevice("cpu:0"), SystemClock()};
  std::atomic<int> compiled_{0};
  std::function<void()> at_first_compile_ = [] {};
  bool fails_ = false;
  std::shared_ptr<memory::HostMemory> memory_ = std::make_shared<memory::HostMemory>(64 << 20, 4);
  ProgramCompiler compiler_{Options()};
  CompileThreads threads_{{.threads = 1, .threads_of_one = 1}};
  ProgramsByDigest programs_{&compiler_, &threads_};
};

TEST_F(ProgramsByDigestTest, FindsAProgramAsLongAsSomebodyHoldsIt) {
  std::string digest;
  {
    Client first("a"), second("b");
    Ask(first);
    Ask(second);
    const std::shared_ptr<Program> program = (**first.result)->program;
    EXPECT_EQ((**second.result)->program, program);
    EXPECT_EQ(compiled_, 1);
    EXPECT_EQ(programs_.size(), 1);
    EXPECT_EQ(programs_.List(), std::vector{program});
    digest = program->description().digest;
    EXPECT_EQ(*programs_.Find(digest), program);
    EXPECT_EQ(*programs_.Find("a"), program) << "the key of its first source";
  }
  EXPECT_EQ(programs_.size(), 0);
  EXPECT_TRUE(programs_.List().empty());
  EXPECT_EQ(errors::Reason(programs_.Find(digest).status()), "UNKNOWN_PROGRAM");
  Client third("c");
  Ask(third);
  EXPECT_TRUE(third.result->ok());
  EXPECT_EQ(compiled_, 2);
}

TEST_F(ProgramsByDigestTest, WhoeverAsksMeanwhileWaits) {
  Client first("a"), second("b");
  at_first_compile_ = [&] {
    Ask(second);
    EXPECT_FALSE(second.result.has_value());
    EXPECT_EQ(programs_.size(), 1) << "it is being compiled";
    EXPECT_TRUE(programs_.List().empty());
  };
  Ask(first);
  ASSERT_TRUE(second.result.has_value());
  EXPECT_EQ((**second.result)->program, (**first.result)->program);
  EXPECT_EQ(compiled_, 1);
}

TEST_F(ProgramsByDigestTest, FailuresReachAllWhoWaitAndAreNotKept) {
  fails_ = true;
  Client first("a"), second("b"), third("c");
  at_first_compile_ = [&] { Ask(second); };
  Ask(first);
  EXPECT_EQ(first.result->status().message(), "defect");
  ASSERT_TRUE(second.result.has_value());
  EXPECT_EQ(second.result->status().message(), "defect");
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(programs_.size(), 0);
  fails_ = false;
  Ask(third);
  EXPECT_TRUE(third.result->ok());
}

TEST_F(ProgramsByDigestTest, WhatOneCannotPayForTheNextCompilesAtItsOwnExpense) {
  const auto poor = memory_->NewAccount("session s1"), rich = memory_->NewAccount("session s2");
  auto held = poor->Open(memory::Use::kBlobs);
  held.ForceResize(60 << 20);
  Client first("a", poor), second("b", rich);
  at_first_compile_ = [&] { Ask(second); };
  Ask(first);
  EXPECT_TRUE(LacksHostMemory(first.result->status()));
  second.answered.WaitForNotification();
  ASSERT_TRUE(second.result->ok()) << second.result->status();
  EXPECT_EQ(compiled_, 2);
  EXPECT_EQ(rich->bytes(), (**second.result)->program->host_bytes());
  EXPECT_EQ(poor->bytes(), 60 << 20);
}

// The compiling client may try again at another's expense before it answers.
TEST_F(ProgramsByDigestTest, AnAnswerMayComeAfterAnotherAttempt) {
  const auto poor = memory_->NewAccount("session s1");
  auto held = poor->Open(memory::Use::kBlobs);
  held.ForceResize(60 << 20);
  Client first("a", poor), second("b");
  at_first_compile_ = [&] { Ask(second); };
  TryInVain(first);
  EXPECT_EQ(programs_.size(), 0);
  EXPECT_FALSE(second.answered.HasBeenNotified());
  first.payer = Payer(nullptr);
  Ask(first);
  ASSERT_TRUE(second.answered.HasBeenNotified());
  EXPECT_EQ((**second.result)->program, (**first.result)->program);
  EXPECT_EQ(compiled_, 2);
}

// A request that lacked memory may finally be answered by a program for all values of a source's
// variables, which has one more input. Clients that wait for this graph's own program must not take
// that one.
TEST_F(ProgramsByDigestTest, AnAnswerForAllValuesIsNotTaken) {
  const auto poor = memory_->NewAccount("session s1");
  auto held = poor->Open(memory::Use::kBlobs);
  held.ForceResize(60 << 20);
  Client first("a", poor), second("b");
  at_first_compile_ = [&] { Ask(second); };
  TryInVain(first);
  auto for_all = std::make_shared<BoundProgram>();
  for_all->variables = buffers::Value::Failed(absl::InternalError("any value"));
  first.future->Resolve(for_all);
  second.answered.WaitForNotification();
  ASSERT_TRUE(second.result->ok());
  EXPECT_EQ((**second.result)->variables, nullptr);
  EXPECT_NE((**second.result)->program, nullptr);
  EXPECT_EQ(compiled_, 2);
}

TEST_F(ProgramsByDigestTest, NothingIsTriedAgainAfterTheStop) {
  const auto poor = memory_->NewAccount("session s1");
  auto held = poor->Open(memory::Use::kBlobs);
  held.ForceResize(60 << 20);
  Client first("a", poor), second("b");
  at_first_compile_ = [&] {
    Ask(second);
    threads_.Stop();
  };
  Ask(first);
  second.answered.WaitForNotification();
  EXPECT_EQ(errors::Reason(second.result->status()), "SHUTTING_DOWN");
  EXPECT_EQ(compiled_, 1);
}

}  // namespace
}  // namespace kiln::runtime
