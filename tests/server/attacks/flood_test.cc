// Floods of HTTP/2 frames that complete no message, by raw connections: gRPC itself sets no bound
// on a call's headers. Other clients are served meanwhile.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/eventually.h"
#include "tests/server/attacks/hostile_fixture.h"
#include "tests/server/client.h"
#include "tests/server/raw_connection.h"
#include "tests/server/trainer.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kFloodBytes = 400 * kMebibyte;  // bytes that a connection tries to send
constexpr char kOpenSession[] = "/kiln.v1.SessionService/OpenSession";
constexpr char kListDevices[] = "/kiln.v1.DeviceService/ListDevices";
constexpr char kConnect[] = "/kiln.v1.SessionService/Connect";

// Returns many frames of one header each.
std::string Continuations(uint32_t stream) {
  const std::string frame =
      Frame(kContinuation, 0, stream, Header(std::string(20, 'a'), std::string(100, 'b')));
  std::string frames;
  while (frames.size() < 60'000) frames += frame;
  return frames;
}

// Sends `bytes` repeatedly; returns the number of bytes that were sent until the connection ended,
// or kFloodBytes.
int64_t Flood(RawConnection& connection, const std::string& bytes) {
  int64_t sent = 0;
  while (sent < kFloodBytes && connection.Send(bytes)) sent += static_cast<int64_t>(bytes.size());
  return sent;
}

class FloodTest : public HostileTest {
 protected:
  void SetUp() override {
    HostileTest::SetUp();
    tcp_ = absl::StrCat("127.0.0.1:", Port());
    // The memory that the first client allocates once does not count.
    ExpectItServes();
    before_ = PeakBytes();
  }
  // Floods by several connections at once, while another client makes calls. `flood` returns how
  // many bytes it could send.
  void Flood(int connections, const std::function<int64_t()>& flood) {
    std::atomic<int> flooding{connections};
    std::vector<std::thread> threads;
    for (int i = 0; i < connections; ++i) {
      threads.emplace_back([&] {
        EXPECT_LT(flood(), kFloodBytes);
        --flooding;
      });
    }
    Client client(address_);
    do {
      const grpc::Status listed =
          Try(client.devices, &v1::DeviceService::Stub::ListDevices, v1::ListDevicesRequest());
      EXPECT_TRUE(listed.ok()) << listed.error_message();
    } while (flooding > 0);
    for (std::thread& each : threads) each.join();
    ExpectItServes();
  }
  // The connection may end before the log is written.
  void ExpectLogged(absl::string_view what) {
    EXPECT_TRUE(Eventually([&] { return absl::StrContains(Log(), what); })) << Log();
  }
  void ExpectMemoryWithin(int64_t bytes) const {
    const int64_t more = PeakBytes() - before_;
    std::printf("%lld MiB more at most\n", static_cast<long long>(more / kMebibyte));
    if (kMemoryIsOurs) {
      EXPECT_LT(more, bytes);
    }
  }
  // Opens a separate connection.
  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(tcp_, grpc::InsecureChannelCredentials(), arguments);
  }

  std::string tcp_;
  int64_t before_ = 0;
};

TEST_F(FloodTest, HeadersWithoutEndEndTheirConnection) {
  Flood(4, [this] {
    RawConnection connection(Port());
    connection.Send(Frame(kHeaders, 0, 1, CallHeaders(kOpenSession)));
    return kiln::testing::Flood(connection, Continuations(1));
  });
  ExpectMemoryWithin(100 * kMebibyte);
  ExpectLogged("event=connection_refused peer=127.0.0.1:");
  ExpectLogged("the headers of a call are larger than 65536 bytes");
}

TEST_F(FloodTest, HeadersWithoutEndEndAConnectionWhoseCallsAreAccepted) {
  Flood(1, [this] {
    RawConnection connection(Port());
    // A stream of messages begins with its headers; here no token is needed.
    connection.Send(Frame(kHeaders, kEndHeaders, 1, CallHeaders(kConnect)));
    connection.Send(Frame(kHeaders, 0, 3, CallHeaders(kConnect)));
    return kiln::testing::Flood(connection, Continuations(3));
  });
  ExpectMemoryWithin(100 * kMebibyte);
  ExpectLogged("the headers of a call are larger than 65536 bytes");
}

