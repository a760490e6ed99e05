// Sessions without RPCs: many threads, dropped streams, and sessions that are closed at any time.
#include "server/sessions/session.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "compiler/graph/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/errors/errors.h"
#include "server/fairness/device_queue.h"
#include "server/sessions/registry.h"
#include "server/testing/fake_compiler.h"
#include "server/testing/fake_device.h"
#include "tests/eventually.h"

namespace kiln::sessions {
namespace {

// x + y over `size` floats; with `accumulates`, x becomes the sum.
class AddSource : public runtime::GraphSource {
 public:
  AddSource(int64_t size, bool accumulates)
      : key_(absl::StrCat(size, accumulates)), size_(size), accumulates_(accumulates) {}
  const std::string& key() const override { return key_; }
  const std::vector<runtime::Variable>& variables() const override { return none_; }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings&, const runtime::Grow&,
                                     ops::FormSizes*) const override {
    graph::Graph graph;
    graph.context = std::make_shared<ir::Context>();
    std::vector<const ir::Node*> operands;
    for (int64_t i = 0; i < 2; ++i) {
      graph.inputs.push_back({ir::DType::kFloat32, {size_}});
      operands.push_back(
          graph.context->Get(ir::Op::kInput, ir::DType::kFloat32, {size_}, {}, ir::InputAttr{i}));
    }
    const ir::Node* sum = graph.context->Get(ir::Op::kAdd, ir::DType::kFloat32, {size_}, operands);
    graph.outputs.push_back(sum);
    if (accumulates_) graph.updates.push_back({0, sum});
    return graph;
  }

 private:
  const std::string key_;
  const int64_t size_;
  const bool accumulates_;
  const std::vector<runtime::Variable> none_;
};

// x + y over a dimension "n". Its size is not an affine function of the variable, so every value
// has a separate program.
class VariableAddSource : public runtime::GraphSource {
 public:
  const std::string& key() const override { return key_; }
  const std::vector<runtime::Variable>& variables() const override { return variables_; }
  absl::StatusOr<graph::Graph> Build(const runtime::Bindings& bindings, const runtime::Grow&,
                                     ops::FormSizes*) const override {
    const int64_t n = bindings.at("n");
    return AddSource(n * n, false).Build({}, {}, nullptr);
  }

 private:
  const std::string key_ = "variable";
  const std::vector<runtime::Variable> variables_ = {{"n", 1, 1000}};
};

float FirstFloat(const Answer& answer) {
  float value = 0;
  if (!answer.value || answer.value->bytes() < static_cast<int64_t>(sizeof(value))) return value;
  answer.value->pool()->Read(*answer.value, 0,
                             absl::MakeSpan(reinterpret_cast<char*>(&value), sizeof(value)),
                             [](const absl::Status& read) { EXPECT_TRUE(read.ok()) << read; });
  return value;
}

class RecordingSink : public Sink {
 public:
  void PushAttached(uint64_t last_sequence) override { last_sequence_ = last_sequence; }
  void Push(std::shared_ptr<const Answer> answer) override {
    absl::MutexLock lock(&mutex_);
    answers_.emplace(answer->sequence, answer);
    arrived_.SignalAll();
  }
  void Flush() override {}
  void ReadMore() override {}
  void Close(const absl::Status& status) override { closed_ = true; }

  // Returns null if no answer comes, so that the test fails and does not hang.
  std::shared_ptr<const Answer> Wait(uint64_t sequence) {
    const absl::Time give_up = absl::Now() + absl::Minutes(2);
    absl::MutexLock lock(&mutex_);
    while (answers_.count(sequence) == 0)
      if (arrived_.WaitWithDeadline(&mutex_, give_up)) return nullptr;
    return answers_[sequence];
  }
  bool Has(uint64_t sequence) {
    absl::MutexLock lock(&mutex_);
    return answers_.count(sequence) > 0;
  }
  uint64_t last_sequence() const { return last_sequence_; }
  bool closed() const { return closed_; }

 private:
  std::atomic<uint64_t> last_sequence_{0};
  std::atomic<bool> closed_{false};
  absl::Mutex mutex_;
  absl::CondVar arrived_;
  std::map<uint64_t, std::shared_ptr<const Answer>> answers_ ABSL_GUARDED_BY(mutex_);
};

class SessionTest : public ::testing::Test {
 protected:
  static constexpr int64_t kMemory = 1 << 20;
  static constexpr int kSessions = 100;

