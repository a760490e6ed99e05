// Floods of HTTP/2 frames that make no message of any call, by raw connections: gRPC collects a
// call's headers without a bound of its own. Others are served meanwhile.
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/server/client.h"
#include "tests/server/hostile_fixture.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kFloodBytes = 400 * kMebibyte;  // that a connection would send
constexpr char kOpenSession[] = "/kiln.v1.SessionService/OpenSession";
constexpr char kConnect[] = "/kiln.v1.SessionService/Connect";

// RFC 9113, section 6.
enum FrameType : char { kHeaders = 1, kReset = 3, kSettings = 4, kContinuation = 9 };
constexpr char kEndHeaders = 4;

std::string Frame(FrameType type, char flags, uint32_t stream, absl::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(type);
  frame.push_back(flags);
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return absl::StrCat(frame, payload);
}

// RFC 7541, section 6.2.2: a literal header without indexing.
std::string Header(absl::string_view name, absl::string_view value) {
  std::string header(1, '\0');
  for (const absl::string_view text : {name, value}) {
    header.push_back(static_cast<char>(text.size()));
    absl::StrAppend(&header, text);
  }
  return header;
}

// POST by http, as gRPC's clients send it.
std::string CallHeaders(absl::string_view method) {
  return absl::StrCat("\x83\x86", Header(":path", method), Header(":authority", "localhost"),
                      Header("content-type", "application/grpc"), Header("te", "trailers"));
}

// Many frames of one header each.
std::string Continuations(uint32_t stream) {
  const std::string frame =
      Frame(kContinuation, 0, stream, Header(std::string(20, 'a'), std::string(100, 'b')));
  std::string frames;
  while (frames.size() < 60'000) frames += frame;
  return frames;
}

// A connection that speaks HTTP/2 as far as it likes.
class RawConnection {
 public:
  explicit RawConnection(int port) : file_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_TRUE(Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    EXPECT_TRUE(Send(Frame(kSettings, 0, 0, "")));
  }
  ~RawConnection() { close(file_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // False once the daemon has ended the connection.
  bool Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Sends it again and again; returns how many bytes were sent until the connection ended, or
  // kFloodBytes.
  int64_t Flood(const std::string& bytes) {
    int64_t sent = 0;
    while (sent < kFloodBytes && Send(bytes)) sent += static_cast<int64_t>(bytes.size());
    return sent;
  }

 private:
  const int file_;
};

class FloodTest : public HostileTest {
 protected:
  void SetUp() override {
    HostileTest::SetUp();
    tcp_ = absl::StrCat("127.0.0.1:", Port());
    // What the first client takes once and for all is none of the flood's.
    ExpectItServes();
    before_ = PeakBytes();
  }
  // By several at once, while others call. `flood` returns how many bytes it could send.
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
  void ExpectMemoryWithin(int64_t bytes) const {
    const int64_t more = PeakBytes() - before_;
    std::printf("%lld MiB more at most\n", static_cast<long long>(more / kMebibyte));
    if (kMemoryIsOurs) {
      EXPECT_LT(more, bytes);
    }
  }
  // With a connection of its own.
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
    return connection.Flood(Continuations(1));
  });
  ExpectMemoryWithin(700 * kMebibyte);
  EXPECT_THAT(Log(), HasSubstr("event=connection_ended peer=127.0.0.1:"));
  EXPECT_THAT(Log(), HasSubstr("no call that it brought was accepted"));
}

TEST_F(FloodTest, HeadersWithoutEndEndAConnectionWhoseCallsAreAccepted) {
  Flood(1, [this] {
    RawConnection connection(Port());
    // A stream of messages begins with its headers; here nobody needs a token.
    connection.Send(Frame(kHeaders, kEndHeaders, 1, CallHeaders(kConnect)));
    connection.Send(Frame(kHeaders, 0, 3, CallHeaders(kConnect)));
    return connection.Flood(Continuations(3));
  });
  ExpectMemoryWithin(1000 * kMebibyte);
  EXPECT_THAT(Log(), HasSubstr("they make no message of a call"));
}

TEST_F(FloodTest, CallsThatAreTakenBackAtOnceEndTheirConnection) {
  Flood(4, [this] {
    RawConnection connection(Port());
    int64_t sent = 0;
    bool open = true;
    for (uint32_t stream = 1; open && sent < kFloodBytes; stream += 2) {
      const std::string call =
          Frame(kHeaders, kEndHeaders, stream, CallHeaders("/nobody.Has/This")) +
          Frame(kReset, 0, stream, std::string("\0\0\0\x8", 4));
      open = connection.Send(call);
      sent += static_cast<int64_t>(call.size());
    }
    return sent;
  });
  ExpectMemoryWithin(700 * kMebibyte);
}

// An upload is a stream of messages; the other call's only message comes before the call begins.
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

}  // namespace
}  // namespace kiln::testing
