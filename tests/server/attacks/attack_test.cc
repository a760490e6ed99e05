// Attacks on the daemon's memory: the process stays within its stated limits, the attacking client
// gets a reason, and another client's training continues, bit for bit.
#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/environment.h"
#include "tests/server/client.h"
#include "tests/server/kilnd_process.h"
#include "tests/server/trainer.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

// A factor for all amounts, for manual runs: KILN_ATTACK_SCALE=50 with limits as on a real machine.
int64_t Scale() { return NumberFromEnvironment("KILN_ATTACK_SCALE", 1); }

// Sends without reading, until it is refused or told to stop. If the daemon stops reading, the
// write blocks and is cancelled by Stop.
class Flood {
 public:
  using Make = std::function<v1::ConnectRequest(uint64_t number)>;

  // `acknowledges`: claims to have received every answer.
  Flood(Client& client, Make make, bool acknowledges)
      : make_(std::move(make)), acknowledges_(acknowledges) {
    stream_ = client.sessions->Connect(&context_);
    stream_->Write(AttachTo(client.session.session_id()));
    thread_ = std::thread([this] {
      Send();
      ended_ = true;
    });
  }
  ~Flood() { Stop(); }

  uint64_t sent() const { return sent_; }
  bool ended() const { return ended_; }
  // Ends it and reads what there is. Returns the last error of an operation, or else that of the
  // stream.
  std::string Stop() {
    if (!thread_.joinable()) return error_;
    stopping_ = true;
    context_.TryCancel();
    thread_.join();
    v1::ConnectResponse response;
    while (stream_->Read(&response)) {
    }
    const grpc::Status status = stream_->Finish();
    if (status.error_code() != grpc::CANCELLED) error_ = status.error_message();
    return error_;
  }

 private:
  void Send() {
    while (!stopping_) {
      v1::ConnectRequest request = make_(sent_ + 1);
      request.set_sequence(sent_ + 1);
      if (acknowledges_) request.set_acknowledged(sent_ + 1);
      if (!stream_->Write(request)) return;
      ++sent_;
    }
  }

  const Make make_;
  const bool acknowledges_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConnectRequest, v1::ConnectResponse>> stream_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> sent_{0};
  std::string error_;
  std::thread thread_;
};

class AttackTest : public ProcessTest {
 protected:
  static int64_t HostLimit() { return 64 * kMebibyte * Scale(); }
  static int64_t DeviceLimit() { return 32 * kMebibyte * Scale(); }
  // For gRPC's buffers, which stay far below their limit, and the process without clients.
  static int64_t OwnLimit() { return std::max(64 * kMebibyte, HostLimit() / 8) + own_; }

  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = ProcessTest::Flags();
    flags.push_back(absl::StrCat("--host_memory_limit=", HostLimit()));
    flags.push_back(absl::StrCat("--memory_limit=", DeviceLimit()));
    flags.push_back("--cpu_threads=1");
    return flags;
  }
  void SetUp() override {
    ProcessTest::SetUp();
    Start();
    trainer_ = std::make_unique<Trainer>(address_);
    ASSERT_TRUE(trainer_->Advances(3));
    own_ = PeakBytes();
  }
  void TearDown() override {
    EXPECT_TRUE(trainer_->Advances(3));
    trainer_.reset();
    EXPECT_GT(kill(pid_, 0), -1) << Log();
    const int64_t peak = PeakBytes();
    if (kMemoryIsOurs) {
      EXPECT_LT(peak, HostLimit() + DeviceLimit() + OwnLimit());
    }
    std::printf("resident: %lld MiB before, %lld MiB at most; the limits allow %lld MiB\n",
                static_cast<long long>(own_ / kMebibyte), static_cast<long long>(peak / kMebibyte),
                static_cast<long long>((HostLimit() + DeviceLimit() + OwnLimit()) / kMebibyte));
    ProcessTest::TearDown();
  }

  // Makes several clients send until each has sent `messages` messages or has been refused, or
  // until all are blocked: they send nothing while the trainer makes kHeldUp steps.
  void Attack(int clients, uint64_t messages,
              const std::function<Flood::Make(Client&, int)>& prepare, bool acknowledges) {
    std::vector<std::unique_ptr<Client>> all;
    std::vector<std::unique_ptr<Flood>> floods;
    for (int i = 0; i < clients; ++i) {
      all.push_back(std::make_unique<Client>(address_));
      ASSERT_TRUE(all.back()->opened.ok()) << all.back()->opened.error_message();
      floods.push_back(std::make_unique<Flood>(*all.back(), prepare(*all.back(), i), acknowledges));
    }
    // A sanitizer is slow and its memory is not checked, so fewer messages are enough.
    const uint64_t enough = std::max<uint64_t>(2, messages * Scale() / (kMemoryIsOurs ? 1 : 10));
    const auto all_have_sent = [&](uint64_t number) {
      return std::all_of(floods.begin(), floods.end(), [number](const auto& flood) {
        return flood->sent() >= number || flood->ended();
      });
    };
    const auto sent = [&] {
      uint64_t sum = 0;
      for (const auto& flood : floods) sum += flood->sent();
      return sum;
    };
    int held_up = 0;  // the trainer's steps since a message was last sent
    while (!all_have_sent(enough) && !(held_up >= kHeldUp && all_have_sent(2))) {
      const uint64_t before = sent();
      ASSERT_TRUE(trainer_->Advances(1));
      held_up = sent() == before ? held_up + 1 : 0;
    }
    for (const auto& flood : floods) {
      EXPECT_GT(flood->sent(), 1);
      error_ = flood->Stop();
    }
  }

  static constexpr int kHeldUp = 50;
  inline static int64_t own_ = 0;
  std::unique_ptr<Trainer> trainer_;
  std::string error_;
};

