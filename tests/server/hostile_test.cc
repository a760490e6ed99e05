// What a client can try that is not about amounts (attack_test.cc has those): messages, numbers and
// names that are made to do harm. Nobody gets in, nothing leaks, and the daemon serves on.
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "proto/text/printable.h"
#include "tests/server/client.h"
#include "tests/server/kilnd_process.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMebibyte = 1 << 20;

class HostileTest : public ProcessTest {
 protected:
  virtual int IdleConnectionSeconds() const { return 120; }
  std::vector<std::string> Flags() override {
    std::ofstream(folder_ + "/kiln.toml")
        << "[sessions]\nidle_connection_seconds = " << IdleConnectionSeconds() << "\n";
    return {"--listen=" + address_ + ",127.0.0.1:0",
            "--metrics_listen=127.0.0.1:0",
            "--cache_dir=" + folder_ + "/cache",
            "--state_dir=" + folder_ + "/state",
            "--config=" + folder_ + "/kiln.toml",
            "--log_level=debug",
            "--cpu_threads=1"};
  }
  void SetUp() override {
    ProcessTest::SetUp();
    Start();
  }
  // The number behind `before` in the log.
  int NumberInLog(const std::string& before) {
    const std::string log = Log();
    const size_t begin = log.find(before) + before.size();
    int number = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(log.substr(begin, log.find_first_of(" \n\"", begin) - begin), &number))
        << before;
    return number;
  }
  int Port() { return NumberInLog(address_ + ",127.0.0.1:"); }
  std::string Metrics() {
    const std::string command =
        absl::StrCat("curl -sf http://127.0.0.1:", NumberInLog("metrics_port="), "/metrics");
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    char buffer[4096];
    for (size_t read; (read = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
      text.append(buffer, read);
    EXPECT_EQ(pclose(pipe), 0);
    return text;
  }
  // The most bytes that the daemon has had in memory.
  int64_t PeakBytes() const {
    std::ifstream file(absl::StrCat("/proc/", pid_, "/status"));
    int64_t kibibytes = 0;
    for (std::string line; std::getline(file, line);) {
      if (absl::StartsWith(line, "VmHWM:")) kibibytes = std::stoll(line.substr(6));
    }
    return kibibytes << 10;
  }
  void ExpectItServes() {
    Client client(address_);
    ASSERT_TRUE(client.opened.ok()) << client.opened.error_message() << Log();
    auto stream = client.Connect();
    EXPECT_FALSE(stream->Call(Write(1, {1, 2})).has_error());
    EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(1, 2));
  }
};

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
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  // The same slice again and again: here it takes no memory.
  const grpc::Slice zeros(std::string(kMebibyte, '\0'));
  const std::vector<grpc::Slice> slices(mebibytes, zeros);
  const grpc::ByteBuffer bomb(slices.data(), slices.size());
  grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, method, bomb, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  return status;
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
  EXPECT_LT(PeakBytes() - before, 30 * kMebibyte);
  ExpectItServes();
}

class IdleConnectionsTest : public HostileTest {
  int IdleConnectionSeconds() const override { return 1; }
};

