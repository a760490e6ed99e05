// Calls that are cheap to make and need much memory to answer. Other clients are served meanwhile,
// and the memory is charged.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/eventually.h"
#include "tests/server/attacks/hostile_fixture.h"
#include "tests/server/client.h"
#include "tests/server/raw_connection.h"

namespace kiln::testing {
namespace {

// A slow machine needs minutes for this many calls.
constexpr absl::Duration kTimeForCalls = absl::Minutes(8);
constexpr int kCalls = 750;       // their requests fit into the initial flow-control window
constexpr int kCallsAtOnce = 50;  // less than the limit of waiting calls

class AmplifiedTest : public HostileTest {
 protected:
  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = HostileTest::Flags();
    flags.push_back("--host_memory_limit=64MiB");
    flags.push_back("--cpu_devices=4");
    return flags;
  }
  void SetUp() override {
    HostileTest::SetUp();
    ExpectItServes();
    before_ = PeakBytes();
  }
  void ExpectMemoryWithin(int64_t bytes) const {
    const int64_t more = PeakBytes() - before_;
    std::printf("%lld MiB more at most\n", static_cast<long long>(more / kMebibyte));
    if (kMemoryIsOurs) {
      EXPECT_LT(more, bytes);
    }
  }
  // Makes calls and reads none of the answers, until the same call by `again` is refused because of
  // the memory that they hold.
  void ExpectRefusedWhileUnread(absl::string_view method, const std::string& request,
                                const std::function<grpc::Status()>& again) {
    std::vector<std::unique_ptr<RawConnection>> connections;
    const auto call = [&] {
      RawConnection& connection =
          *connections.emplace_back(std::make_unique<RawConnection>(Port()));
      // SETTINGS_INITIAL_WINDOW_SIZE (4) is 0: no byte of an answer may be sent.
      connection.Send(Frame(kSettings, 0, 0, std::string("\0\4\0\0\0\0", 6)));
      for (uint32_t i = 0; i < kCallsAtOnce; ++i) connection.Send(Call(2 * i + 1, method, request));
      connection.StayAlive();
    };
    // On an overloaded machine, connections may miss their pings: the client's own and those with
    // the calls.
    grpc::Status refused;
    Eventually(
        [&] {
          if (!connections.empty() && connections.front()->HasEnded()) connections.clear();
          if (refused.ok()) call();
          refused = again();
          return Reason(refused) == "HOST_MEMORY";
        },
        kTimeForCalls);
    EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED) << refused.error_message();
    EXPECT_EQ(Reason(refused), "HOST_MEMORY");
    ExpectItServes();
  }
  // Waits until the call succeeds again after the connections are gone.
  static void ExpectServedAgain(const std::function<grpc::Status()>& again) {
    grpc::Status served;
    Eventually(
        [&] {
          served = again();
          return served.ok();
        },
        kTimeForCalls);
    EXPECT_TRUE(served.ok()) << served.error_message();
  }

  int64_t before_ = 0;
};

// A long program, whose explanation is large.
v1::Graph Chain(int length) {
  v1::Graph graph = NegGraph(64);
  for (int i = 0; i < length; ++i) {
    v1::Node* node = graph.add_nodes();
    node->set_op("sin");
    node->add_operands(static_cast<uint32_t>(graph.nodes_size() - 2));
  }
  graph.set_outputs(0, static_cast<uint32_t>(graph.nodes_size() - 1));
  return graph;
}

TEST_F(AmplifiedTest, ExplanationsThatNobodyTakesAreCharged) {
  // The same user as that of the raw connections.
  Client client(absl::StrCat("127.0.0.1:", Port()));
  auto stream = client.Connect();
  const v1::Result defined = stream->Call(Define(1, Chain(2000)));
  ASSERT_FALSE(defined.has_error()) << defined.error().message();
  ASSERT_FALSE(stream->Call(Write(1, std::vector<float>(64))).has_error());
  ASSERT_FALSE(stream->Call(RunProgram(1, {1}, {2})).has_error());
  ASSERT_FALSE(stream->Call(Read(2)).has_error());
  v1::ExplainProgramRequest request;
  request.set_digest(defined.digest());
  const auto again = [&] {
    return Try(client.programs, &v1::ProgramService::Stub::ExplainProgram, request);
  };
  const grpc::Status explained = again();
  ASSERT_TRUE(explained.ok()) << explained.error_message();
  ExpectRefusedWhileUnread("/kiln.v1.ProgramService/ExplainProgram", request.SerializeAsString(),
                           again);
  ExpectServedAgain(again);
  ExpectMemoryWithin(250 * kMebibyte);
}

