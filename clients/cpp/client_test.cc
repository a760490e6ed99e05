#include "kiln/client.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cpp/fake_daemon.h"
#include "clients/cpp/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Longer than any test: a wait ends only because its event has occurred.
constexpr absl::Duration kPatience = absl::Hours(1);

class ClientTest : public ::testing::Test {
 protected:
  ClientTest()
      : socket_(absl::StrCat(::testing::TempDir(), "/fake-", getpid(), ".sock")),
        daemon_(socket_) {}
  ~ClientTest() override { unlink(socket_.c_str()); }

  std::unique_ptr<Client> Connect(ConnectOptions options = {}) {
    options.address = socket_;
    options.timeout = options.closing_timeout = kPatience;
    auto client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  // A graph of two inputs, which the fake daemon returns unchanged.
  static absl::StatusOr<Graph> TwoInputs() {
    GraphBuilder builder;
    builder.Output(builder.Input(DType::kFloat32, {2}));
    builder.Output(builder.Input(DType::kFloat32, {3}));
    return builder.Build();
  }

  const std::string socket_;
  client::FakeDaemon daemon_;
};

TEST_F(ClientTest, ConnectNamesItselfAndLearnsTheSession) {
  auto client = Connect({.description = "ann@laptop train"});
  EXPECT_EQ(client->session(), "s1");
  EXPECT_EQ(client->device(), "cpu:0");
  EXPECT_EQ(daemon_.description(), "ann@laptop train");
}

TEST_F(ClientTest, NoDaemonIsUnavailableAndSaysWhatToDo) {
  auto client = Client::Connect({.address = "unix:/nowhere/kilnd.sock", .timeout = kPatience});
  ASSERT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(client.status().message(), HasSubstr("/nowhere/kilnd.sock"));
  EXPECT_THAT(client.status().message(), HasSubstr("Start one with `kilnd`"));
}

TEST_F(ClientTest, UploadThenDownloadGivesTheSame) {
  auto client = Connect();
  auto tensor = client->Upload<float>({2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(*client->Download<float>(*tensor), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(client->Read(*tensor).Get()->size(), 16u);
}

TEST_F(ClientTest, LargeTensorsTravelAsBlobsThatAreDeletedAfterwards) {
  auto client = Connect();
  std::vector<int32_t> data(2345);
  std::iota(data.begin(), data.end(), 0);
  auto tensor = client->Upload<int32_t>({2345}, absl::MakeConstSpan(data));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(*client->Download<int32_t>(*tensor), data);
  EXPECT_TRUE(testing::Eventually([&] { return daemon_.blobs() == 0; }));
}

TEST_F(ClientTest, TensorsLieWhereTheyAreSent) {
  auto client = Connect();
  const Mesh mesh = {.axes = {{"data", 2}}, .devices = {"cpu:0", "cpu:1"}};
  auto tensor = client->Upload<float>({2}, {1, 2}, {.mesh = mesh, .spec = {{"data"}}});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  ASSERT_TRUE(client->Move(*tensor, {.device = "cpu:1"}).ok());
  ASSERT_TRUE(client->Move(*tensor, {}).ok());
  GraphBuilder builder;
  builder.SetMesh(mesh);
  builder.Output(builder.Input(DType::kFloat32, {2}));
  ASSERT_TRUE(client->Define(builder.Build(), "on a mesh").ok());
  ASSERT_TRUE(client->Define(TwoInputs(), "elsewhere", "cpu:1").ok());
  ASSERT_TRUE(client->Barrier().ok());
  std::vector<v1::Placement> placements;
  std::vector<v1::DefineProgram> programs;
  for (const v1::ConnectRequest& operation : daemon_.operations()) {
    if (operation.has_write()) placements.push_back(operation.write().placement());
    if (operation.has_move()) placements.push_back(operation.move().placement());
    if (operation.has_define_program()) programs.push_back(operation.define_program());
  }
  ASSERT_EQ(placements.size(), 3u);
  EXPECT_THAT(placements[0].devices(), ElementsAre("cpu:0", "cpu:1"));
  EXPECT_EQ(placements[0].mesh().axes(0).size(), 2u);
  EXPECT_THAT(placements[0].spec().dims(0).axes(), ElementsAre(0u));
  EXPECT_THAT(placements[1].devices(), ElementsAre("cpu:1"));
  EXPECT_FALSE(placements[1].has_mesh());
  EXPECT_EQ(client::PlacementOf(placements[0]).mesh, mesh);
  EXPECT_THAT(client::PlacementOf(placements[0]).spec, ElementsAre(ElementsAre("data")));
  EXPECT_EQ(client::PlacementOf(placements[1]).device, "cpu:1");
  EXPECT_THAT(placements[2].devices(), ElementsAre("cpu:0"));
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_THAT(programs[0].devices(), ElementsAre("cpu:0", "cpu:1"));
  EXPECT_THAT(programs[1].devices(), ElementsAre("cpu:1"));

  auto wrong = client->Upload<float>({2}, {1, 2}, {.mesh = mesh, .device = "cpu:0"});
  EXPECT_THAT(wrong.status().message(), HasSubstr("on cpu:0 and on a mesh"));
}

TEST_F(ClientTest, EmptyTensorsAreTensors) {
  auto client = Connect();
  auto tensor = client->Upload<float>({0, 4}, absl::Span<const float>());
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_TRUE(client->Download<float>(*tensor)->empty());
}

TEST_F(ClientTest, UploadChecksTheSize) {
  auto client = Connect();
  auto tensor = client->Upload<float>({2, 2}, {1, 2, 3});
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(tensor.status().message(), HasSubstr("need 16 bytes, but the data has 12"));
}

TEST_F(ClientTest, RunReturnsHandlesAtOnceAndAReportLater) {
  auto client = Connect();
  auto program = client->Define(TwoInputs(), "pair");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(*program->digest(), "digest-of-pair");
  auto run = client->Run(
      *program, {*client->Upload<float>({2}, {1, 2}), *client->Upload<float>({3}, {3, 4, 5})},
      {.bindings = {{"length", 7}}, .report_time = true});
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->outputs.size(), 2u);
  EXPECT_THAT(*client->Download<float>(run->outputs[1]), ElementsAre(3, 4, 5));
  EXPECT_EQ(run->done.Get()->device_seconds, 0.25);
  for (const v1::ConnectRequest& operation : daemon_.operations()) {
    if (!operation.has_run()) continue;
    EXPECT_EQ(operation.run().bindings().count("length"), 1u);
  }
}

TEST_F(ClientTest, RunChecksTheNumberOfInputs) {
  auto client = Connect();
  auto program = client->Define(TwoInputs(), "pair");
  auto run = client->Run(*program, {*client->Upload<float>({2}, {1, 2})});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(run.status().message(), HasSubstr("program pair has 2 inputs, but the call gives 1"));
}

TEST_F(ClientTest, TheDaemonsErrorComesWithItsReason) {
  auto client = Connect();
  auto program = client->Define(TwoInputs(), "wrong");
  auto digest = program->digest();
  EXPECT_EQ(digest.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(digest.status().message(), HasSubstr("node 2 (add)"));
  EXPECT_EQ(ErrorReason(digest.status()), "SHAPE_MISMATCH");
  EXPECT_EQ(ErrorReason(absl::InternalError("no details")), "");
}

TEST_F(ClientTest, TheLastCopyReleasesTheBuffer) {
  auto client = Connect();
  {
    auto first = client->Upload<float>({1}, {1});
    Tensor copy = *first;
    first = absl::UnknownError("gone");
    ASSERT_TRUE(client->Barrier().ok());
    EXPECT_EQ(daemon_.buffers().count(copy.handle()), 1u);
  }
  ASSERT_TRUE(client->Barrier().ok());
  EXPECT_TRUE(daemon_.buffers().empty());
}

TEST_F(ClientTest, ALostConnectionRunsNothingTwiceAndLosesNothing) {
  auto client = Connect();
  auto program = client->Define(TwoInputs(), "pair");
  auto a = client->Upload<float>({2}, {1, 2});
  auto b = client->Upload<float>({3}, {3, 4, 5});
  std::vector<RunResult> runs;
  for (int i = 0; i < 60; ++i) {
    if (i % 20 == 5) daemon_.BreakAfter(4);
    runs.push_back(*client->Run(*program, {*a, *b}));
    if (i % 20 != 15) continue;
    ASSERT_TRUE(client->Barrier().ok());
  }
  for (const RunResult& run : runs) EXPECT_TRUE(run.done.Get().ok()) << run.done.Get().status();
  EXPECT_EQ(daemon_.runs(), 60);
  EXPECT_GE(daemon_.streams(), 4);
  EXPECT_THAT(*client->Download<float>(runs[59].outputs[0]), ElementsAre(1, 2));
}

TEST_F(ClientTest, ManyRunsShareMessagesAndOutliveCuts) {
  auto client = Connect();
  auto program = client->Define(TwoInputs(), "pair");
  auto a = client->Upload<float>({2}, {1, 2});
  auto b = client->Upload<float>({3}, {3, 4, 5});
  std::vector<RunResult> runs;
  for (int i = 0; i < 6000; ++i) {
    if (i % 1000 == 500) daemon_.BreakAfter(107);
    runs.push_back(*client->Run(*program, {*a, *b}));
  }
  for (const RunResult& run : runs) ASSERT_TRUE(run.done.Get().ok()) << run.done.Get().status();
  EXPECT_EQ(daemon_.runs(), 6000);
  EXPECT_GE(daemon_.streams(), 2);
  EXPECT_LT(daemon_.messages(), 6000);
}

TEST_F(ClientTest, WhoSendsFarAheadWaits) {
  auto client = Connect();
  auto program = client->Define(TwoInputs(), "pair");
  auto a = client->Upload<float>({2}, {1, 2});
  auto b = client->Upload<float>({3}, {3, 4, 5});
  ASSERT_TRUE(client->Barrier().ok());
  daemon_.Hold();
  std::atomic<int> sent{0};
  std::vector<RunResult> kept;  // keeps the results: releasing them would add operations
  std::thread sender([&] {
    for (; sent < 5000; ++sent) kept.push_back(client->Run(*program, {*a, *b}).value());
  });
  EXPECT_TRUE(testing::Eventually([&] { return sent == 4096; }));
  EXPECT_EQ(daemon_.runs(), 0);
  daemon_.LetGo();
  sender.join();
  ASSERT_TRUE(client->Barrier().ok());
  EXPECT_EQ(daemon_.runs(), 5000);
  // An operation's acknowledged number shows how far the client was ahead of the answers at that
  // time.
  uint64_t furthest = 0;
  for (const v1::ConnectRequest& operation : daemon_.operations())
    furthest = std::max(furthest, operation.sequence() - operation.acknowledged());
  EXPECT_EQ(furthest, 4096);
}

// Also while it attaches again with unsent operations.
TEST_F(ClientTest, MayEndAtAnyMoment) {
  for (int i = 0; i < 60; ++i) {
    auto client = Connect();
    auto program = client->Define(TwoInputs(), "pair");
    auto a = client->Upload<float>({2}, {1, 2});
    auto b = client->Upload<float>({3}, {3, 4, 5});
    daemon_.BreakAfter(3 + i % 20);
    for (int run = 0; run < 100; ++run) client->Run(*program, {*a, *b}).value();
  }
}

TEST_F(ClientTest, ManyThreadsShareAClient) {
  auto client = Connect();
  auto program = client->Define(TwoInputs(), "pair");
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const float value = static_cast<float>(100 * t + i);
        auto run = client->Run(*program, {*client->Upload<float>({2}, {value, value}),
                                          *client->Upload<float>({3}, {0, 0, 0})});
        EXPECT_THAT(*client->Download<float>(run->outputs[0]), ElementsAre(value, value));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(daemon_.runs(), 200);
}

TEST_F(ClientTest, ClosingEndsTheSessionAndHandlesMayOutliveIt) {
  auto client = Connect();
  Tensor tensor = *client->Upload<float>({1}, {1});
  client.reset();
  EXPECT_TRUE(daemon_.closed());
}

TEST(FutureTest, GetHonoursItsDeadline) {
  Future<int>::Promise promise;
  Future<int> future = promise.future();
  EXPECT_FALSE(future.Ready());
  EXPECT_EQ(future.Get(absl::Now() + absl::Milliseconds(5)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  promise.Set(7);
  EXPECT_TRUE(future.Ready());
  EXPECT_EQ(*future.Get(), 7);
}

}  // namespace
}  // namespace kiln