  SessionTest() {
    runtime::ProgramCache::Options options;
    options.compile =
        [this](const auto& graph, const auto& target,
               const auto& compile_options) -> absl::StatusOr<compiler::CompiledProgram> {
      ++compiled_;
      if (slow_compile_) slow_compile_();
      if (out_of_memory_) return absl::ResourceExhaustedError("no memory just now");
      auto program = kiln::testing::FakeCompile(graph, target, compile_options);
      if (program.ok()) {
        for (auto& kernel : program->kernels) kernel.image.flops = kernel_microseconds_;
      }
      return program;
    };
    options.metrics = &metrics_;
    options.clock = SystemClock();
    programs_ = std::make_unique<runtime::ProgramCache>(std::move(options));
    Registry::Options registry;
    registry.new_id = RandomId;
    registry.sessions_max = kSessions;
    registry.services = {programs_.get(),
                         &blobs_,
                         &metrics_,
                         &copies_,
                         kiln::testing::ClockOf([this] { return now_.load(); }),
                         {},
                         {}};
    registry_ = std::make_unique<Registry>(std::move(registry), std::vector{&device_});
  }
  ~SessionTest() override {
    registry_->CloseAll(absl::OkStatus());
    device_.dispatcher().WaitIdle(absl::InfiniteDuration());
  }

  std::shared_ptr<Session> Open() { return *registry_->Open("ann", {}, absl::Seconds(10), ""); }
  static Operation Define(uint64_t program, int64_t size, bool accumulates) {
    return DefineProgram{program, std::make_shared<const AddSource>(size, accumulates), "add"};
  }
  static Operation WriteFloats(uint64_t handle, const std::vector<float>& values) {
    Write write{handle, {ir::DType::kFloat32, {static_cast<int64_t>(values.size())}}, "", {}};
    write.data.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return write;
  }
  static Operation RunOf(uint64_t program, std::vector<uint64_t> inputs,
                         std::vector<uint64_t> outputs) {
    return RunProgram{program, std::move(inputs), std::move(outputs), {}, false};
  }
  // Failed operations by their codes, as counted by the metrics.
  std::string Failures() const {
    std::string failures;
    for (const absl::string_view line : absl::StrSplit(metrics_.Text(), '\n')) {
      if (absl::StartsWith(line, "kiln_errors_total")) absl::StrAppend(&failures, line, "\n");
    }
    return failures;
  }

  metrics::Metrics metrics_{"test"};
  buffers::BlobStore blobs_{1000};
  runtime::ThreadPool copies_{1};
  std::atomic<absl::Time> now_{absl::UnixEpoch()};
  std::atomic<int> compiled_{0};
  std::atomic<bool> out_of_memory_{false};
  std::atomic<int64_t> kernel_microseconds_{0};  // if the device takes time
  std::function<void()> slow_compile_;
  kiln::testing::FakeDevice* raw_ = new kiln::testing::FakeDevice("cpu:0", kMemory);
  runtime::ManagedDevice device_{std::unique_ptr<drivers::Device>(raw_), 0,
                                 metrics_.ForDevice("cpu:0"), SystemClock()};
  std::unique_ptr<runtime::ProgramCache> programs_;
  std::unique_ptr<Registry> registry_;
};

// Acts as a client: counts up one step at a time, reads now and then, and releases old results.
float Train(Session& session, int steps, std::atomic<int>* done) {
  auto sink = std::make_shared<RecordingSink>();
  EXPECT_TRUE(session.Connect(sink, 0).ok());
  uint64_t sequence = 0;
  const auto send = [&](Operation operation) {
    EXPECT_TRUE(session.Accept(sink.get(), sequence + 1, 0, std::move(operation)).ok());
    return ++sequence;
  };
  send(DefineProgram{1, std::make_shared<const AddSource>(4, true), "step"});
  for (uint64_t handle : {1, 2}) {
    Write write{handle, {ir::DType::kFloat32, {4}}, std::string(16, '\0'), {}};
    const float one = static_cast<float>(handle - 1);
    std::memcpy(write.data.data(), &one, sizeof(one));
    send(std::move(write));
  }
  float last = -1;
  for (int step = 1; step <= steps; ++step) {
    const uint64_t output = 10 + static_cast<uint64_t>(step);
    send(RunProgram{1, {1, 2}, {output}, {}, false});
    if (step % 10 == 0) {
      const auto answer = sink->Wait(send(Read{output}));
      if (answer == nullptr) return -1;
      last = FirstFloat(*answer);
    }
    send(Release{{output}});
    ++*done;
  }
  return last;
}

TEST_F(SessionTest, ManySessionsAtOnceComputeWhatOneComputesAlone) {
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  std::vector<float> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = Train(*Open(), 300, &done); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, ::testing::Each(300));
}

