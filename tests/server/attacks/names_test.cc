// Malicious names, in every place where a client can name something.
#include <filesystem>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "proto/text/printable.h"
#include "tests/server/attacks/hostile_fixture.h"
#include "tests/server/client.h"

namespace kiln::testing {
namespace {

// Names made for paths, log lines, terminals and metrics.
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
  // The text of an error may be printed to a terminal unchanged.
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
    v1::FindBlobsRequest request;
    request.set_session_id(id);
    request.add_blobs(name);
    Check(Try(client.blobs, &v1::BlobService::Stub::FindBlobs, request));
  }
  {
    v1::DeleteBlobsRequest request;
    request.set_session_id(id);
    request.add_blobs(name);
    Check(Try(client.blobs, &v1::BlobService::Stub::DeleteBlobs, request));
  }
  {
    v1::AttachSessionRequest request;
    request.set_name(name);
    Check(Try(client.sessions, &v1::SessionService::Stub::AttachSession, request));
  }
  {
    v1::OpenSessionRequest request;
    request.set_device(name);
    request.mutable_client()->set_name(name);
    request.mutable_client()->set_version(name);
    request.mutable_client()->set_description(name);
    Check(Try(client.sessions, &v1::SessionService::Stub::OpenSession, request));
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
  // Runs with the wrong shape, since the error may contain the program's name.
  Check(stream->Call(RunProgram(1, {1}, {3})).error().message());
  Check(stream->Call(Detach("kept", 0, {{name, 1}})).error().message());
  Check(stream->Call(Detach(name, 0, {})).error().message());
  Check(Stream(*client.sessions, name).End());
}

void NamesTest::TryAsAdmin(const std::string& name) {
  Client admin(address_);
  ASSERT_TRUE(admin.opened.ok());
  {
    v1::AddUserRequest request;
    request.set_name(name);
    const grpc::Status status = Try(admin.admin, &v1::AdminService::Stub::AddUser, request);
    EXPECT_FALSE(status.ok());
    Check(status);
  }
  {
    v1::RevokeUserRequest request;
    request.set_name(name);
    Check(Try(admin.admin, &v1::AdminService::Stub::RevokeUser, request));
  }
  for (const bool of_user : {true, false}) {
    v1::SetQuotaRequest request;
    request.set_user(of_user ? name : "ann");
    (*request.mutable_limits())[of_user ? "sessions" : name] = 7;
    const grpc::Status status = Try(admin.admin, &v1::AdminService::Stub::SetQuota, request);
    EXPECT_FALSE(status.ok());
    Check(status);
  }
  {
    v1::ExplainProgramRequest request;
    request.set_digest(name);
    Check(Try(admin.programs, &v1::ProgramService::Stub::ExplainProgram, request));
  }
  // An empty name means all devices, and then nothing would work any more.
  if (name.empty()) return;
  v1::DrainRequest request;
  request.set_device(name);
  const grpc::Status status = Try(admin.admin, &v1::AdminService::Stub::Drain, request);
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
  // SQLite and the stores of users and limits create files beside the existing ones.
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