// gRPC keeps state for each call.
TEST_F(AmplifiedTest, WhoeverHasTooManyCallsLosesConnections) {
  Client client(absl::StrCat("127.0.0.1:", Port()));  // the same user's
  auto stream = client.Connect();
  const auto connect = [this] {
    auto connection = std::make_unique<RawConnection>(Port());
    for (uint32_t call = 0; call < kCalls; ++call) {
      // For half of the calls not even the message is sent.
      const char* const method = "/kiln.v1.DeviceService/WatchDevices";
      connection->Send(call % 2 == 0
                           ? Call(2 * call + 1, method, "")
                           : Frame(kHeaders, kEndHeaders, 2 * call + 1, CallHeaders(method)));
    }
    connection->StayAlive();
    return connection;
  };
  std::vector<std::unique_ptr<RawConnection>> connections(12);
  const auto has_lost_one = [this] {
    return absl::StrContains(Log(), "its user has too many calls at once");
  };
  // On an overloaded machine, connections may miss their pings and are closed for that.
  EXPECT_TRUE(Eventually(
      [&] {
        for (auto& connection : connections)
          if (connection == nullptr || connection->HasEnded()) connection = connect();
        return has_lost_one();
      },
      kTimeForCalls))
      << Log();
  // Connections with few calls are kept.
  EXPECT_FALSE(stream->Call(Write(1, {1})).has_error());
  ExpectItServes();
}

// The names are held as they arrived and while they are looked up, and so are those that were
// found.
TEST_F(AmplifiedTest, AQuestionForManyBlobsIsCharged) {
  Client client(address_);
  const std::string name(200, 'x');
  ASSERT_TRUE(client.Upload(name, "1234").ok());
  v1::FindBlobsRequest request;
  request.set_session_id(client.session.session_id());
  const auto ask = [&] { return Try(client.blobs, &v1::BlobService::Stub::FindBlobs, request); };
  for (int i = 0; i < 1000; ++i) request.add_blobs(name);
  const grpc::Status few = ask();
  EXPECT_TRUE(few.ok()) << few.error_message();
  for (int i = 0; i < 100'000; ++i) request.add_blobs(name);
  EXPECT_EQ(Reason(ask()), "HOST_MEMORY");
}

// The request waits for its turn.
TEST_F(AmplifiedTest, ALargeRequestForAnExplanationIsCharged) {
  Client client(address_);
  v1::ExplainProgramRequest request;
  const auto ask = [&] {
    return Try(client.programs, &v1::ProgramService::Stub::ExplainProgram, request);
  };
  request.set_digest(std::string(1000, 'x'));
  EXPECT_EQ(ask().error_code(), grpc::NOT_FOUND);
  request.set_digest(std::string(40 * kMebibyte, 'x'));
  EXPECT_EQ(Reason(ask()), "HOST_MEMORY");
}

// One-byte elements, with neighbours on different devices.
TEST_F(AmplifiedTest, AWriteInManyRunsTakesNoMoreThanItsBytes) {
  Client client(address_);
  auto stream = client.Connect();
  constexpr int64_t kRows = 6'000'000;
  std::string bytes(2 * kRows, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 3);
  ASSERT_TRUE(client.Upload("bytes", bytes).ok());
  v1::ConnectRequest request;
  v1::Write* write = request.mutable_write();
  write->set_handle(1);
  write->set_dtype(v1::DTYPE_INT8);
  write->add_shape(kRows);
  write->add_shape(2);
  write->set_blob("bytes");
  for (int i = 0; i < 4; ++i) write->mutable_placement()->add_devices(absl::StrCat("cpu:", i));
  for (const char* name : {"a", "b"}) {
    v1::Mesh::Axis* axis = write->mutable_placement()->mutable_mesh()->add_axes();
    axis->set_name(name);
    axis->set_size(2);
  }
  write->mutable_placement()->mutable_spec()->add_dims();
  write->mutable_placement()->mutable_spec()->add_dims()->add_axes(0);
  const v1::Result written = stream->Call(request);
  ASSERT_FALSE(written.has_error()) << written.error().message();
  std::string read;
  ASSERT_TRUE(client.Download(1, stream->next_sequence() - 1, &read).ok());
  EXPECT_TRUE(read == bytes);
  ExpectItServes();
  ExpectMemoryWithin(150 * kMebibyte);
}

}  // namespace
}  // namespace kiln::testing
