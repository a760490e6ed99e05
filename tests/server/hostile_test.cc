// What a client can try that is not about amounts (attack_test.cc has those): messages, numbers and
// connections that are made to do harm. Nobody gets in, nothing leaks, and the daemon serves on.
#include <google/protobuf/descriptor.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <limits>

#include "tests/environment.h"
#include "tests/eventually.h"
#include "tests/server/client.h"
#include "tests/server/exact_client.h"
#include "tests/server/hostile_fixture.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMebibyte = 1 << 20;

TEST_F(HostileTest, NumbersOutOfTurnEndTheirStreamAndChangeNothing) {
  Client client(address_);
  client.Connect()->Call(Write(1, {1}));
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (const uint64_t number : {uint64_t{3}, uint64_t{1} << 40, kMost >> 1, kMost}) {
    auto stream = client.Connect();
    ASSERT_TRUE(stream->attached());
    stream->Send(Write(2, {2}), number);
    const grpc::Status status = stream->End();
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << number;
    EXPECT_THAT(status.error_message(), HasSubstr("the next sequence number is 2"));
  }
  // What came before is not done again, even if it says something else now.
  auto stream = client.Connect();
  stream->Send(Write(2, {3}), 1);
  EXPECT_EQ(stream->Call(Read(2)).error().code(), grpc::NOT_FOUND);
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1));
  // Whoever claims to have answers that there are not yet gets them all the same.
  auto ahead = client.Connect(/*acknowledged=*/kMost);
  ASSERT_TRUE(ahead->attached());
  EXPECT_THAT(Floats(ahead->Call(Read(1)).data()), ElementsAre(1));
}

// One message of `mebibytes` zeros as gzip, a thousandth of that, to a method.
grpc::Status SendBomb(const std::string& address, const std::string& method, int mebibytes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  // The same slice again and again: here it takes no memory.
  const grpc::Slice zeros(std::string(kMebibyte, '\0'));
  const std::vector<grpc::Slice> slices(mebibytes, zeros);
  const grpc::ByteBuffer bomb(slices.data(), slices.size());
  return TryBytes(channel, method, bomb, context);
}

// gRPC would inflate a compressed message before anybody counts its bytes.
TEST_F(HostileTest, CompressedMessagesAreRefusedAndNotInflated) {
  ExpectItServes();
  const int64_t before = PeakBytes();
  // Within what a message may have, and beyond it.
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

// Three bytes are a field that no request has, and would take more than ten times that when parsed:
// 12 MiB of them more than 120. Some messages are there at once, since gRPC lets go of them late.
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

// More connections than there are descriptors for, which say nothing. By hand, thousands:
// KILN_IDLE_CONNECTIONS=5000
TEST_F(IdleConnectionsTest, AreClosedSoThatOthersGetIn) {
  // Who takes a second to come is closed, too.
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
  const rlim_t most = used + static_cast<rlim_t>(connections) / 4;
  const rlimit few{most, most};
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
  // Who must wait is not told again and again.
  EXPECT_LT(Log().size(), 1 << 20);
}

}  // namespace
}  // namespace kiln::testing
