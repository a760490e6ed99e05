// The web view over HTTP: who may see what, and what its answers are made of.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "server/testing/fake_compiler.h"
#include "server/web/page_files.h"
#include "server/web/view.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using google::protobuf::Struct;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

struct Answer {
  int status = 0;
  std::map<std::string, std::string> fields;
  std::string body;

  Struct json() const {
    Struct parsed;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(body, &parsed).ok()) << body;
    return parsed;
  }
};

// Sends a request to the port of this machine, and reads all of the answer.
Answer Ask(int port, const std::string& request) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(send(file, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string text;
  char piece[4096];
  for (ssize_t size; (size = recv(file, piece, sizeof(piece), 0)) > 0;)
    text.append(piece, static_cast<size_t>(size));
  close(file);
  Answer answer;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits("\r\n\r\n", 1));
  answer.body = parts.second;
  for (const absl::string_view line : absl::StrSplit(parts.first, "\r\n")) {
    const std::pair<std::string, std::string> field =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    answer.fields.insert(field);
  }
  EXPECT_TRUE(absl::SimpleAtoi(text.substr(9, 3), &answer.status)) << text.substr(0, 100);
  return answer;
}

class WebViewTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (web::PageFiles().empty()) GTEST_SKIP() << "kilnd was built without the web view";
  }
  int port() { return daemon_.daemon().metrics_port(); }
  Answer Get(const std::string& path, const std::string& token = "",
             const std::string& fields = "") {
    const std::string authorization =
        token.empty() ? "" : absl::StrCat("Authorization: Bearer ", token, "\r\n");
    return Ask(port(), absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: 127.0.0.1:", port(), "\r\n",
                                    authorization, fields, "\r\n"));
  }
  Answer Call(const std::string& call, const std::string& token = "") {
    return Get("/web/api/" + call, token);
  }
  std::string tcp() { return daemon_.daemon().listening()[1]; }

  TestDaemon daemon_{{.memory_bytes = 64 << 20}};
  Client owner_{daemon_.address()};  // over the Unix socket
};

std::string Text(const Struct& object, const std::string& name) {
  return object.fields().at(name).string_value();
}

// Returns a field of each object in a list.
std::vector<std::string> Texts(const Struct& object, const std::string& list,
                               const std::string& name) {
  std::vector<std::string> texts;
  for (const auto& value : object.fields().at(list).list_value().values())
    texts.push_back(Text(value.struct_value(), name));
  return texts;
}

// Defines programs that add vectors of these sizes, and runs each once.
std::vector<std::string> RunSums(Client& client, const std::vector<int64_t>& sizes) {
  auto stream = client.Connect();
  uint64_t number = 0;
  for (const int64_t size : sizes) {
    ++number;
    EXPECT_FALSE(stream->Call(Write(number, std::vector<float>(size, 1))).has_error());
    EXPECT_FALSE(stream->Call(Define(number, AddGraph(size))).has_error());
    EXPECT_FALSE(stream->Call(RunProgram(number, {number, number}, {100 + number})).has_error());
  }
  grpc::ClientContext context;
  v1::ListProgramsResponse programs;
  EXPECT_TRUE(client.programs->ListPrograms(&context, {}, &programs).ok());
  std::vector<std::string> digests;
  for (const v1::Program& program : programs.programs()) digests.push_back(program.digest());
  return digests;
}