TEST_F(SessionTest, StreamsThatTakeOverLoseNothing) {
  auto session = Open();
  auto first = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(first, 0).ok());
  ASSERT_TRUE(session->Accept(first.get(), 1, 0, Define(1, 4, true)).ok());
  ASSERT_TRUE(session->Accept(first.get(), 2, 0, WriteFloats(1, {0, 0, 0, 0})).ok());
  ASSERT_TRUE(session->Accept(first.get(), 3, 0, WriteFloats(2, {1, 1, 1, 1})).ok());
  constexpr uint64_t kSteps = 400;
  std::atomic<int> streams{0};
  // Each thread is a connection of one client: it sends all operations that have not been received.
  const auto connection = [&] {
    while (true) {
      auto sink = std::make_shared<RecordingSink>();
      if (!session->Connect(sink, 3).ok()) return;
      ++streams;
      const uint64_t from = sink->last_sequence() + 1;
      for (uint64_t sequence = from; sequence < from + 20; ++sequence) {
        if (sequence > 3 + kSteps) return;
        if (!session->Accept(sink.get(), sequence, 3, RunOf(1, {1, 2}, {10 + sequence})).ok())
          break;
      }
      session->Disconnect(sink.get());
    }
  };
  std::thread one(connection), two(connection);
  one.join();
  two.join();
  auto last = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(last, 3).ok());
  EXPECT_EQ(last->last_sequence(), 3 + kSteps);
  ASSERT_TRUE(session->Accept(last.get(), 4 + kSteps, 3, Read{1}).ok());
  const auto answer = last->Wait(4 + kSteps);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(FirstFloat(*answer), kSteps);
  for (uint64_t sequence = 4; sequence <= 3 + kSteps; ++sequence) {
    const auto each = last->Wait(sequence);
    ASSERT_NE(each, nullptr) << sequence;
    EXPECT_TRUE(each->error.ok()) << each->error;
  }
  EXPECT_EQ(raw_->lists_run(), kSteps);
  EXPECT_GT(streams, 1);
}

TEST_F(SessionTest, EndingInTheMiddleFreesEverything) {
  for (int round = 0; round < 5; ++round) {
    auto session = Open();
    std::atomic<int> done{0};
    std::atomic<bool> ended{false};
    auto sink = std::make_shared<RecordingSink>();
    std::thread client([&] {
      if (!session->Connect(sink, 0).ok()) return;
      uint64_t sequence = 0;
      const auto send = [&](Operation operation) {
        ++sequence;
        return session->Accept(sink.get(), sequence, sequence - 1, std::move(operation)).ok();
      };
      bool open = send(Define(1, 4, true)) && send(WriteFloats(1, {0, 0, 0, 0})) &&
                  send(WriteFloats(2, {1, 1, 1, 1}));
      for (uint64_t step = 0; open; ++step) {
        open = send(RunOf(1, {1, 2}, {10 + step})) && send(Release{{10 + step}});
        ++done;
      }
      ended = true;
    });
    EXPECT_TRUE(testing::Eventually([&] { return done >= 50; }));
    EXPECT_TRUE(registry_->Close(session->identity().id).ok());
    client.join();
    EXPECT_TRUE(ended);
    EXPECT_TRUE(sink->closed());
    session.reset();
  }
  device_.dispatcher().WaitIdle(absl::InfiniteDuration());
  // The device's thread may still be freeing the last run.
  EXPECT_TRUE(testing::Eventually([&] { return raw_->allocated_bytes() == 0; }));
}

