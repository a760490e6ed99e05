// Attacks that do not depend on amounts (attack_test.cc has those): messages, numbers and
// connections that are made to do harm. No attacker gains access, nothing leaks, and the daemon
// continues to serve.
#include <google/protobuf/descriptor.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <limits>

#include "tests/environment.h"
#include "tests/eventually.h"
#include "tests/server/attacks/hostile_fixture.h"
#include "tests/server/client.h"
#include "tests/server/exact_client.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(HostileTest, NumbersOutOfTurnEndTheirStreamAndChangeNothing) {
  Client client(address_);
  client.Connect()->Call(Write(1, {1}));
  constexpr uint64_t kUint64Max = std::numeric_limits<uint64_t>::max();
  for (const uint64_t number : {uint64_t{3}, uint64_t{1} << 40, kUint64Max >> 1, kUint64Max}) {
    auto stream = client.Connect();
    ASSERT_TRUE(stream->attached());
    stream->Send(Write(2, {2}), number);
    const grpc::Status status = stream->End();
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << number;
    EXPECT_THAT(status.error_message(), HasSubstr("the next sequence number must be 2"));
  }
  // An earlier number is not executed again, even with another operation.
  auto stream = client.Connect();
  stream->Send(Write(2, {3}), 1);
  EXPECT_EQ(stream->Call(Read(2)).error().code(), grpc::NOT_FOUND);
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1));
  // A client that acknowledges answers that do not exist yet still gets them all.
  auto ahead = client.Connect(/*acknowledged=*/kUint64Max);
  ASSERT_TRUE(ahead->attached());
  EXPECT_THAT(Floats(ahead->Call(Read(1)).data()), ElementsAre(1));
}

// Sends to a method one message of `mebibytes` MiB of zeros, compressed with gzip to a thousandth
// of that.
grpc::Status SendBomb(const std::string& address, const std::string& method, int mebibytes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  // Repeats the same slice, which takes no memory here.
  const grpc::Slice zeros(std::string(kMebibyte, '\0'));
  const std::vector<grpc::Slice> slices(mebibytes, zeros);
  const grpc::ByteBuffer bomb(slices.data(), slices.size());
  return TryBytes(channel, method, bomb, context);
}

// gRPC would inflate a compressed message before its size is checked.
TEST_F(HostileTest, CompressedMessagesAreRefusedAndNotInflated) {
  ExpectItServes();
  const int64_t before = PeakBytes();
  // Within the maximum message size, and above it.
  const std::pair<const char*, int> bombs[] = {{"/kiln.v1.SessionService/OpenSession", 60},
                                               {"/kiln.v1.SessionService/Connect", 60},
                                               {"/kiln.v1.BlobService/Upload", 100}};
  for (const auto& [method, mebibytes] : bombs) {
    const grpc::Status status = SendBomb(address_, method, mebibytes);
    EXPECT_EQ(status.error_code(), grpc::UNIMPLEMENTED) << method << ": " << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("gzip"));
  }
  if (kMemoryIsOurs) {
    EXPECT_LT(PeakBytes() - before, 30 * kMebibyte);
  }
  ExpectItServes();
}

std::vector<const google::protobuf::MethodDescriptor*> AllMethods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const char* name : {"Admin", "Blob", "Device", "Program", "Session"}) {
    const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        absl::StrCat("kiln.v1.", name, "Service"));
    for (int i = 0; i < service->method_count(); ++i) methods.push_back(service->method(i));
  }
  return methods;
}

// Three bytes are a field that no request has and that would take more than ten times as much when
// parsed: 12 MiB of them take more than 120 MiB. Some messages are in memory at the same time,
// since gRPC frees them late.
TEST_F(HostileTest, MessagesOfManyPartsAreRefusedAndNotParsed) {
  ExpectItServes();
  const int64_t before = PeakBytes();
  std::string fields;
  for (int i = 0; i < 1 << 18; ++i) fields += std::string("\xc0\x3e\x00", 3);
  const std::vector<grpc::Slice> slices(16, grpc::Slice(fields));
  const grpc::ByteBuffer bomb(slices.data(), slices.size());
  auto channel = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  const auto methods = AllMethods();
  EXPECT_GT(methods.size(), 20);
  for (const auto* method : methods) {
    grpc::ClientContext context;
    const grpc::Status status =
        TryBytes(channel, absl::StrCat("/", method->service()->full_name(), "/", method->name()),
                 bomb, context);
    EXPECT_EQ(Reason(status), "TOO_MANY_PARTS") << method->full_name() << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(method->input_type()->full_name()));
  }
  if (kMemoryIsOurs) {
    EXPECT_LT(PeakBytes() - before, 100 * kMebibyte);
  }
  ExpectItServes();
}

class IdleConnectionsTest : public HostileTest {
  int IdleConnectionSeconds() const override { return 1; }
};

// More idle connections than there are descriptors. For thousands, run manually with
// KILN_IDLE_CONNECTIONS=5000.
TEST_F(IdleConnectionsTest, AreClosedSoThatOthersGetIn) {
  // A client that takes a second to authenticate is disconnected, too.
  std::string token;
  ASSERT_TRUE(Eventually([&] {
    Client admin(address_);
    token = AddUser(admin, "ann");
    return !token.empty();
  }));
  rlimit own{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &own), 0);
  own.rlim_cur = own.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &own), 0);
  const auto files = std::filesystem::directory_iterator(absl::StrCat("/proc/", pid_, "/fd"));
  const auto used = static_cast<rlim_t>(std::distance(files, {}));
  const int64_t connections = NumberFromEnvironment("KILN_IDLE_CONNECTIONS", 200);
  const rlim_t files_max = used + static_cast<rlim_t>(connections) / 4;
  const rlimit few{files_max, files_max};
  ASSERT_EQ(prlimit(pid_, RLIMIT_NOFILE, &few, nullptr), 0);
  const int port = Port();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  std::vector<int> idle;
  for (int64_t i = 0; i < connections; ++i) {
    idle.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(idle.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  for (const std::string& each : {absl::StrCat("127.0.0.1:", port), address_}) {
    grpc::Status opened;
    Eventually([&] {
      opened = Client(each, {.token = token}).opened;
      return opened.ok();
    });
    EXPECT_TRUE(opened.ok()) << each << ": " << opened.error_message();
  }
  for (const int each : idle) close(each);
  // The log does not repeat that connections have to wait.
  EXPECT_LT(Log().size(), 1 << 20);
}

}  // namespace
}  // namespace kiln::testing