// Reads values of 1 MiB repeatedly and takes none of the answers.
Flood::Make Reads(Client& client, int) {
  client.Upload("values", std::string(kMebibyte, 'x'));
  return
      [](uint64_t number) { return number == 1 ? WriteBlob(1, "values", kMebibyte / 4) : Read(1); };
}

TEST_F(AttackTest, SlowReader) { Attack(4, 100'000, Reads, false); }
TEST_F(AttackTest, SlowReaderThatAcknowledgesAll) { Attack(4, 100'000, Reads, true); }

TEST_F(AttackTest, AnswersThatNobodyAcknowledges) {
  Client client(address_);
  auto stream = client.Connect();
  for (int i = 0; i < 300'000 * Scale(); ++i) {
    if (stream->Call(Read(7)).error().code() == grpc::NOT_FOUND) continue;
    EXPECT_THAT(stream->End().error_message(), HasSubstr("have not been acknowledged"));
    return;
  }
  FAIL() << "all were taken";
}

// Distinct graphs with long texts and many nodes, of about `bytes` on the wire.
v1::Graph HugeGraph(uint64_t number, int64_t bytes) {
  v1::Graph graph = AddGraph(static_cast<int64_t>(number % 1000 + 1));
  for (int64_t i = 2; i < bytes / 100; ++i) {
    v1::Node* node = graph.add_nodes();
    node->set_op("add");
    node->add_operands(static_cast<uint32_t>(i));
    node->add_operands(static_cast<uint32_t>(i * 7 % (i + 1)));
    node->set_source(absl::StrCat(std::string(80, 's'), i));
  }
  graph.set_outputs(0, static_cast<uint32_t>(graph.nodes_size() - 1));
  return graph;
}

TEST_F(AttackTest, HugeGraphs) {
  Attack(
      4, 100,
      [](Client&, int client) -> Flood::Make {
        return [client](uint64_t number) {
          return Define(number, HugeGraph(10 * number + client, kMebibyte / 2 * Scale()));
        };
      },
      true);
}

TEST_F(AttackTest, FailedHandles) {
  Attack(
      4, 40'000,
      [](Client&, int) -> Flood::Make {
        return [](uint64_t number) {
          std::vector<uint64_t> outputs(100);
          for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = 2 * (number * 100 + i);
          return RunProgram(77, {1}, outputs);
        };
      },
      true);
}

TEST_F(AttackTest, Releases) {
  Attack(
      4, 3,
      [](Client&, int) -> Flood::Make {
        const std::vector<uint64_t> handles(200'000, 7);
        return [handles](uint64_t) { return Release(handles); };
      },
      false);
}

TEST_F(AttackTest, SmallTensorsThatNobodyReleases) {
  Attack(
      4, 50'000,
      [](Client&, int) -> Flood::Make {
        return [](uint64_t number) { return Write(3 * number, {1}); };
      },
      true);
}

TEST_F(AttackTest, UploadsThatNobodyUses) {
  Client client(address_);
  grpc::Status last;
  for (int i = 0; i < 100; ++i) {
    last = client.Upload(absl::StrCat("blob", i), std::string(kMebibyte * Scale(), 'x'));
    if (!last.ok()) break;
  }
  EXPECT_EQ(last.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(last.error_message(), HasSubstr("the daemon's host memory is too small"));
  EXPECT_THAT(last.error_message(), HasSubstr("by session s"));
  EXPECT_EQ(Reason(last), "HOST_MEMORY");
  EXPECT_TRUE(Client(address_).Upload("mine", std::string(kMebibyte / 2, 'x')).ok());
}

// Freed memory is kept for the next tensor of its size. With many sizes that could be several times
// the device's memory.
TEST_F(AttackTest, FreedTensorsOfManySizes) {
  Client client(address_);
  auto stream = client.Connect();
  uint64_t handle = 0;
  for (int64_t bytes = kMebibyte; bytes < DeviceLimit() / 3 * 2; bytes += bytes / 9) {
    const std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float), 1);
    const v1::Result written = stream->Call(Write(++handle, values));
    EXPECT_FALSE(written.has_error()) << bytes << ": " << written.error().message();
    stream->Send(Release({handle}));
  }
}

TEST_F(AttackTest, ProgramsThatNobodyReleases) {
  Attack(
      2, 20'000,
      [](Client&, int client) -> Flood::Make {
        return [client](uint64_t number) {
          return Define(number, AddGraph(static_cast<int64_t>(2 * number + client + 20'000)));
        };
      },
      true);
}

}  // namespace
}  // namespace kiln::testing