TEST_F(SessionTest, ExpiryRacesWithAttaching) {
  for (int round = 0; round < 50; ++round) {
    auto session = Open();
    now_ = now_.load() + absl::Seconds(11);
    std::thread reaper([&] { registry_->CloseExpired(); });
    auto sink = std::make_shared<RecordingSink>();
    const bool attached = session->Connect(sink, 0).ok();
    reaper.join();
    // The session was either attached in time or removed, never half of each.
    const bool open = registry_->Find(session->user().name, session->identity().id).ok();
    if (open) {
      EXPECT_TRUE(attached);
      EXPECT_TRUE(session->Accept(sink.get(), 1, 0, Barrier{}).ok());
    } else {
      EXPECT_FALSE(session->Accept(sink.get(), 1, 0, Barrier{}).ok());
    }
    if (open) registry_->Close(session->identity().id).IgnoreError();
  }
}

// For a device whose memory the host cannot access: no thread waits for the bytes.
TEST_F(SessionTest, UploadsUnderWayHoldUpNobody) {
  raw_->HideMemory();
  raw_->HoldCopies();
  auto first = Open(), second = Open();
  auto sink = std::make_shared<RecordingSink>(), other = std::make_shared<RecordingSink>();
  ASSERT_TRUE(first->Connect(sink, 0).ok());
  ASSERT_TRUE(second->Connect(other, 0).ok());
  ASSERT_TRUE(first->Accept(sink.get(), 1, 0, WriteFloats(1, {5, 6, 7, 8})).ok());
  ASSERT_TRUE(first->Accept(sink.get(), 2, 0, Barrier{}).ok());
  ASSERT_TRUE(first->Accept(sink.get(), 3, 0, Read{1}).ok());
  ASSERT_TRUE(first->Accept(sink.get(), 4, 0, Release{{1}}).ok());
  ASSERT_TRUE(second->Accept(other.get(), 1, 0, Define(1, 4, true)).ok());
  EXPECT_NE(sink->Wait(4), nullptr) << "what needs no bytes is answered";
  EXPECT_NE(other->Wait(1), nullptr);
  EXPECT_FALSE(sink->Has(1) || sink->Has(2) || sink->Has(3));
  raw_->LetCopiesGo();
  EXPECT_TRUE(sink->Wait(1)->error.ok());
  EXPECT_NE(sink->Wait(2), nullptr);
  EXPECT_EQ(FirstFloat(*sink->Wait(3)), 5);
}

TEST_F(SessionTest, AnUploadThatFailsFailsItsHandle) {
  raw_->HideMemory();
  raw_->HoldCopies();
  auto session = Open();
  auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(sink, 0).ok());
  ASSERT_TRUE(session->Accept(sink.get(), 1, 0, WriteFloats(1, {5, 6, 7, 8})).ok());
  raw_->Break("the context is poisoned");
  raw_->LetCopiesGo();
  EXPECT_EQ(errors::Reason(sink->Wait(1)->error), "DEVICE_FAILED");
  ASSERT_TRUE(session->Accept(sink.get(), 2, 0, Read{1}).ok());
  EXPECT_EQ(errors::Reason(sink->Wait(2)->error), "DEVICE_FAILED");
}

TEST_F(SessionTest, SessionsHaveAnUpperLimit) {
  const auto open = [this](int user) {
    return registry_->Open(absl::StrCat("user", user), {}, absl::Seconds(10), "");
  };
  std::vector<std::shared_ptr<Session>> all;
  for (int i = 0; i < kSessions; ++i) all.push_back(*open(i));
  const absl::Status refused = open(kSessions).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(graph::ErrorDetail(refused, "reason"), "TOO_MANY_SESSIONS");
  ASSERT_TRUE(registry_->Close(all.front()->identity().id).ok());
  EXPECT_TRUE(open(kSessions).ok());
}

TEST_F(SessionTest, NobodyHoardsAllSessions) {
  std::vector<std::shared_ptr<Session>> hoarded;
  absl::Status refused;
  // With a lease of an hour, as a greedy user would request it.
  while (refused.ok()) {
    auto session = registry_->Open("greedy", {}, absl::Hours(1), "");
    refused = session.status();
    if (session.ok()) hoarded.push_back(*std::move(session));
  }
  EXPECT_EQ(static_cast<int>(hoarded.size()), kSessions / 2);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(graph::ErrorDetail(refused, "reason"), "USER_SESSIONS");
  EXPECT_EQ(errors::Details(refused).at("user"), "greedy");
  EXPECT_EQ(errors::Details(refused).at("used"), "50");
  EXPECT_EQ(errors::Details(refused).at("limit"), "50");
  // All others still get their guaranteed number, until the last sessions are reserved for users
  // who have none.
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 8; ++j)
      ASSERT_TRUE(registry_->Open(absl::StrCat("user", i), {}, absl::Hours(1), "").ok());
  }
  while (registry_->Open("many", {}, absl::Hours(1), "").ok()) continue;
  EXPECT_EQ(static_cast<int>(registry_->List().size()), kSessions - kSessions / 16);
  EXPECT_TRUE(registry_->Open("late", {}, absl::Hours(1), "").ok());
  EXPECT_FALSE(registry_->Open("late", {}, absl::Hours(1), "").ok());
  ASSERT_TRUE(registry_->Close(hoarded.back()->identity().id).ok());
  EXPECT_FALSE(registry_->Open("greedy", {}, absl::Hours(1), "").ok());
}