// An upload is a stream of messages; the other call's only message is received before the call
// begins.
TEST_F(FloodTest, WhoeverBeginsWithALotIsServed) {
  Client client(tcp_);
  ASSERT_TRUE(client.opened.ok()) << client.opened.error_message();
  client.blobs = v1::BlobService::NewStub(NewChannel());
  const grpc::Status uploaded =
      client.Upload("large", std::string(100 * kMebibyte, 'x'), /*chunk=*/50 * kMebibyte);
  EXPECT_TRUE(uploaded.ok()) << uploaded.error_message();

  // A field that the message does not have.
  v1::OpenSessionRequest request;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
      1000, std::string(60 * kMebibyte, 'x'));
  const grpc::Slice bytes(request.SerializeAsString());
  for (int i = 0; i < 5; ++i) {
    grpc::ClientContext context;
    const grpc::Status opened =
        TryBytes(NewChannel(), kOpenSession, grpc::ByteBuffer(&bytes, 1), context);
    EXPECT_TRUE(opened.ok()) << opened.error_message();
  }
  EXPECT_THAT(Log(), Not(HasSubstr("event=connection_ended")));
}

// "Rapid reset", CVE-2023-44487: gRPC would accept all calls and have no time for other clients.
class RapidResetTest : public FloodTest {
 protected:
  std::string MoreConfiguration() const override { return "[auth]\nsystem_users = true\n"; }
  void SetUp() override {
    FloodTest::SetUp();
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    owner_ = std::make_unique<Client>(address_);
    ASSERT_TRUE(owner_->opened.ok()) << owner_->opened.error_message();
  }
  // Begins calls and resets them, 100 at once, until `is_over` or until the daemon closes the
  // connection. Returns whether it did.
  static bool Attack(RawConnection& connection, const std::string& token,
                     const std::atomic<bool>& is_over) {
    for (uint32_t stream = 1; !is_over;) {
      std::string calls;
      for (const uint32_t end = stream + 200; stream < end; stream += 2) {
        absl::StrAppend(&calls,
                        Frame(kHeaders, kEndHeaders, stream, CallHeaders(kListDevices, token)),
                        Frame(kReset, 0, stream, std::string("\0\0\0\x8", 4)));
      }
      // IsOpen discards the answers: while they are not taken, gRPC reads no more calls.
      if (!connection.Send(calls) || !connection.IsOpen()) return true;
    }
    return false;
  }

  std::unique_ptr<Client> owner_;
};

// Strangers lose their connections. A user's and another account's are read at their rates.
TEST_F(RapidResetTest, ByStrangersUsersAndOtherAccountsHindersNobody) {
  const std::string mallory = AddUser(*owner_, "mallory");
  const Trainer trainer(address_);
  ASSERT_TRUE(trainer.Advances(3));
  std::atomic<bool> is_over = false;
  std::optional<OtherAccount> other;
  if (geteuid() == 0) {
    other.emplace([this, &is_over] {
      RawConnection connection(address_.substr(5));
      return Attack(connection, "", is_over);
    });
  }
  std::vector<std::thread> strangers;
  for (int i = 0; i < 2; ++i) {
    strangers.emplace_back([this, &is_over] {
      RawConnection connection(Port());
      EXPECT_TRUE(Attack(connection, "", is_over));
    });
  }
  std::thread user([this, &mallory, &is_over] {
    RawConnection connection(Port());
    Attack(connection, mallory, is_over);
  });
  for (std::thread& each : strangers) {
    EXPECT_TRUE(trainer.Advances(3));
    each.join();
  }
  EXPECT_TRUE(trainer.Advances(3));
  other.reset();
  is_over = true;
  user.join();
  EXPECT_TRUE(trainer.Advances(3));
  // Calls that were begun wait for a busy processor, at some 20 KiB each; of the user and of the
  // strangers of each origin at most `user_calls_max` (server/rpc/connections/bounds.h).
  ExpectMemoryWithin(500 * kMebibyte);
}

}  // namespace
}  // namespace kiln::testing