// More connections than there are descriptors for, which say nothing.
TEST_F(IdleConnectionsTest, AreClosedSoThatOthersGetIn) {
  ExpectItServes();
  const auto files = std::filesystem::directory_iterator(absl::StrCat("/proc/", pid_, "/fd"));
  const auto used = static_cast<rlim_t>(std::distance(files, {}));
  const rlimit few{used + 50, used + 50};
  ASSERT_EQ(prlimit(pid_, RLIMIT_NOFILE, &few, nullptr), 0);
  const int port = Port();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  std::vector<int> idle;
  for (int i = 0; i < 200; ++i) {
    idle.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(idle.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  for (const std::string& each : {absl::StrCat("127.0.0.1:", port), address_}) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    grpc::Status opened;
    do {
      opened = Client(each).opened;
    } while (!opened.ok() && absl::Now() < deadline);
    EXPECT_TRUE(opened.ok()) << each << ": " << opened.error_message();
  }
  for (const int each : idle) close(each);
  // Who must wait is not told again and again.
  EXPECT_LT(Log().size(), 1 << 20);
}

// Names that are made for paths, lines of a log, terminals and metrics.
const std::vector<std::string>& HostileNames() {
  static const auto& names = *new std::vector<std::string>{
      "",
      ".",
      "../../escaped",
      "/tmp/kiln_escaped",
      std::string("nul\0byte", 8),
      "x\ntime=now level=error event=forged",
      "x\r\n{\"number\":1,\"user\":\"forged\"}",
      "\x1b[2J\x1b]0;forged\x07",
      "a\"} 1\nkiln_forged_total{x=\"",
      "\xe2\x80\xae"
      "drawkcab",
      std::string(100'000, 'x'),
  };
  return names;
}

class NamesTest : public HostileTest {
 protected:
  std::set<std::string> Files() const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      files.insert(entry.path());
    return files;
  }
  // What an error says may go to a terminal as it is.
  void Check(const grpc::Status& status) {
    EXPECT_NE(status.error_code(), grpc::INTERNAL) << status.error_message();
    EXPECT_NE(status.error_code(), grpc::UNKNOWN) << status.error_message();
    Check(status.error_message());
  }
  static void Check(const std::string& message) {
    EXPECT_EQ(PrintableLines(message), message);
    EXPECT_LT(message.size(), 2000) << message.substr(0, 200);
  }

  void TryInSession(const std::string& name);
  void TryAsAdmin(const std::string& name);
};

void NamesTest::TryInSession(const std::string& name) {
  Client client(address_);
  ASSERT_TRUE(client.opened.ok());
  Check(client.Upload(name, "data"));
  const std::string id = client.session.session_id();
  {
    grpc::ClientContext context;
    v1::FindBlobsRequest request;
    request.set_session_id(id);
    request.add_blobs(name);
    v1::FindBlobsResponse response;
    Check(client.blobs->FindBlobs(&context, request, &response));
  }
  {
    grpc::ClientContext context;
    v1::DeleteBlobsRequest request;
    request.set_session_id(id);
    request.add_blobs(name);
    v1::DeleteBlobsResponse response;
    Check(client.blobs->DeleteBlobs(&context, request, &response));
  }
  {
    grpc::ClientContext context;
    v1::AttachSessionRequest request;
    request.set_name(name);
    v1::AttachSessionResponse response;
    Check(client.sessions->AttachSession(&context, request, &response));
  }
  {
    grpc::ClientContext context;
    v1::OpenSessionRequest request;
    request.set_device(name);
    request.mutable_client()->set_name(name);
    request.mutable_client()->set_version(name);
    request.mutable_client()->set_description(name);
    v1::OpenSessionResponse response;
    Check(client.sessions->OpenSession(&context, request, &response));
  }
  auto stream = client.Connect();
  ASSERT_FALSE(stream->Call(Write(1, {1})).has_error());
  Check(stream->Call(WriteBlob(2, name, 1)).error().message());
  v1::Graph graph = NegGraph(static_cast<int64_t>(name.size() % 50 + 1));
  graph.mutable_nodes(graph.nodes_size() - 1)->set_source(name);
  v1::ConnectRequest define = Define(1, graph);
  define.mutable_define_program()->set_name(name);
  Check(stream->Call(define).error().message());
  graph.mutable_nodes(graph.nodes_size() - 1)->set_op(name);
  Check(stream->Call(Define(2, graph)).error().message());
  // Runs with the wrong shape, so that the error may name the program.
  Check(stream->Call(RunProgram(1, {1}, {3})).error().message());
  v1::ConnectRequest detach;
  detach.mutable_detach()->set_name("kept");
  v1::NamedTensor* tensor = detach.mutable_detach()->add_tensors();
  tensor->set_name(name);
  tensor->set_handle(1);
  Check(stream->Call(detach).error().message());
  detach.mutable_detach()->clear_tensors();
  detach.mutable_detach()->set_name(name);
  Check(stream->Call(detach).error().message());
  Check(Stream(*client.sessions, name).End());
}

void NamesTest::TryAsAdmin(const std::string& name) {
  Client admin(address_);
  ASSERT_TRUE(admin.opened.ok());
  {
    grpc::ClientContext context;
    v1::AddUserRequest request;
    request.set_name(name);
    v1::AddUserResponse response;
    const grpc::Status status = admin.admin->AddUser(&context, request, &response);
    EXPECT_FALSE(status.ok());
    Check(status);
  }
  {
    grpc::ClientContext context;
    v1::RevokeUserRequest request;
    request.set_name(name);
    v1::RevokeUserResponse response;
    Check(admin.admin->RevokeUser(&context, request, &response));
  }
  for (const bool of_user : {true, false}) {
    grpc::ClientContext context;
    v1::SetQuotaRequest request;
    request.set_user(of_user ? name : "ann");
    (*request.mutable_limits())[of_user ? "sessions" : name] = 7;
    v1::SetQuotaResponse response;
    const grpc::Status status = admin.admin->SetQuota(&context, request, &response);
    EXPECT_FALSE(status.ok());
    Check(status);
  }
  {
    grpc::ClientContext context;
    v1::ExplainProgramRequest request;
    request.set_digest(name);
    v1::ExplainProgramResponse response;
    Check(admin.programs->ExplainProgram(&context, request, &response));
  }
  // Without a name it is all devices, and then nothing works any more.
  if (name.empty()) return;
  grpc::ClientContext context;
  v1::DrainRequest request;
  request.set_device(name);
  v1::DrainResponse response;
  const grpc::Status status = admin.admin->Drain(&context, request, &response);
  EXPECT_FALSE(status.ok());
  Check(status);
}

TEST_F(NamesTest, MakeNoFilesLinesOrMetricsOfTheirOwn) {
  ExpectItServes();
  TryInSession("blameless");
  const std::set<std::string> before = Files();
  for (const std::string& name : HostileNames()) {
    TryInSession(name);
    TryAsAdmin(name);
  }
  // SQLite and the stores of users and limits make theirs beside the ones that there were.
  for (const std::string& file : Files()) {
    EXPECT_TRUE(before.contains(file) || absl::StartsWith(file, folder_ + "/cache/") ||
                file == folder_ + "/state/audit.jsonl" || file == folder_ + "/state/quotas")
        << file;
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/kiln_escaped"));
  EXPECT_FALSE(std::filesystem::exists("/tmp/escaped"));
  std::stringstream audit;
  audit << std::ifstream(folder_ + "/state/audit.jsonl").rdbuf();
  const std::pair<std::string, std::string> texts[] = {
      {Log(), "time="}, {audit.str(), "{\"number\":"}, {Metrics(), ""}};
  for (const auto& [text, begin] : texts) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(PrintableLines(text), text);
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      EXPECT_TRUE(absl::StartsWith(line, begin)) << line;
      EXPECT_LT(line.size(), 10'000) << line.substr(0, 200);
      EXPECT_FALSE(absl::StartsWith(line, "kiln_forged")) << line;
    }
  }
  EXPECT_EQ(Log().find("\ntime=now"), std::string::npos);
  ExpectItServes();
}

}  // namespace
}  // namespace kiln::testing