TEST_F(SessionTest, AReplacedStreamIsToldWhy) {
  auto session = Open();
  auto first = std::make_shared<RecordingSink>();
  auto second = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(first, 0).ok());
  ASSERT_TRUE(session->Connect(second, 0).ok());
  const absl::Status late = session->Accept(first.get(), 1, 0, Barrier{});
  EXPECT_EQ(late.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(graph::ErrorDetail(late, "reason"), "REPLACED");
}

TEST_F(SessionTest, ABindingThatFailedIsCompiledOnceMoreForEachRun) {
  auto session = Open();
  auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(sink, 0).ok());
  uint64_t sequence = 0;
  const auto call = [&](Operation operation) {
    EXPECT_TRUE(session->Accept(sink.get(), ++sequence, 0, std::move(operation)).ok());
    const auto answer = sink->Wait(sequence);
    return answer ? answer->error : absl::DeadlineExceededError("no answer");
  };
  const auto run = [&] { return call(RunProgram{1, {1, 1}, {10 + sequence}, {{"n", 1}}, false}); };
  ASSERT_TRUE(call(DefineProgram{1, std::make_shared<const VariableAddSource>(), "add"}).ok());
  ASSERT_TRUE(call(WriteFloats(1, {1})).ok());
  out_of_memory_ = true;
  EXPECT_EQ(run().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(run().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(compiled_, 2);
  out_of_memory_ = false;
  EXPECT_TRUE(run().ok());
  EXPECT_TRUE(run().ok());
  EXPECT_EQ(compiled_, 3);
}

TEST_F(SessionTest, ReadersHearOnceTheValueIsThere) {
  auto session = Open();
  auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(sink, 0).ok());
  std::vector<absl::Status> heard;
  const auto read = [&](uint64_t handle, uint64_t after) {
    session->WhenReadable(handle, after,
                          [&](const auto& value) { heard.push_back(value.status()); });
  };
  read(1, 1);
  EXPECT_TRUE(heard.empty());
  ASSERT_TRUE(session->Accept(sink.get(), 1, 0, WriteFloats(1, {7})).ok());
  ASSERT_EQ(heard.size(), 1);
  EXPECT_TRUE(heard[0].ok());
  read(1, 1);
  ASSERT_EQ(heard.size(), 2);
  EXPECT_TRUE(heard[1].ok());
  read(9, 1);
  ASSERT_EQ(heard.size(), 3);
  EXPECT_TRUE(absl::IsNotFound(heard[2]));
  read(2, 5);
  session->Close(absl::OkStatus());
  ASSERT_EQ(heard.size(), 4);
  EXPECT_EQ(errors::Reason(heard[3]), "UNKNOWN_SESSION");
}

TEST_F(SessionTest, ClosingDropsARunThatWaitsForItsProgram) {
  absl::Notification compile;
  slow_compile_ = [&] { compile.WaitForNotification(); };
  auto session = Open();
  auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(sink, 0).ok());
  ASSERT_TRUE(session->Accept(sink.get(), 1, 0, Define(1, 4, false)).ok());
  ASSERT_TRUE(session->Accept(sink.get(), 2, 0, RunOf(1, {}, {5})).ok());
  int heard = 0;
  session->WhenReadable(5, 2, [&](const auto& value) {
    ++heard;
    EXPECT_EQ(errors::Reason(value.status()), "UNKNOWN_SESSION");
  });
  session->Close(absl::OkStatus());
  EXPECT_EQ(heard, 1);
  const std::string before = Failures();
  compile.Notify();
  programs_.reset();  // waits for compilations
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(Failures(), before);
}

