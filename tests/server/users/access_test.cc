// Authentication and authorization: access to the daemon, and the visibility of others' data.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/accounts.h"
#include "server/testing/fake_compiler.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AccessTest : public ::testing::Test {
 protected:
  std::string AddUser(const std::string& name, const std::string& role = "") {
    const std::string token = testing::AddUser(owner_, name, role);
    EXPECT_NE(token, "") << name;
    return token;
  }
  grpc::Status Revoke(const std::string& name) {
    grpc::ClientContext context;
    v1::RevokeUserRequest request;
    request.set_name(name);
    v1::RevokeUserResponse response;
    return owner_.admin->RevokeUser(&context, request, &response);
  }
  std::string tcp() { return daemon_.daemon().listening()[1]; }

  TestDaemon daemon_{{.memory_bytes = 64 << 20}};
  Client owner_{daemon_.address()};  // over the Unix socket
};

grpc::Status Drain(Client& client) {
  grpc::ClientContext context;
  v1::DrainRequest request;
  request.set_device("cpu:7");
  v1::DrainResponse response;
  return client.admin->Drain(&context, request, &response);
}

TEST_F(AccessTest, LoopbackIsOpenUntilThereIsAUser) {
  Client anybody(tcp());
  ASSERT_TRUE(anybody.opened.ok()) << anybody.opened.error_message();
  const grpc::Status drained = Drain(anybody);
  EXPECT_EQ(drained.error_code(), grpc::PERMISSION_DENIED);
  EXPECT_THAT(drained.error_message(), HasSubstr("AdminService/Drain requires the role admin"));
  EXPECT_THAT(drained.error_message(), HasSubstr("use an admin's token"));
  EXPECT_EQ(Drain(owner_).error_code(), grpc::NOT_FOUND);  // the device is not found
  auto stream = anybody.Connect();
  EXPECT_FALSE(stream->Call(Write(1, {1})).has_error());
  const std::string token = AddUser("ann");
  // Calls in progress end.
  const grpc::Status ended = stream->End();
  EXPECT_EQ(ended.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_THAT(ended.error_message(), HasSubstr("kiln user add"));
  // Also on the same connection.
  const grpc::Status closed = Drain(anybody);
  EXPECT_EQ(closed.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_THAT(closed.error_message(), HasSubstr("kiln user add"));
  EXPECT_EQ(Client(tcp()).opened.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_TRUE(Client(tcp(), {.token = token}).opened.ok());
}

std::string metrics_url(TestDaemon& daemon) {
  return absl::StrCat("http://127.0.0.1:", daemon.daemon().metrics_port());
}

TEST_F(AccessTest, MetricsTakeATokenOnceThereAreUsers) {
  EXPECT_EQ(Scrape(metrics_url(daemon_), ""), 0);
  const std::string user = AddUser("ann");
  const std::string viewer = AddUser("prometheus", "viewer");
  EXPECT_EQ(Scrape(metrics_url(daemon_), ""), 22);
  EXPECT_EQ(Scrape(metrics_url(daemon_), "kiln_x_y"), 22);
  EXPECT_EQ(Scrape(metrics_url(daemon_), user), 22);  // a user sees only their own
  EXPECT_EQ(Scrape(metrics_url(daemon_), viewer), 0);
  ASSERT_TRUE(Revoke("prometheus").ok());
  EXPECT_EQ(Scrape(metrics_url(daemon_), viewer), 22);
}

TEST(AccessMetrics, TakeATokenWhereTheSystemsUsersComeIn) {
  TestDaemonOptions options;
  options.configure = [](config::Config& config) { config.system_users = true; };
  TestDaemon daemon(std::move(options));
  EXPECT_EQ(Scrape(metrics_url(daemon), ""), 22);
}

// Long-running calls end, too.
TEST_F(AccessTest, RevokingEndsCallsThatAreUnderWay) {
  Client ann(tcp(), {.token = AddUser("ann")});
  ASSERT_TRUE(ann.opened.ok()) << ann.opened.error_message();
  const auto stream = ann.Connect();
  constexpr int64_t kElements = 4 << 20;  // of four bytes: more than gRPC buffers
  ASSERT_FALSE(stream->Call(Write(7, std::vector<float>(kElements, 1))).has_error());

  grpc::ClientContext download_context;
  v1::DownloadRequest download;
  download.set_session_id(ann.session.session_id());
  download.set_handle(7);
  const auto reader = ann.blobs->Download(&download_context, download);
  v1::DownloadResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));

  grpc::ClientContext upload_context;
  v1::UploadResponse uploaded;
  const auto writer = ann.blobs->Upload(&upload_context, &uploaded);
  v1::UploadRequest upload;
  upload.mutable_header()->set_session_id(ann.session.session_id());
  upload.mutable_header()->set_blob("b");
  upload.mutable_header()->set_size_bytes(1 << 20);
  ASSERT_TRUE(writer->Write(upload));

  grpc::ClientContext watch_context;
  v1::WatchDevicesRequest watch;
  const auto devices = ann.devices->WatchDevices(&watch_context, watch);
  v1::WatchDevicesResponse seen;
  ASSERT_TRUE(devices->Read(&seen));

  ASSERT_TRUE(Revoke("ann").ok());
  while (reader->Read(&chunk)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::UNAUTHENTICATED);
  while (devices->Read(&seen)) {
  }
  EXPECT_EQ(devices->Finish().error_code(), grpc::UNAUTHENTICATED);
  upload.clear_header();
  upload.set_data("more");
  writer->Write(upload);
  EXPECT_EQ(writer->Finish().error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(AccessTest, WrongAndRevokedTokensAreToldTheSame) {
  const std::string ann = AddUser("ann");
  const std::string bob = AddUser("bob");
  Client bobs(tcp(), {.token = bob});
  ASSERT_TRUE(bobs.opened.ok());
  auto stream = bobs.Connect();
  ASSERT_TRUE(Revoke("bob").ok());
  EXPECT_EQ(Revoke("bob").error_code(), grpc::NOT_FOUND);
  // Bob's stream ends at once.
  EXPECT_EQ(stream->End().error_code(), grpc::UNAUTHENTICATED);
  std::string wrong = ann;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const grpc::Status of_wrong = Client(tcp(), {.token = wrong}).opened;
  const grpc::Status of_revoked = Client(tcp(), {.token = bob}).opened;
  EXPECT_EQ(of_wrong.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(of_revoked.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(of_wrong.error_message(), of_revoked.error_message());
  EXPECT_EQ(Client(tcp(), {.token = "kiln_x y"}).opened.error_code(), grpc::UNAUTHENTICATED);
  // A token identifies the caller at the Unix socket, too.
  EXPECT_EQ(Client(daemon_.address(), {.token = bob}).opened.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_TRUE(Client(tcp(), {.token = ann}).opened.ok());
}

TEST_F(AccessTest, WhoRevokesHimselfIsInTheAuditLog) {
  Client admin(tcp(), {.token = AddUser("amy", "admin")});
  grpc::ClientContext context;
  v1::RevokeUserRequest request;
  request.set_name("amy");
  v1::RevokeUserResponse response;
  EXPECT_TRUE(admin.admin->RevokeUser(&context, request, &response).ok());
  EXPECT_THAT(AuditText(daemon_), HasSubstr("\"user\":\"amy\",\"action\":\"revoke_user\""));
}

TEST_F(AccessTest, StrangersCannotFillTheAuditLog) {
  AddUser("ann");
  const std::string before = AuditText(daemon_);
  for (int i = 0; i < 50; ++i) Client(tcp()).opened.error_code();
  const std::string text = AuditText(daemon_).substr(before.size());
  // Many failures are one event, so that other events are not pushed out. Each event is a line.
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 4) << text;
  EXPECT_THAT(text, HasSubstr("NO_TOKEN"));
}

TEST_F(AccessTest, RolesHoldForEveryMethod) {
  Client viewer(tcp(), {.token = AddUser("eve", "viewer")});
  EXPECT_EQ(viewer.opened.error_code(), grpc::PERMISSION_DENIED);
  EXPECT_THAT(viewer.opened.error_message(), HasSubstr("use a user's token"));
  grpc::ClientContext devices, explain;
  v1::ListDevicesResponse list;
  EXPECT_TRUE(viewer.devices->ListDevices(&devices, {}, &list).ok());
  v1::ExplainProgramResponse explained;
  EXPECT_EQ(viewer.programs->ExplainProgram(&explain, {}, &explained).error_code(),
            grpc::PERMISSION_DENIED);
  Client admin(tcp(), {.token = AddUser("root", "admin")});
  EXPECT_EQ(Drain(admin).error_code(), grpc::NOT_FOUND);
  EXPECT_THAT(AuditText(daemon_),
              HasSubstr("\"user\":\"eve\",\"action\":\"refused\",\"subject\":"
                        "\"/kiln.v1.SessionService/OpenSession\",\"outcome\":\"ROLE\""));
  grpc::ClientContext add;
  v1::AddUserRequest request;
  request.set_name("x");
  request.set_role("king");
  v1::AddUserResponse response;
  EXPECT_EQ(admin.admin->AddUser(&add, request, &response).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(AccessTest, UnknownMethodsAndThoseOfGrpcAskFirst) {
  AddUser("ann");
  auto channel = grpc::CreateChannel(tcp(), grpc::InsecureChannelCredentials());
  for (const char* method :
       {"/kiln.v1.AdminService/Nothing", "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "/x/y"}) {
    grpc::ClientContext context;
    EXPECT_EQ(TryBytes(channel, method, {}, context).error_code(), grpc::UNAUTHENTICATED) << method;
  }
}

TEST_F(AccessTest, AnothersSessionIsAsUnknownAsOneThatIsNot) {
  Client ann(tcp(), {.token = AddUser("ann")});
  Client bob(tcp(), {.token = AddUser("bob")});
  auto anns = ann.Connect();
  anns->Call(Write(1, {1, 2}));
  ASSERT_TRUE(ann.Upload("mine", std::string(8, 'a')).ok());
  // Bob with Ann's id, an admin with Ann's id, and both with an id that does not exist.
  const std::string real_id = ann.session.session_id();
  const std::string no_id = real_id.substr(0, 8) + std::string(real_id.size() - 8, '0');
  std::vector<std::string> answers;
  for (Client* thief : {&bob, &owner_}) {
    for (const std::string& id : {real_id, no_id}) {
      thief->session.set_session_id(id);
      std::string all;
      const auto add = [&all](const grpc::Status& status) {
        absl::StrAppend(&all, status.error_code(), " ", status.error_message(), " ",
                        status.error_details(), "\n");
      };
      add(Stream(*thief->sessions, id).End());
      std::string data;
      add(thief->Download(1, 0, &data));
      EXPECT_EQ(data, "");
      add(thief->Upload("theirs", "x"));
      grpc::ClientContext renew, close, find, erase, compile;
      v1::RenewSessionRequest renew_request;
      renew_request.set_session_id(id);
      v1::RenewSessionResponse renewed;
      add(thief->sessions->RenewSession(&renew, renew_request, &renewed));
      v1::CloseSessionRequest close_request;
      close_request.set_session_id(id);
      v1::CloseSessionResponse closed;
      add(thief->sessions->CloseSession(&close, close_request, &closed));
      v1::FindBlobsRequest find_request;
      find_request.set_session_id(id);
      find_request.add_blobs("mine");
      v1::FindBlobsResponse found;
      add(thief->blobs->FindBlobs(&find, find_request, &found));
      v1::DeleteBlobsRequest erase_request;
      erase_request.set_session_id(id);
      erase_request.add_blobs("mine");
      v1::DeleteBlobsResponse erased;
      add(thief->blobs->DeleteBlobs(&erase, erase_request, &erased));
      v1::CompileProgramRequest compile_request;
      compile_request.set_session_id(id);
      v1::CompileProgramResponse compiled;
      add(thief->programs->CompileProgram(&compile, compile_request, &compiled));
      answers.push_back(all);
    }
  }
  for (const std::string& answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_THAT(answers[0], HasSubstr("unknown, closed or expired"));
  // Ann is not affected.
  EXPECT_EQ(Floats(anns->Call(Read(1)).data()), (std::vector<float>{1, 2}));
}

// Even for a program that both have.
TEST_F(AccessTest, AUserIsToldOfHisOwnRuns) {
  Client ann(tcp(), {.token = AddUser("ann")});
  Client bob(tcp(), {.token = AddUser("bob")});
  const auto run = [](Client& client, int times) {
    auto stream = client.Connect();
    EXPECT_FALSE(stream->Call(Define(1, AddGraph(2))).has_error());
    EXPECT_FALSE(stream->Call(Write(1, {1, 2})).has_error());
    for (int i = 0; i < times; ++i)
      EXPECT_FALSE(stream->Call(RunProgram(1, {1, 1}, {uint64_t(i) + 2})).has_error());
  };
  run(ann, 7);
  daemon_.Advance(absl::Seconds(5));
  run(bob, 1);
  std::vector<int64_t> since;
  for (const auto& [client, runs] : {std::pair(&ann, 7), {&bob, 1}, {&owner_, 8}}) {
    grpc::ClientContext context, kernel_context;
    v1::ListProgramsResponse programs;
    EXPECT_TRUE(client->programs->ListPrograms(&context, {}, &programs).ok());
    ASSERT_EQ(programs.programs_size(), 1);
    EXPECT_EQ(programs.programs(0).runs(), runs);
    EXPECT_NEAR(programs.programs(0).device_seconds(), runs * 1e-6, 1e-9);
    since.push_back(programs.programs(0).compiled().seconds());
    v1::ListKernelsResponse kernels;
    EXPECT_TRUE(client->programs->ListKernels(&kernel_context, {}, &kernels).ok());
    ASSERT_EQ(kernels.kernels_size(), 1);
    EXPECT_LE(kernels.kernels(0).samples(), runs);
  }
  EXPECT_EQ(since[1] - since[0], 5) << "that there was one before is none of his business";
  EXPECT_EQ(since[2], since[0]);
}

TEST_F(AccessTest, HowLongOthersRunsTookIsTheirs) {
  Client ann(tcp(), {.token = AddUser("ann")});
  Client bob(tcp(), {.token = AddUser("bob")});
  const auto anns = ann.Connect();
  ASSERT_FALSE(anns->Call(Define(1, AddGraph(2))).has_error());
  ASSERT_FALSE(anns->Call(Write(1, {1, 2})).has_error());
  ASSERT_FALSE(anns->Call(RunProgram(1, {1, 1}, {2})).has_error());
  const auto bobs = bob.Connect();
  const std::string digest = bobs->Call(Define(1, AddGraph(2))).digest();
  const auto times = [&](Client& client) {
    grpc::ClientContext context;
    v1::ExplainProgramRequest request;
    request.set_digest(digest);
    v1::ExplainProgramResponse response;
    EXPECT_TRUE(client.programs->ExplainProgram(&context, request, &response).ok());
    EXPECT_EQ(response.kernels_size(), 1);
    return response.kernels_size() == 0
               ? std::pair(-1.0, -1.0)
               : std::pair(response.kernels(0).seconds_median(), response.kernels(0).seconds_min());
  };
  EXPECT_GT(times(ann).first, 0);
  EXPECT_GT(times(ann).second, 0);
  EXPECT_EQ(times(bob), std::pair(0.0, 0.0));
}

// Otherwise a user could find out: a graph that another user has compiled before is ready much
// sooner, and its kernels come from the cache.
TEST(AccessPrograms, WhetherAnotherCompiledTheSameIsNotTold) {
  TestDaemonOptions options;
  options.memory_bytes = 64 << 20;
  options.compile = [](const auto& graph, const auto& target, const auto& compile_options) {
    auto program = FakeCompile(graph, target, compile_options);
    if (program.ok()) program->kernels[0].compile_seconds = 0.25;
    return program;
  };
  TestDaemon daemon(std::move(options));
  Client owner(daemon.address());
  const std::string tcp = daemon.daemon().listening()[1];
  Client ann(tcp, {.token = AddUser(owner, "ann")}), bob(tcp, {.token = AddUser(owner, "bob")});
  for (Client* client : {&ann, &bob}) {
    const auto stream = client->Connect();
    const std::string digest = stream->Call(Define(1, AddGraph(2))).digest();
    const auto told = [&](const Client& caller) {
      grpc::ClientContext list_context, context, kernels_context;
      v1::ListProgramsResponse programs;
      EXPECT_TRUE(caller.programs->ListPrograms(&list_context, {}, &programs).ok());
      v1::ExplainProgramRequest request;
      request.set_digest(digest);
      v1::ExplainProgramResponse explained;
      EXPECT_TRUE(caller.programs->ExplainProgram(&context, request, &explained).ok());
      v1::ListKernelsResponse kernels;
      EXPECT_TRUE(caller.programs->ListKernels(&kernels_context, {}, &kernels).ok());
      bool is_told = programs.programs(0).compile_seconds() != 0 ||
                     programs.programs(0).kernels_from_cache() != 0 ||
                     explained.program().compile_seconds() != 0;
      for (const auto& pass : explained.passes()) is_told = is_told || pass.seconds() != 0;
      for (const auto& kernel : kernels.kernels())
        is_told = is_told || kernel.compile_seconds() != 0 || kernel.from_cache();
      return is_told;
    };
    EXPECT_FALSE(told(*client));
    EXPECT_TRUE(told(owner));
  }
}

// Returns the value of a counter in /metrics.
std::string Counted(TestDaemon& daemon, const std::string& name) {
  const std::string text = daemon.daemon().MetricsText();
  const size_t begin = text.find(absl::StrCat("\n", name, " ")) + name.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(AccessPrograms, AreEachUsersOwnWhereThatIsWanted) {
  TestDaemonOptions options;
  options.memory_bytes = 64 << 20;
  options.configure = [](config::Config& config) { config.programs_shared = false; };
  TestDaemon daemon(std::move(options));
  Client owner(daemon.address());
  const std::string tcp = daemon.daemon().listening()[1];
  Client ann(tcp, {.token = AddUser(owner, "ann")}), bob(tcp, {.token = AddUser(owner, "bob")});
  const auto anns = ann.Connect(), bobs = bob.Connect();
  const std::string first = anns->Call(Define(1, AddGraph(2))).digest();
  EXPECT_EQ(Counted(daemon, "kiln_compiles_total"), "1");
  // Another name for the same graph gives her the same program.
  EXPECT_EQ(anns->Call(Define(2, AddGraph(2))).digest(), first);
  EXPECT_EQ(Counted(daemon, "kiln_compiles_total"), "1");
  // His program is compiled again, including its kernels.
  EXPECT_NE(bobs->Call(Define(1, AddGraph(2))).digest(), first);
  EXPECT_EQ(Counted(daemon, "kiln_compiles_total"), "2");
  EXPECT_EQ(Counted(daemon, "kiln_kernel_cache_hits_total"), "0");
  // Both programs work.
  for (Stream* stream : {anns.get(), bobs.get()}) {
    ASSERT_FALSE(stream->Call(Write(1, {1, 2})).has_error());
    EXPECT_FALSE(stream->Call(RunProgram(1, {1, 1}, {2})).has_error());
  }
  // After a restart she gets her kernels from the cache.
  daemon.Restart(Daemon::Sessions::kEnd);
  Client again(daemon.daemon().listening()[1], ann.login);
  EXPECT_EQ(again.Connect()->Call(Define(1, AddGraph(2))).digest(), first);
  EXPECT_EQ(Counted(daemon, "kiln_kernel_cache_hits_total"), "1");
}

TEST_F(AccessTest, WhoHasARevokedUsersNameLaterHasNothingOfHis) {
  const auto programs = [](Client& client) {
    grpc::ClientContext context;
    v1::ListProgramsResponse list;
    EXPECT_TRUE(client.programs->ListPrograms(&context, {}, &list).ok());
    return list.programs_size();
  };
  {
    Client ann(tcp(), {.token = AddUser("ann")});
    const auto stream = ann.Connect();
    ASSERT_FALSE(stream->Call(Define(1, AddGraph(2))).has_error());
    EXPECT_EQ(programs(ann), 1);
  }
  ASSERT_TRUE(Revoke("ann").ok());
  Client another(tcp(), {.token = AddUser("ann")});
  ASSERT_TRUE(another.opened.ok()) << another.opened.error_message();
  EXPECT_EQ(programs(another), 0);
  EXPECT_EQ(programs(owner_), 1);
}

TEST_F(AccessTest, AUserSeesHisOwnAlone) {
  Client ann(tcp(), {.token = AddUser("ann")});
  Client bob(tcp(), {.token = AddUser("bob")});
  auto anns = ann.Connect();
  auto bobs_stream = bob.Connect();
  uint64_t number = 0;
  const auto define = [&number](Stream& stream, const v1::Graph& graph, const std::string& name) {
    v1::ConnectRequest request = Define(++number, graph);
    request.mutable_define_program()->set_name(name);
    return stream.Call(request).digest();
  };
  const std::string secret = define(*anns, AddGraph(2), "secret_plan");
  // A program that both have is listed for each under the user's own name.
  const std::string shared = define(*anns, NegGraph(2), "anns_name");
  EXPECT_EQ(define(*bobs_stream, NegGraph(2), "bobs_name"), shared);

  const auto everything = [](Client& client) {
    grpc::ClientContext sessions, programs, kernels, users;
    v1::ListSessionsResponse session_list;
    v1::ListProgramsResponse program_list;
    v1::ListKernelsResponse kernel_list;
    v1::ListUsersResponse user_list;
    EXPECT_TRUE(client.sessions->ListSessions(&sessions, {}, &session_list).ok());
    EXPECT_TRUE(client.programs->ListPrograms(&programs, {}, &program_list).ok());
    EXPECT_TRUE(client.programs->ListKernels(&kernels, {}, &kernel_list).ok());
    EXPECT_TRUE(client.admin->ListUsers(&users, {}, &user_list).ok());
    return absl::StrCat(session_list.DebugString(), program_list.DebugString(),
                        kernel_list.DebugString(), user_list.DebugString());
  };
  const std::string bobs = everything(bob);
  EXPECT_THAT(bobs, HasSubstr("bobs_name"));
  EXPECT_THAT(bobs, HasSubstr("sessions: 1"));
  EXPECT_THAT(bobs, Not(HasSubstr("sessions: 2")));  // of the program that both have
  for (const std::string& hers : {std::string("ann"), secret, std::string("secret_plan"),
                                  std::string("anns_name"), std::string("\"add\"")})
    EXPECT_THAT(bobs, Not(HasSubstr(hers)));
  EXPECT_THAT(everything(owner_), HasSubstr("secret_plan"));
  EXPECT_THAT(everything(owner_), Not(HasSubstr(ann.session.session_id())));

  const auto explain = [](Client& client, const std::string& digest) {
    grpc::ClientContext context;
    v1::ExplainProgramRequest request;
    request.set_digest(digest);
    v1::ExplainProgramResponse response;
    return client.programs->ExplainProgram(&context, request, &response);
  };
  EXPECT_TRUE(explain(ann, secret).ok());
  EXPECT_TRUE(explain(bob, shared).ok());
  EXPECT_TRUE(explain(owner_, secret).ok());
  EXPECT_EQ(explain(bob, secret).error_code(), grpc::NOT_FOUND);
  // Her program does not even make a prefix ambiguous: an empty prefix matches both.
  EXPECT_TRUE(explain(bob, "").ok());
  grpc::ClientContext context;
  v1::ListKernelsRequest request;
  request.set_program_digest(secret);
  v1::ListKernelsResponse kernels;
  EXPECT_EQ(bob.programs->ListKernels(&context, request, &kernels).error_code(), grpc::NOT_FOUND);
}

TEST_F(AccessTest, ABlobIsFoundByWhoUploadedItAlone) {
  Client ann(tcp(), {.token = AddUser("ann")});
  Client bob(tcp(), {.token = AddUser("bob")});
  const std::string blob =
      "sha256:61be55a8e2f6b4e172338bddf184d6dbee29c98853e0a0485ecee7f27b9af0b4";  // of "aaaa"
  const std::string sum = "sum64:0000000061616161";
  const std::string both = sum + ":" + blob;
  ASSERT_TRUE(ann.Upload(blob, "aaaa").ok());
  ASSERT_TRUE(ann.Upload(sum + ":new", "aaaa").ok());
  for (Client* client : {&ann, &bob}) {
    grpc::ClientContext context;
    v1::FindBlobsRequest request;
    request.set_session_id(client->session.session_id());
    for (const std::string& name : {blob, sum, both}) request.add_blobs(name);
    v1::FindBlobsResponse found;
    ASSERT_TRUE(client->blobs->FindBlobs(&context, request, &found).ok());
    EXPECT_EQ(found.found_size(), client == &ann ? 3 : 0);
  }
  const auto stream = bob.Connect();
  uint64_t handle = 0;
  for (const std::string& name : {blob, sum + ":new", both})
    EXPECT_EQ(stream->Call(WriteBlob(++handle, name, 1)).error().code(), grpc::NOT_FOUND);
}

TEST_F(AccessTest, TheAuditLogSaysWhoDidWhat) {
  const std::string token = AddUser("ann");
  grpc::ClientContext context;
  v1::ListAuditEventsRequest request;
  request.set_follow(true);
  auto reader = owner_.admin->ListAuditEvents(&context, request);
  v1::AuditEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.user(), *auth::AccountName(geteuid()));
  EXPECT_EQ(event.action(), "add_user");
  EXPECT_EQ(event.subject(), "ann user");
  EXPECT_EQ(event.outcome(), "ok");
  // A later event is seen, too, and a name in it cannot start a line of its own.
  grpc::ClientContext drain;
  v1::DrainRequest drain_request;
  drain_request.set_device("x\"}\n{\"number\":1");
  v1::DrainResponse drained;
  owner_.admin->Drain(&drain, drain_request, &drained);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.action(), "drain");
  EXPECT_EQ(event.outcome(), "UNKNOWN_DEVICE");
  const std::string text = AuditText(daemon_);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  // Guessing tokens does not fill the disk.
  for (int i = 0; i < 200; ++i) Client(tcp(), {.token = "nonsense"});
  const std::string after = AuditText(daemon_);
  EXPECT_LT(std::count(after.begin(), after.end(), '\n'), 40);
  EXPECT_THAT(after, HasSubstr("BAD_TOKEN"));
  EXPECT_THAT(after, Not(HasSubstr(token)));
  context.TryCancel();
}

TEST_F(AccessTest, ATokenIsOnNoDisk) {
  const std::string token = AddUser("ann");
  std::ostringstream text;
  const std::string path = daemon_.folder() + "/state/users";
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("$argon2id$"));
  EXPECT_THAT(text.str(), Not(HasSubstr(token.substr(token.rfind('_') + 1, 16))));
  struct stat found {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600);
}

}  // namespace
}  // namespace kiln::testing
