// Explanations take time: each user's are made one after another, and a bounded number of them may
// wait.
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
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

constexpr int64_t kSlow = 1;  // floats of the graph whose sources are generated only after let_go_

class ExplanationsTest : public ::testing::Test {
 protected:
  ~ExplanationsTest() override {
    if (!let_go_.HasBeenNotified()) let_go_.Notify();
  }
  TestDaemonOptions Options() {
    TestDaemonOptions options;
    options.flush_time = absl::ZeroDuration();  // a stop does not wait for held calls
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
      return absl::StatusOr<std::string>("// slow");
    };
  }
  static std::string Defined(Client& client, int64_t floats) {
    const v1::Result defined = client.Connect()->Call(Define(1, AddGraph(floats)));
    EXPECT_FALSE(defined.has_error()) << defined.error().message();
    return defined.digest();
  }
  static grpc::Status Explain(Client& client, const std::string& digest,
                              grpc::ClientContext* context) {
    v1::ExplainProgramRequest request;
    request.set_digest(digest);
    v1::ExplainProgramResponse response;
    return client.programs->ExplainProgram(context, request, &response);
  }
  static grpc::Status Explain(Client& client, const std::string& digest) {
    grpc::ClientContext context;
    return Explain(client, digest, &context);
  }
  bool IsAbandoned(int calls) {
    return Eventually([&] {
      return absl::StrContains(daemon_.daemon().MetricsText(),
                               absl::StrCat("kiln_abandoned_calls_total ", calls, "\n"));
    });
  }

  static constexpr int kWaiting = 64;  // the most explanations of a user that may wait
  std::atomic<int> begun_{0};
  absl::Notification let_go_;
  TestDaemon daemon_{Options()};
};

// The calls of a client that asks for many explanations, each on its own thread. The daemon makes
// one, lets `waiting` wait, and refuses the rest.
class ManyExplanations {
 public:
  ManyExplanations(std::function<grpc::Status(grpc::ClientContext*)> ask, int waiting)
      : ask_(std::move(ask)), waiting_(waiting) {}

  // Makes the first call, waits until `is_begun`, makes the others, and waits until the daemon has
  // refused `too_many`.
  void AskFor(const std::function<bool()>& is_begun, int too_many) {
    Add();
    EXPECT_TRUE(Eventually(is_begun));
    for (int i = 0; i < waiting_ + too_many; ++i) Add();
    EXPECT_TRUE(Eventually([&] { return refused_ == too_many; }));
  }
  // Cancels the waiting calls.
  void GiveUpAllButFirst() {
    for (size_t i = 1; i < contexts_.size(); ++i) contexts_[i].TryCancel();
  }
  void Join() {
    for (std::thread& each : threads_) each.join();
  }
  int made() const { return made_; }
  int refused() const { return refused_; }
  int failed() const { return failed_; }

 private:
  void Add() {
    grpc::ClientContext& context = contexts_.emplace_back();
    threads_.emplace_back([this, &context] {
      const grpc::Status explained = ask_(&context);
      if (explained.ok()) {
        ++made_;
      } else if (Reason(explained) != "TOO_MANY_EXPLANATIONS") {
        ++failed_;
      } else {
        EXPECT_EQ(explained.error_code(), grpc::RESOURCE_EXHAUSTED);
        EXPECT_THAT(explained.error_message(),
                    HasSubstr("which is the limit of a user; try again"));
        ++refused_;
      }
    });
  }

  const std::function<grpc::Status(grpc::ClientContext*)> ask_;
  const int waiting_;
  std::atomic<int> made_{0}, refused_{0}, failed_{0};
  std::deque<grpc::ClientContext> contexts_;
  std::vector<std::thread> threads_;
};

TEST_F(ExplanationsTest, WhoAsksForManyHoldsUpNobodyElse) {
  constexpr int kTooMany = 6;
  Client client(daemon_.address());
  Client other(daemon_.daemon().listening()[1], {.token = AddUser(client, "ann")});
  const std::string slow = Defined(client, kSlow), others = Defined(other, 2 * kSlow);
  ManyExplanations many([&](auto* context) { return Explain(client, slow, context); }, kWaiting);
  many.AskFor([&] { return begun_ == 1; }, kTooMany);
  EXPECT_EQ(begun_, 1);
  EXPECT_TRUE(Explain(other, others).ok());
  EXPECT_EQ(many.made(), 0);
  let_go_.Notify();
  many.Join();
  EXPECT_EQ(many.made(), 1 + kWaiting);
  EXPECT_EQ(many.refused(), kTooMany);
}

TEST_F(ExplanationsTest, WhatNobodyWaitsForIsNotMade) {
  Client client(daemon_.address());
  const std::string slow = Defined(client, kSlow);
  ManyExplanations many([&](auto* context) { return Explain(client, slow, context); }, kWaiting);
  // Once one is refused, the daemon has received all the others.
  many.AskFor([&] { return begun_ == 1; }, /*too_many=*/1);
  many.GiveUpAllButFirst();
  EXPECT_TRUE(IsAbandoned(kWaiting));
  let_go_.Notify();
  many.Join();
  EXPECT_EQ(many.made(), 1);
  EXPECT_EQ(many.failed(), kWaiting);
  // This call comes after them; cancelled calls keep their places until their turns.
  EXPECT_TRUE(Eventually([&] { return Explain(client, slow).ok(); }));
  EXPECT_EQ(begun_, 2);
}

TEST_F(ExplanationsTest, ThoseThatWaitEndWithTheDaemon) {
  Client client(daemon_.address());
  const std::string slow = Defined(client, kSlow);
  ManyExplanations many([&](auto* context) { return Explain(client, slow, context); }, kWaiting);
  many.AskFor([&] { return begun_ == 1; }, /*too_many=*/1);
  std::thread stop([&] { daemon_.daemon().Stop(); });
  // Their clients get an answer, although one explanation is still being made.
  many.Join();
  EXPECT_EQ(many.failed(), 1 + kWaiting);
  EXPECT_TRUE(IsAbandoned(1 + kWaiting));
  let_go_.Notify();
  stop.join();
  EXPECT_EQ(begun_, 1);
}

}  // namespace
}  // namespace kiln::testing