// One client whose runs add 1 to a tensor, which is handle 1.
class CancelTest : public SessionTest {
 protected:
  static constexpr uint64_t kFirst = 4;                         // run; its output is handle 100 + 4
  const int kInFlight = fairness::QueueLimits().in_flight_max;  // of short runs on the device

  void Begin() {
    session_ = Open();
    sink_ = std::make_shared<RecordingSink>();
    ASSERT_TRUE(session_->Connect(sink_, 0).ok());
    Send(Define(1, 4, true));
    Send(WriteFloats(1, {0, 0, 0, 0}));
    Send(WriteFloats(2, {1, 1, 1, 1}));
  }
  uint64_t Send(Operation operation) {
    EXPECT_TRUE(session_->Accept(sink_.get(), ++sequence_, 0, std::move(operation)).ok());
    return sequence_;
  }
  uint64_t SendRun() { return Send(RunOf(1, {1, 2}, {101 + sequence_})); }
  // Waits until the program is compiled and `count` runs wait for the device.
  void AwaitQueued(int64_t count) {
    EXPECT_TRUE(testing::Eventually([&] { return device_.dispatcher().queued() >= count; }));
  }
  absl::Status Ended(uint64_t sequence) {
    const auto answer = sink_->Wait(sequence);
    return answer ? answer->error : absl::DeadlineExceededError("no answer");
  }
  float ReadFloat(uint64_t handle) {
    const auto answer = sink_->Wait(Send(Read{handle}));
    if (answer == nullptr || !answer->error.ok()) return -1;
    return FirstFloat(*answer);
  }
  void ExpectCancelled(uint64_t sequence) {
    EXPECT_EQ(Ended(sequence).code(), absl::StatusCode::kCancelled) << sequence;
    EXPECT_EQ(errors::Reason(Ended(sequence)), "CANCELLED");
    EXPECT_EQ(Ended(Send(Read{100 + sequence})).code(), absl::StatusCode::kCancelled);
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<RecordingSink> sink_;
  uint64_t sequence_ = 0;
};

TEST_F(CancelTest, WhatTheDeviceHasGoesOnAndTheRestChangesNothing) {
  Begin();
  raw_->Hold();
  for (int i = 0; i < kInFlight + 20; ++i) SendRun();
  AwaitQueued(20);
  const uint64_t last = sequence_;
  const uint64_t cancel = Send(Cancel{kFirst});
  // Sent after the Cancel, and queued before any run was executed.
  const uint64_t after = SendRun();
  raw_->LetGo();
  EXPECT_TRUE(Ended(cancel).ok());
  for (uint64_t run = kFirst; run < kFirst + kInFlight; ++run) EXPECT_TRUE(Ended(run).ok()) << run;
  EXPECT_TRUE(Ended(after).ok()) << Ended(after);
  EXPECT_EQ(ReadFloat(1), kInFlight + 1);
  EXPECT_EQ(ReadFloat(100 + after), kInFlight + 1);
  for (uint64_t run = kFirst + kInFlight; run <= last; ++run) ExpectCancelled(run);
  EXPECT_EQ(raw_->lists_run(), kInFlight + 1);
}

TEST_F(CancelTest, ItBeginsWhereItSays) {
  Begin();
  raw_->Hold();
  for (int i = 0; i < kInFlight + 20; ++i) SendRun();
  AwaitQueued(20);
  const uint64_t last = sequence_;
  Send(Cancel{last - 4});
  Send(Cancel{last - 9});  // cancels earlier runs, too
  raw_->LetGo();
  EXPECT_EQ(ReadFloat(1), kInFlight + 10);
  EXPECT_TRUE(Ended(last - 10).ok());
  for (uint64_t run = last - 9; run <= last; ++run) ExpectCancelled(run);
}

TEST_F(CancelTest, ALongRunStopsAtTheNextSliceAndLeavesItsStateWhole) {
  raw_->TakeTime();
  kernel_microseconds_ = 6000;
  Begin();
  raw_->Hold();
  const uint64_t first = SendRun(), second = SendRun();
  AwaitQueued(2);
  const uint64_t cancel = Send(Cancel{first});
  EXPECT_TRUE(Ended(cancel).ok());
  ExpectCancelled(second);
  EXPECT_FALSE(sink_->Has(first)) << "the device still uses its memory";
  raw_->LetGo();
  ExpectCancelled(first);
  EXPECT_EQ(ReadFloat(1), 0);
  EXPECT_EQ(raw_->lists_run(), 1);
  EXPECT_TRUE(Ended(SendRun()).ok());
  EXPECT_EQ(ReadFloat(1), 1);
  EXPECT_EQ(raw_->lists_run(), 3);
}

TEST_F(CancelTest, TheEndOfItsLeaseStopsALongRunAtTheNextSlice) {
  raw_->TakeTime();
  kernel_microseconds_ = 6000;
  Begin();
  raw_->Hold();
  SendRun();
  SendRun();
  AwaitQueued(2);
  session_->Disconnect(sink_.get());
  now_ = now_.load() + absl::Minutes(1);
  registry_->CloseExpired();
  EXPECT_EQ(device_.dispatcher().queued(), 0);
  raw_->LetGo();
  EXPECT_TRUE(device_.dispatcher().WaitIdle(absl::InfiniteDuration()));
  EXPECT_EQ(raw_->lists_run(), 1);
}

TEST_F(CancelTest, WhatWaitsForItsProgramIsCancelledToo) {
  absl::Notification compile;
  slow_compile_ = [&] { compile.WaitForNotification(); };
  Begin();
  const uint64_t first = SendRun(), second = SendRun();
  Send(Cancel{first});
  const uint64_t after = SendRun();
  compile.Notify();
  ExpectCancelled(first);
  ExpectCancelled(second);
  EXPECT_TRUE(Ended(after).ok()) << Ended(after);
  EXPECT_EQ(ReadFloat(1), 1);
}

TEST_F(CancelTest, SentAgainItCancelsNothingNew) {
  Begin();
  raw_->Hold();
  for (int i = 0; i < kInFlight + 5; ++i) SendRun();
  AwaitQueued(5);
  const uint64_t cancel = Send(Cancel{kFirst});
  const uint64_t after = SendRun();
  auto again = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session_->Connect(again, 0).ok());
  ASSERT_TRUE(session_->Accept(again.get(), cancel, 0, Cancel{kFirst}).ok());
  raw_->LetGo();
  ASSERT_NE(again->Wait(after), nullptr);
  EXPECT_TRUE(again->Wait(after)->error.ok());
  for (uint64_t sequence = 1; sequence <= after; ++sequence)
    EXPECT_NE(again->Wait(sequence), nullptr) << sequence;
}