TEST_F(WebViewTest, ThePageNeedsNoTokenAndLoadsOnlyItsOwnFiles) {
  AddUser(owner_, "ann");
  EXPECT_EQ(Get("/").fields["Location"], "/web/");
  const Answer page = Get("/web/");
  ASSERT_EQ(page.status, 200);
  EXPECT_EQ(page.fields.at("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.fields.at("Cache-Control"), "no-cache");
  EXPECT_THAT(page.body, Not(HasSubstr("://")));
  int files = 0;
  for (const char* before : {"src=\"", "href=\""}) {
    const std::vector<std::string> parts = absl::StrSplit(page.body, before);
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::string name = parts[i].substr(0, parts[i].find('"'));
      if (absl::StartsWith(name, "#") || absl::StartsWith(name, "data:")) continue;
      const Answer file = Get("/web/" + name);
      EXPECT_EQ(file.status, 200) << name;
      EXPECT_EQ(file.fields.at("Cache-Control"), "public, max-age=31536000, immutable");
      EXPECT_EQ(file.fields.at("X-Content-Type-Options"), "nosniff");
      EXPECT_EQ(file.fields.at("Content-Length"), absl::StrCat(file.body.size()));
      ++files;
    }
  }
  EXPECT_GE(files, 4);
}

TEST_F(WebViewTest, EveryAnswerForbidsWhatThePageDoesNotNeed) {
  for (const char* path : {"/web/", "/web/none", "/web/api/overview", "/web/api/none", "/"}) {
    Answer answer = Get(path);
    const std::string& policy = answer.fields["Content-Security-Policy"];
    for (const char* part : {"default-src 'none'", "script-src 'self';", "style-src 'self';",
                             "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"})
      EXPECT_THAT(policy, HasSubstr(part)) << path;
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(answer.fields["Referrer-Policy"], "no-referrer") << path;
    EXPECT_EQ(answer.fields["X-Content-Type-Options"], "nosniff") << path;
    EXPECT_EQ(answer.fields["X-Frame-Options"], "DENY") << path;
    EXPECT_EQ(answer.fields.count("Set-Cookie"), 0) << path;
    EXPECT_EQ(answer.fields.count("Access-Control-Allow-Origin"), 0) << path;
  }
  EXPECT_EQ(Call("overview").fields["Cache-Control"], "no-store");
}

TEST_F(WebViewTest, HasNothingElse) {
  for (const char* path : {"/web/index.html", "/web/0123456789abcdef/app.js", "/web/../web/app.js",
                           "/web/api/", "/web/api/AddUser"})
    EXPECT_EQ(Get(path).status, 404) << path;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"})
    EXPECT_EQ(Ask(port(), absl::StrCat(method, " /web/api/overview HTTP/1.1\r\n\r\n")).status, 405)
        << method;
}

TEST_F(WebViewTest, WithoutUsersEveryoneOnTheMachineSeesEverything) {
  const auto digests = RunSums(owner_, {3});
  const Struct overview = Call("overview").json();
  EXPECT_EQ(Text(overview, "user"), "local");
  EXPECT_TRUE(overview.fields().at("sees_all").bool_value());
  EXPECT_EQ(Texts(overview, "devices", "name"), std::vector<std::string>{"cpu:0"});
  EXPECT_EQ(Texts(Call("programs").json(), "programs", "digest"), digests);
  EXPECT_EQ(Call("graph?program=" + digests[0]).status, 200);
}

// A page of another site could lead its own name to 127.0.0.1, or make the browser send calls.
TEST_F(WebViewTest, WithoutUsersOnlyThisMachinesOwnPageMayAsk) {
  const auto from = [&](const std::string& host, const std::string& fields) {
    return Ask(port(), absl::StrCat("GET /web/api/overview HTTP/1.1\r\nHost: ", host, "\r\n",
                                    fields, "\r\n"))
        .status;
  };
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1:1", "[::1]:7434"})
    EXPECT_EQ(from(host, ""), 200) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80"})
    EXPECT_EQ(from(host, ""), 403) << host;
  EXPECT_EQ(from("localhost", "Sec-Fetch-Site: same-origin\r\n"), 200);
  EXPECT_EQ(from("localhost", "Sec-Fetch-Site: none\r\n"), 200);
  EXPECT_EQ(from("localhost", "Sec-Fetch-Site: cross-site\r\n"), 403);
  EXPECT_EQ(from("localhost", "Sec-Fetch-Site: same-site\r\n"), 403);
}

TEST_F(WebViewTest, CallsTakeATokenOnceThereAreUsers) {
  const std::string token = AddUser(owner_, "ann");
  for (const char* call : {"overview", "programs", "kernels", "program?program=a",
                           "graph?program=a", "kernel?program=a"}) {
    Answer refused = Call(call);
    EXPECT_EQ(refused.status, 401) << call;
    // Browsers would ask for a password by themselves for "Basic".
    EXPECT_EQ(refused.fields["WWW-Authenticate"], "Bearer") << call;
    EXPECT_EQ(Text(refused.json(), "reason"), "NO_TOKEN") << call;
    EXPECT_EQ(Call(call, "kiln_made_up").status, 401) << call;
  }
  EXPECT_EQ(Call("overview", token).status, 200);
  EXPECT_EQ(Get("/web/api/overview", "", "Authorization: " + token + "\r\n").status, 401);
  EXPECT_EQ(Get("/web/api/overview?token=" + token).status, 401);
  EXPECT_EQ(Get("/web/api/overview", token, "Authorization: Bearer x\r\n").status, 401);
  // The host does not matter: no hostile site has the token.
  EXPECT_EQ(Ask(port(), absl::StrCat("GET /web/api/overview HTTP/1.1\r\nHost: gpu.example\r\n"
                                     "Authorization: Bearer ",
                                     token, "\r\n\r\n"))
                .status,
            200);
}

TEST_F(WebViewTest, AUserSeesTheirOwnProgramsAndAViewerAll) {
  const std::string ann_token = AddUser(owner_, "ann");
  const std::string bob_token = AddUser(owner_, "bob");
  const std::string viewer = AddUser(owner_, "watch", "viewer");
  const std::string admin = AddUser(owner_, "root2", "admin");
  Client ann(tcp(), {.token = ann_token});
  Client bob(tcp(), {.token = bob_token});
  const std::vector<std::string> of_ann = RunSums(ann, {3});
  const std::vector<std::string> of_bob = RunSums(bob, {4});
  ASSERT_EQ(of_ann.size(), 1);
  ASSERT_EQ(of_bob.size(), 1);

  const auto seen = [&](const std::string& token) {
    return Texts(Call("programs", token).json(), "programs", "digest");
  };
  EXPECT_THAT(seen(ann_token), ElementsAre(of_ann[0]));
  EXPECT_THAT(seen(viewer), UnorderedElementsAre(of_ann[0], of_bob[0]));
  EXPECT_THAT(seen(admin), UnorderedElementsAre(of_ann[0], of_bob[0]));
  const auto kernels = [&](const std::string& token) {
    return Texts(Call("kernels", token).json(), "rows", "program");
  };
  EXPECT_THAT(kernels(ann_token), ElementsAre(of_ann[0]));
  EXPECT_THAT(kernels(viewer), UnorderedElementsAre(of_ann[0], of_bob[0]));
  EXPECT_THAT(Texts(Call("overview", ann_token).json(), "users", "name"), ElementsAre("ann"));
  EXPECT_THAT(Texts(Call("overview", viewer).json(), "users", "name"),
              UnorderedElementsAre("ann", "bob", "watch", "root2", ::testing::_));

  // Another user's program is as unknown as one that does not exist.
  for (const char* call : {"program", "graph", "kernel", "kernels"}) {
    const Answer others = Call(absl::StrCat(call, "?program=", of_bob[0]), ann_token);
    const Answer none = Call(absl::StrCat(call, "?program=", std::string(64, 'f')), ann_token);
    EXPECT_EQ(others.status, 404) << call;
    EXPECT_EQ(none.status, 404) << call;
    EXPECT_EQ(Text(others.json(), "reason"), Text(none.json(), "reason"));
    EXPECT_EQ(Call(absl::StrCat(call, "?program=", of_ann[0]), ann_token).status, 200) << call;
    EXPECT_EQ(Call(absl::StrCat(call, "?program=", of_bob[0]), admin).status, 200) << call;
  }
  // Graphs and code take the role of ExplainProgram.
  for (const char* call : {"program", "graph", "kernel"})
    EXPECT_EQ(Call(absl::StrCat(call, "?program=", of_bob[0]), viewer).status, 403) << call;
  EXPECT_FALSE(Call("overview", viewer).json().fields().at("explains").bool_value());
  EXPECT_TRUE(Call("overview", ann_token).json().fields().at("explains").bool_value());
}

TEST_F(WebViewTest, ARevokedUserSeesNothing) {
  const std::string token = AddUser(owner_, "ann");
  EXPECT_EQ(Call("overview", token).status, 200);
  v1::RevokeUserRequest request;
  request.set_name("ann");
  ASSERT_TRUE(Try(owner_.admin, &v1::AdminService::Stub::RevokeUser, request).ok());
  EXPECT_EQ(Call("overview", token).status, 401);
}

TEST_F(WebViewTest, ShowsTheNumbersOfTheCalls) {
  RunSums(owner_, {3, 4});
  grpc::ClientContext context;
  v1::ListProgramsResponse programs;
  ASSERT_TRUE(owner_.programs->ListPrograms(&context, {}, &programs).ok());
  const Struct page = Call("programs").json();
  ASSERT_EQ(page.fields().at("programs").list_value().values_size(), programs.programs_size());
  for (int i = 0; i < programs.programs_size(); ++i) {
    const Struct& row = page.fields().at("programs").list_value().values(i).struct_value();
    const v1::Program& program = programs.programs(i);
    EXPECT_EQ(Text(row, "digest"), program.digest());
    EXPECT_EQ(Text(row, "runs"), absl::StrCat(program.runs()));
    EXPECT_EQ(row.fields().at("kernels").number_value(), program.kernels());
    EXPECT_EQ(row.fields().at("device_seconds").number_value(), program.device_seconds());
  }
  const Struct kernel =
      Call(absl::StrCat("kernel?program=", programs.programs(1).digest(), "&kernel=1")).json();
  EXPECT_EQ(kernel.fields().at("kernel").struct_value().fields().at("name").string_value(), "add");
  const Struct program = Call("program?program=" + programs.programs(1).digest()).json();
  EXPECT_EQ(Texts(program, "launches", "name"), std::vector<std::string>{"add"});
  EXPECT_THAT(Text(program.fields().at("explanation").struct_value(), "queue"),
              HasSubstr("launch add("));
  EXPECT_THAT(Text(Call("graph?program=" + programs.programs(0).digest()).json(), "graph"),
              HasSubstr("%2 = add float32["));
}

TEST_F(WebViewTest, TablesComeInSortedParts) {
  RunSums(owner_, {5, 6, 7});
  const auto arenas = [&](const std::string& query) {
    return Texts(Call("programs?" + query).json(), "programs", "digest");
  };
  const std::vector<std::string> up = arenas("sort=digest&order=asc");
  ASSERT_EQ(up.size(), 3);
  EXPECT_TRUE(std::is_sorted(up.begin(), up.end()));
  EXPECT_EQ(arenas("sort=digest&order=desc"), std::vector<std::string>(up.rbegin(), up.rend()));
  EXPECT_THAT(arenas("sort=digest&offset=1&limit=1"), ElementsAre(up[1]));
  EXPECT_EQ(Text(Call("programs?limit=1").json(), "total"), "3");
  for (const char* column :
       {"number", "name", "program", "launches", "median", "best", "run", "compute", "memory",
        "roofline", "limit", "samples", "schedule", "compile"})
    EXPECT_EQ(Texts(Call(absl::StrCat("kernels?sort=", column)).json(), "rows", "program").size(),
              3)
        << column;
  EXPECT_THAT(Texts(Call("kernels?find=nothing").json(), "rows", "program"), IsEmpty());
  EXPECT_EQ(Text(Call("kernels?find=ad&limit=2").json(), "total"), "3");
}

TEST_F(WebViewTest, RefusesWhatItDoesNotUnderstand) {
  const std::string digest = RunSums(owner_, {3}).at(0);
  for (const std::string& call :
       {std::string("overview?x=1"), std::string("programs?sort=colour"),
        std::string("programs?limit=501"), std::string("programs?limit=0"),
        std::string("kernels?offset=-1"), std::string("kernels?order=up"),
        std::string("kernels?find=%zz"), "kernel?program=" + digest + "&kernel=0",
        "kernel?program=" + digest + "&kernel=2", "kernel?program=" + digest + "&kernel=x"}) {
    const Answer answer = Call(call);
    EXPECT_EQ(answer.status, 400) << call;
    EXPECT_EQ(Text(answer.json(), "reason"), "INVALID_ARGUMENT") << call;
    EXPECT_THAT(Text(answer.json(), "message"), HasSubstr("query: ")) << call;
  }
  for (const char* call : {"program?program=zz", "kernel?program=zz", "graph?program=zz"})
    EXPECT_EQ(Call(call).status, 404) << call;
}

// What a user names a program may be anything.
TEST_F(WebViewTest, NamesAreDataInTheAnswer) {
  auto stream = owner_.Connect();
  v1::ConnectRequest define = Define(1, AddGraph(3));
  const std::string name = "</script><script>alert(1)</script>\"\\ \x01";
  define.mutable_define_program()->set_name(name);
  ASSERT_FALSE(stream->Call(define).has_error());
  const Answer answer = Call("programs");
  EXPECT_EQ(answer.fields.at("Content-Type"), "application/json; charset=utf-8");
  EXPECT_THAT(answer.body, Not(HasSubstr("<script>")));
  EXPECT_THAT(Texts(answer.json(), "programs", "name"), ElementsAre(HasSubstr("alert(1)")));
}

TEST_F(WebViewTest, RefusalsAreInTheAuditLog) {
  const std::string viewer = AddUser(owner_, "watch", "viewer");
  EXPECT_EQ(Call("graph?program=a", viewer).status, 403);
  EXPECT_THAT(AuditText(daemon_), HasSubstr("ProgramService/ExplainProgram"));
}

TEST_F(WebViewTest, CanBeSwitchedOff) {
  daemon_.config().metrics_web = false;
  daemon_.Restart();
  for (const char* path : {"/", "/web/", "/web/api/overview"})
    EXPECT_EQ(Get(path).status, 404) << path;
  EXPECT_EQ(Get("/metrics").status, 200);
}

// A daemon whose compiler changes every program.
TestDaemonOptions ChangingPrograms(std::function<void(compiler::CompiledProgram&)> change) {
  TestDaemonOptions options;
  options.compile = [change](const graph::Graph& graph, const drivers::Target& target,
                             const compiler::Options& options) {
    auto program = FakeCompile(graph, target, options);
    if (program.ok()) change(*program);
    return program;
  };
  return options;
}

std::string DefineSum(Client& client) {
  auto stream = client.Connect();
  EXPECT_FALSE(stream->Call(Define(1, AddGraph(3))).has_error());
  grpc::ClientContext context;
  v1::ListProgramsResponse programs;
  EXPECT_TRUE(client.programs->ListPrograms(&context, {}, &programs).ok());
  return programs.programs(0).digest();
}

Answer AskLocally(TestDaemon& daemon, const std::string& path) {
  return Ask(daemon.daemon().metrics_port(),
             absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

TEST(WebViewAnswers, HaveBounds) {
  if (web::PageFiles().empty()) GTEST_SKIP() << "kilnd was built without the web view";
  TestDaemon daemon(ChangingPrograms([](compiler::CompiledProgram& program) {
    program.graph_text.resize(web::kTextBytesMax + 1, 'x');
    program.calls.resize(web::kLaunchesMax + 3, program.calls[0]);
  }));
  Client client(daemon.address());
  const std::string digest = DefineSum(client);
  const Answer graph = AskLocally(daemon, "/web/api/graph?program=" + digest);
  EXPECT_EQ(graph.status, 429);
  EXPECT_THAT(Text(graph.json(), "message"), HasSubstr("kiln explain"));
  const Struct program = AskLocally(daemon, "/web/api/program?program=" + digest).json();
  EXPECT_EQ(Texts(program, "launches", "name").size(), web::kLaunchesMax);
  EXPECT_EQ(Text(program, "launches_left_out"), "3");
}

TEST(WebViewAnswers, ThatTakeLongHoldUpNoSupervisor) {
  if (web::PageFiles().empty()) GTEST_SKIP() << "kilnd was built without the web view";
  absl::Notification begun, go_on;
  TestDaemon daemon(ChangingPrograms([&](compiler::CompiledProgram& program) {
    program.kernels[0].source = [&]() -> absl::StatusOr<std::string> {
      begun.Notify();
      go_on.WaitForNotification();
      return std::string("the source");
    };
  }));
  Client client(daemon.address());
  const std::string digest = DefineSum(client);
  std::thread slow([&] {
    const Struct row = AskLocally(daemon, "/web/api/kernel?program=" + digest).json();
    EXPECT_EQ(Text(row.fields().at("kernel").struct_value(), "source"), "the source");
  });
  begun.WaitForNotification();
  EXPECT_EQ(AskLocally(daemon, "/healthz").status, 200);
  EXPECT_EQ(AskLocally(daemon, "/metrics").status, 200);
  go_on.Notify();
  slow.join();
}

TEST(WebViewOfTheSystemsUsers, TakesATokenAtOnce) {
  if (web::PageFiles().empty()) GTEST_SKIP() << "kilnd was built without the web view";
  TestDaemonOptions options;
  options.configure = [](config::Config& config) { config.system_users = true; };
  TestDaemon daemon(std::move(options));
  EXPECT_EQ(Ask(daemon.daemon().metrics_port(),
                "GET /web/api/overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .status,
            401);
}

}  // namespace
}  // namespace kiln::testing
