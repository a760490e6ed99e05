// Explanations take time to make: each user's are made in turn, and a bounded number of them wait.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/fake_compiler.h"
#include "tests/eventually.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSlow = 1;  // floats of the graph whose sources take until they are let go

class ExplanationsTest : public ::testing::Test {
 protected:
  ~ExplanationsTest() override {
    if (!let_go_.HasBeenNotified()) let_go_.Notify();
  }
  TestDaemonOptions Options() {
    TestDaemonOptions options;
    options.compile = [this](const graph::Graph& graph, const drivers::Target& target,
                             const compiler::Options& compile_options) {
      auto program = FakeCompile(graph, target, compile_options);
      if (program.ok() && ir::NumElements(graph.inputs[0].shape) == kSlow)
        for (compiler::CompiledKernel& kernel : program->kernels) kernel.source = Slow();
      return program;
    };
    return options;
  }
  std::function<absl::StatusOr<std::string>()> Slow() {
    return [this] {
      ++begun_;
      let_go_.WaitForNotification();
      absl::SleepFor(takes_);
      return absl::StatusOr<std::string>("// slow");
    };
  }
  static std::string Defined(Client& client, int64_t floats) {
    const v1::Result defined = client.Connect()->Call(Define(1, AddGraph(floats)));
    EXPECT_FALSE(defined.has_error()) << defined.error().message();
    return defined.digest();
  }
  static grpc::Status Explain(Client& client, const std::string& digest,
                              std::chrono::milliseconds patience = std::chrono::minutes(1)) {
    v1::ExplainProgramRequest request;
    request.set_digest(digest);
    // Else one that waits for others would do so for ever.
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    v1::ExplainProgramResponse response;
    return client.programs->ExplainProgram(&context, request, &response);
  }

  std::atomic<int> begun_{0};
  absl::Duration takes_ = absl::ZeroDuration();  // once it has been let go
  absl::Notification let_go_;
  TestDaemon daemon_{Options()};
};

TEST_F(ExplanationsTest, WhoAsksForManyHoldsUpNobodyElse) {
  constexpr int kWaiting = 64, kTooMany = 6;
  Client client(daemon_.address());
  Client other(daemon_.daemon().listening()[1], {.token = AddUser(client, "ann")});
  const std::string slow = Defined(client, kSlow), others = Defined(other, 2 * kSlow);
  std::atomic<int> made{0}, refused{0};
  const auto ask = [&] {
    const grpc::Status explained = Explain(client, slow);
    if (explained.ok()) {
      ++made;
      return;
    }
    EXPECT_EQ(explained.error_code(), grpc::RESOURCE_EXHAUSTED);
    EXPECT_EQ(Reason(explained), "TOO_MANY_EXPLANATIONS");
    EXPECT_THAT(explained.error_message(),
                HasSubstr("as many as one user may have waiting; ask again"));
    ++refused;
  };
  std::vector<std::thread> asking;
  asking.emplace_back(ask);
  EXPECT_TRUE(Eventually([&] { return begun_ == 1; }));
  for (int i = 0; i < kWaiting + kTooMany; ++i) asking.emplace_back(ask);
  EXPECT_TRUE(Eventually([&] { return refused == kTooMany; }));
  EXPECT_EQ(begun_, 1);
  EXPECT_TRUE(Explain(other, others).ok());
  EXPECT_EQ(made, 0);
  let_go_.Notify();
  for (std::thread& each : asking) each.join();
  EXPECT_EQ(made, 1 + kWaiting);
  EXPECT_EQ(refused, kTooMany);
}

TEST_F(ExplanationsTest, WhatNobodyWaitsForIsNotMade) {
  takes_ = absl::Milliseconds(100);
  Client client(daemon_.address());
  const std::string slow = Defined(client, kSlow);
  std::thread first([&] { EXPECT_TRUE(Explain(client, slow).ok()); });
  EXPECT_TRUE(Eventually([&] { return begun_ == 1; }));
  constexpr int kLate = 20;
  std::vector<std::thread> late;
  for (int i = 0; i < kLate; ++i)
    late.emplace_back([&] {
      EXPECT_EQ(Explain(client, slow, std::chrono::milliseconds(100)).error_code(),
                grpc::DEADLINE_EXCEEDED);
    });
  for (std::thread& each : late) each.join();
  let_go_.Notify();
  first.join();
  // Behind all of them.
  EXPECT_TRUE(Explain(client, slow).ok());
  // The daemon hears of each a little later than its client: while it makes the first, of the rest.
  EXPECT_LT(begun_, 1 + kLate + 1);
}

TEST_F(ExplanationsTest, ThoseThatWaitEndWithTheDaemon) {
  Client client(daemon_.address());
  const std::string slow = Defined(client, kSlow);
  std::vector<std::thread> asking;
  const auto ask = [&] { EXPECT_FALSE(Explain(client, slow).ok()); };
  asking.emplace_back(ask);
  EXPECT_TRUE(Eventually([&] { return begun_ == 1; }));
  for (int i = 0; i < 10; ++i) asking.emplace_back(ask);
  std::thread stop([&] { daemon_.daemon().Stop(); });
  // Their clients hear of it, though one is still being made.
  for (std::thread& each : asking) each.join();
  let_go_.Notify();
  stop.join();
  EXPECT_LT(begun_, 11);
}

}  // namespace
}  // namespace kiln::testing