TEST_F(CancelTest, ReleasedAndReadHandlesDoNotMatter) {
  Begin();
  raw_->Hold();
  for (int i = 0; i < kInFlight + 5; ++i) SendRun();
  AwaitQueued(5);
  const uint64_t last = sequence_;
  const uint64_t read = Send(Read{100 + last - 1});  // waits for the value
  const uint64_t state = Send(Read{1});              // of the last run
  // Its answer shows that both reads have been executed: a read that is executed after the Cancel
  // would get the value of the last run on the device.
  EXPECT_TRUE(Ended(Send(Release{{100 + last}})).ok());
  Send(Cancel{kFirst});
  EXPECT_EQ(Ended(read).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Ended(state).code(), absl::StatusCode::kCancelled) << "that value never came to be";
  raw_->LetGo();
  EXPECT_EQ(ReadFloat(1), kInFlight);
}

// At any time of cancellation, the state counts the runs that were not cancelled, and these are the
// first ones.
TEST_F(CancelTest, AtRandomMomentsNothingIsTorn) {
  raw_->TakeTime();
  for (const int64_t microseconds : {1, 6000}) {
    kernel_microseconds_ = microseconds;
    programs_->Reclaim(1 << 30);
    sequence_ = 0;
    Begin();
    unsigned random = 1;
    std::vector<uint64_t> runs;
    uint64_t uncancelled = kFirst;
    int went_on = 0;
    for (int round = 0; round < 200; ++round) {
      random = random * 1664525 + 1013904223;
      const int count = static_cast<int>(random >> 26);
      for (int i = 0; i < count; ++i) runs.push_back(SendRun());
      if (runs.empty()) continue;
      random = random * 1664525 + 1013904223;
      const uint64_t first = std::max(uncancelled, runs[(random >> 8) % runs.size()]);
      Send(Cancel{first});
      bool goes_on = true;
      for (const uint64_t run : runs) {
        const absl::Status ended = Ended(run);
        EXPECT_TRUE(ended.ok() || absl::IsCancelled(ended)) << ended;
        EXPECT_TRUE(goes_on || !ended.ok()) << "run " << run << " went on after a cancelled one";
        EXPECT_TRUE(ended.ok() || run >= first);
        goes_on = ended.ok();
        if (ended.ok()) {
          EXPECT_EQ(ReadFloat(100 + run), ++went_on);
        }
        Send(Release{{100 + run}});
      }
      EXPECT_EQ(ReadFloat(1), went_on);
      runs.clear();
      uncancelled = sequence_ + 1;
    }
    EXPECT_GT(went_on, 0);
    EXPECT_TRUE(registry_->Close(session_->identity().id).ok());
  }
}

TEST_F(SessionTest, FewBindingsAreRemembered) {
  auto session = Open();
  auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(sink, 0).ok());
  ASSERT_TRUE(session
                  ->Accept(sink.get(), 1, 0,
                           DefineProgram{1, std::make_shared<const VariableAddSource>(), "add"})
                  .ok());
  const int64_t limit = static_cast<int64_t>(SessionLimits().bindings_per_program);
  uint64_t sequence = 1;
  // These inputs do not exist, so the runs fail, but only once their programs are compiled.
  const auto run = [&](int64_t n) {
    const Operation operation = RunProgram{1, {7, 7}, {10 + sequence}, {{"n", n}}, false};
    EXPECT_TRUE(session->Accept(sink.get(), ++sequence, 0, operation).ok());
    EXPECT_NE(sink->Wait(sequence), nullptr);
  };
  for (int64_t n = 1; n <= limit; ++n) run(n);
  run(1);
  run(limit + 1);
  std::vector<int64_t> forgotten;
  for (const auto& program : programs_->List()) {
    if (!session->Uses(*program)) forgotten.push_back(program->signature().inputs[0]->bytes() / 4);
  }
  EXPECT_THAT(forgotten, ::testing::ElementsAre(2 * 2));
}

TEST_F(SessionTest, BoundsStopTheReading) {
  auto session = Open();
  auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(session->Connect(sink, 0).ok());
  ASSERT_TRUE(session->Accept(sink.get(), 1, 0, Define(1, 1, false)).ok());
  ASSERT_TRUE(session->Accept(sink.get(), 2, 0, WriteFloats(1, {1})).ok());
  sink->Wait(1);
  raw_->Hold();
  uint64_t sequence = 2;
  while (session->WantsMore() && sequence < 100'000) {
    ++sequence;
    ASSERT_TRUE(session->Accept(sink.get(), sequence, 2, RunOf(1, {1, 1}, {sequence})).ok());
  }
  EXPECT_EQ(static_cast<int64_t>(sequence) - 2, SessionLimits().pending_operations);
  raw_->LetGo();
  EXPECT_NE(sink->Wait(sequence), nullptr);
  EXPECT_TRUE(session->WantsMore());
}

// A daemon serves before it has listed its saved sessions.
TEST_F(SessionTest, ASessionThatIsNotListedYetIsNotLost) {
  struct Unread : AbsentSessions {
    std::atomic<bool> knows_all = false;
    bool KnowsAll() const override { return knows_all; }
    absl::Status Ask(const std::string&, const std::string&) override { return absl::OkStatus(); }
    absl::Status Ask(int64_t, const std::string*) override { return absl::OkStatus(); }
    int CloseAllOf(const std::string&) override { return 0; }
  } absent;
  const std::shared_ptr<Session> open = Open();
  registry_->SetAbsent(&absent);
  const std::string kept(open->identity().id.size(), 'f');
  const auto reasons = [&] {
    return std::vector<std::string>{
        errors::Reason(registry_->Find("ann", kept).status()),
        errors::Reason(registry_->FindByName("ann", "x").status()),
        errors::Reason(registry_->CloseByName("ann", false, "x").status())};
  };
  EXPECT_THAT(reasons(), ::testing::Each("RESTARTING"));
  // Open sessions are found.
  EXPECT_TRUE(registry_->Find("ann", open->identity().id).ok());
  absent.knows_all = true;
  EXPECT_THAT(reasons(), ::testing::ElementsAre("SESSION_LOST", "UNKNOWN_NAME", "UNKNOWN_NAME"));
  registry_->SetAbsent(nullptr);
}

}  // namespace
}  // namespace kiln::sessions
