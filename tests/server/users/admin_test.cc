// The views for people and Prometheus: devices, sessions, programs, cache, health, reflection,
// metrics.
#include <grpcpp/generic/generic_stub.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/search/knobs/setting.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/accounts.h"
#include "server/daemon.h"
#include "server/tuner/tuned_setting.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AdminTest : public ::testing::Test {
 protected:
  void SetUp() override {
    stream_ = client_.Connect();
    v1::ConnectRequest define = Define(1, AddGraph(2));
    define.mutable_define_program()->set_name("step");
    digest_ = stream_->Call(define).digest();
    stream_->Call(Write(1, {1, 2}));
    stream_->Call(RunProgram(1, {1, 1}, {2}));
  }

  TestDaemon daemon_{TestDaemonOptions{.devices = 2}};
  Client client_{daemon_.address(), 0, "cpu:0"};
  std::unique_ptr<Stream> stream_;
  std::string digest_;
};

TEST_F(AdminTest, Devices) {
  grpc::ClientContext context;
  v1::ListDevicesResponse response;
  ASSERT_TRUE(client_.devices->ListDevices(&context, {}, &response).ok());
  ASSERT_EQ(response.devices_size(), 2);
  EXPECT_EQ(response.devices(0).name(), "cpu:0");
  EXPECT_EQ(response.devices(0).memory_used_bytes(), 16);
  EXPECT_EQ(response.devices(0).memory_total_bytes(), 1 << 20);
}

TEST_F(AdminTest, WatchSendsAllThenChanges) {
  grpc::ClientContext context;
  v1::WatchDevicesRequest request;
  request.set_min_interval_ms(100);
  auto reader = client_.devices->WatchDevices(&context, request);
  v1::WatchDevicesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.devices_size(), 2);
  stream_->Call(Write(5, {1, 2, 3, 4}));
  do {
    ASSERT_TRUE(reader->Read(&response));
    ASSERT_EQ(response.devices_size(), 1);
    EXPECT_EQ(response.devices(0).name(), "cpu:0");
  } while (response.devices(0).memory_used_bytes() != 32);
  context.TryCancel();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::CANCELLED);
}

TEST_F(AdminTest, Sessions) {
  grpc::ClientContext context;
  v1::ListSessionsResponse response;
  ASSERT_TRUE(client_.sessions->ListSessions(&context, {}, &response).ok());
  ASSERT_EQ(response.sessions_size(), 1);
  const v1::Session& session = response.sessions(0);
  EXPECT_EQ(session.name(), "s1");
  EXPECT_EQ(session.user(), *auth::AccountName(geteuid()));
  EXPECT_TRUE(session.connected());
  EXPECT_EQ(session.memory_bytes(), 16);
  EXPECT_EQ(session.buffers(), 2);
  EXPECT_EQ(session.programs(), 1);
  EXPECT_EQ(session.runs(), 1);
  EXPECT_GT(session.device_seconds(), 0);
  EXPECT_THAT(response.DebugString(), ::testing::Not(HasSubstr(client_.session.session_id())));
}

TEST_F(AdminTest, ProgramsAndExplain) {
  grpc::ClientContext context;
  v1::ListProgramsResponse programs;
  ASSERT_TRUE(client_.programs->ListPrograms(&context, {}, &programs).ok());
  ASSERT_EQ(programs.programs_size(), 1);
  EXPECT_EQ(programs.programs(0).digest(), digest_);
  EXPECT_EQ(programs.programs(0).name(), "step");
  EXPECT_EQ(programs.programs(0).runs(), 1);
  EXPECT_EQ(programs.programs(0).sessions(), 1);
  grpc::ClientContext explain_context;
  v1::ExplainProgramRequest request;
  request.set_digest(digest_.substr(0, 8));
  request.set_with_assembly(true);
  v1::ExplainProgramResponse explained;
  ASSERT_TRUE(client_.programs->ExplainProgram(&explain_context, request, &explained).ok());
  ASSERT_EQ(explained.kernels_size(), 1);
  EXPECT_EQ(explained.kernels(0).assembly(), "nop ; add");
  EXPECT_EQ(explained.kernels(0).source(), "// add");
  EXPECT_EQ(explained.kernels(0).samples(), 1);
  EXPECT_EQ(explained.queue(), "0: launch add(input 0 [0, 8), input 1 [0, 8), output 0 [0, 8))\n");
  EXPECT_THAT(explained.graph(), HasSubstr("add"));
  grpc::ClientContext unknown_context;
  request.set_digest("zz");
  EXPECT_EQ(client_.programs->ExplainProgram(&unknown_context, request, &explained).error_code(),
            grpc::NOT_FOUND);
  grpc::ClientContext kernels_context;
  v1::ListKernelsResponse kernels;
  ASSERT_TRUE(client_.programs->ListKernels(&kernels_context, {}, &kernels).ok());
  EXPECT_EQ(kernels.kernels(0).name(), "add");
}

TEST_F(AdminTest, CompileAhead) {
  grpc::ClientContext context;
  v1::CompileProgramRequest request;
  request.set_session_id(client_.session.session_id());
  *request.mutable_graph() = AddGraph(7);
  // The daemon truncates names, since it keeps them as long as programs.
  request.set_name(std::string(1000, 'x'));
  v1::CompileProgramResponse response;
  ASSERT_TRUE(client_.programs->CompileProgram(&context, request, &response).ok());
  EXPECT_EQ(response.program().name(), std::string(80, 'x'));
  EXPECT_EQ(stream_->Call(Define(2, AddGraph(7))).digest(), response.program().digest());
  EXPECT_THAT(daemon_.daemon().MetricsText(), HasSubstr("kiln_compiles_total 2\n"));
  grpc::ClientContext bad_context;
  request.mutable_graph()->mutable_nodes(2)->set_op("frobnicate");
  const grpc::Status bad = client_.programs->CompileProgram(&bad_context, request, &response);
  EXPECT_EQ(bad.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(bad), "UNKNOWN_OP");
}

// The setting of a kernel of the fake compiler, on a fake device.
tuner::TunedSetting SettingOfAdd(FakeDevice& device) {
  return {.kernel = "add\n",
          .hardware = device.info().target.HardwareKey(),
          .version = search::kSettingVersion,
          .setting = "setting 1\nstage 0 form=scalar\n",
          .seconds_before = 2,
          .seconds_after = 1,
          .roofline_seconds = 0.5,
          .measured = absl::FromUnixSeconds(1'700'000'000),
          .width = 4};
}

TEST_F(AdminTest, ImportedSettingsAreUsedKeptAndExported) {
  const std::string text = tuner::PrintSettings({SettingOfAdd(daemon_.device())});
  const auto import = [this](const std::string& settings, v1::ImportSettingsResponse* imported) {
    grpc::ClientContext context;
    v1::ImportSettingsRequest request;
    request.set_text(settings);
    return client_.admin->ImportSettings(&context, request, imported);
  };
  v1::ImportSettingsResponse imported;
  const grpc::Status bad = import(text + "more", &imported);
  EXPECT_EQ(bad.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(bad), "BAD_SETTINGS");
  EXPECT_THAT(bad.error_message(), HasSubstr("line 12: there is text after the last line"));
  ASSERT_TRUE(import(text, &imported).ok());
  EXPECT_EQ(imported.added(), 1);
  ASSERT_TRUE(import(text, &imported).ok());
  EXPECT_EQ(imported.kept(), 1);
  EXPECT_THAT(AuditText(daemon_), ContainsRegex("import_settings.*BAD_SETTINGS"));
  // Programs that are loaded keep their kernels, and others get the setting, also after a restart.
  const auto setting_of = [](Client& client, const std::string& digest) {
    grpc::ClientContext context;
    v1::ExplainProgramRequest request;
    request.set_digest(digest);
    v1::ExplainProgramResponse answer;
    EXPECT_TRUE(client.programs->ExplainProgram(&context, request, &answer).ok());
    return answer.kernels_size() == 1 ? answer.kernels(0).setting() : "no kernel";
  };
  EXPECT_EQ(setting_of(client_, digest_), "");
  const std::string other = stream_->Call(Define(2, AddGraph(3))).digest();
  EXPECT_EQ(setting_of(client_, other), SettingOfAdd(daemon_.device()).setting);
  EXPECT_EQ(stream_->Call(Define(3, AddGraph(2))).digest(), digest_);
  EXPECT_EQ(setting_of(client_, digest_), SettingOfAdd(daemon_.device()).setting);
  stream_.reset();
  daemon_.Restart(Daemon::Sessions::kEnd);
  Client next(daemon_.address(), 0, "cpu:0");
  const std::string again = next.Connect()->Call(Define(1, AddGraph(2))).digest();
  EXPECT_EQ(setting_of(next, again), SettingOfAdd(daemon_.device()).setting);
  grpc::ClientContext context;
  v1::ExportSettingsResponse exported;
  ASSERT_TRUE(next.admin->ExportSettings(&context, {}, &exported).ok());
  EXPECT_EQ(exported.text(), text);
  EXPECT_EQ(exported.settings(), 1);
}

TEST_F(AdminTest, DaemonCacheAndUsers) {
  grpc::ClientContext daemon_context, cache_context, clear_context, users_context;
  v1::GetDaemonResponse daemon;
  ASSERT_TRUE(client_.admin->GetDaemon(&daemon_context, {}, &daemon).ok());
  EXPECT_EQ(daemon.version(), DaemonVersion());
  EXPECT_EQ(daemon.listening(0), daemon_.address());
  EXPECT_EQ(daemon.cache_path(), daemon_.folder() + "/cache/kernels.sqlite");
  EXPECT_FALSE(daemon.draining());
  v1::GetCacheResponse cache;
  ASSERT_TRUE(client_.admin->GetCache(&cache_context, {}, &cache).ok());
  EXPECT_EQ(cache.kernels(), 1);
  EXPECT_EQ(cache.misses(), 1);
  v1::ClearCacheResponse cleared;
  ASSERT_TRUE(client_.admin->ClearCache(&clear_context, {}, &cleared).ok());
  EXPECT_EQ(cleared.kernels_deleted(), 1);
  v1::ListUsersResponse users;
  ASSERT_TRUE(client_.admin->ListUsers(&users_context, {}, &users).ok());
  ASSERT_EQ(users.users_size(), 1);
  EXPECT_EQ(users.users(0).name(), *auth::AccountName(geteuid()));
  EXPECT_EQ(users.users(0).memory_bytes(), 16);
  ASSERT_EQ(users.users(0).devices_size(), 2);
  const v1::DeviceUse& use = users.users(0).devices(0);
  EXPECT_EQ(use.device(), "cpu:0");
  EXPECT_EQ(use.runs(), 1);
  EXPECT_GT(use.device_seconds(), 0);
  EXPECT_EQ(use.sessions(), 1);
  EXPECT_EQ(use.memory_bytes(), 16);
  EXPECT_EQ(use.programs(), 1);
  EXPECT_EQ(use.waiting(), 0);
  EXPECT_EQ(users.users(0).devices(1).sessions(), 0);
  grpc::ClientContext tune_context;
  const grpc::Status tune = client_.programs->TuneProgram(&tune_context, {})->Finish();
  EXPECT_EQ(tune.error_code(), grpc::UNIMPLEMENTED);
  EXPECT_THAT(tune.error_message(), HasSubstr("does not search for schedules"));
}

grpc::Status Drain(Client& client, const std::string& device, bool undo) {
  grpc::ClientContext context;
  v1::DrainRequest request;
  request.set_device(device);
  request.set_undo(undo);
  v1::DrainResponse response;
  return client.admin->Drain(&context, request, &response);
}

TEST_F(AdminTest, DrainRefusesNewWorkAlone) {
  EXPECT_EQ(Drain(client_, "cuda:0", false).error_code(), grpc::NOT_FOUND);
  ASSERT_TRUE(Drain(client_, "cpu:0", false).ok());
  EXPECT_EQ(stream_->Call(Define(5, AddGraph(3))).error().code(), grpc::UNAVAILABLE);
  EXPECT_FALSE(stream_->Call(RunProgram(1, {1, 1}, {50})).has_error());
  Client refused(daemon_.address(), 0, "cpu:0");
  EXPECT_EQ(refused.opened.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(Reason(refused.opened), "DRAINING");
  Client elsewhere(daemon_.address());
  EXPECT_EQ(elsewhere.session.device(), "cpu:1");
  ASSERT_TRUE(Drain(client_, "", false).ok());
  EXPECT_EQ(Client(daemon_.address()).opened.error_code(), grpc::UNAVAILABLE);
  ASSERT_TRUE(Drain(client_, "", true).ok());
  EXPECT_TRUE(Client(daemon_.address(), 0, "cpu:0").opened.ok());
  EXPECT_FALSE(stream_->Call(Define(6, AddGraph(3))).has_error());
}

// The answers of grpc.health.v1, and a value for the failure of a call with an unknown name.
enum class Serving { kUnknown = 0, kServing = 1, kNotServing = 2, kNoSuchService = 3 };

// Parses by hand: the health protos are not installed with gRPC, and both messages have only one
// field.
Serving HealthOf(Client& client, const std::string& service) {
  grpc::ClientContext context;
  grpc::GenericStub stub(client.channel);
  grpc::CompletionQueue queue;
  const std::string request =
      absl::StrCat("\n", std::string(1, static_cast<char>(service.size())), service);
  const grpc::Slice slice(request);
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                    grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return Serving::kNoSuchService;
  std::vector<grpc::Slice> slices;
  if (!answer.Dump(&slices).ok() || slices.empty() || slices[0].size() < 2)
    return Serving::kUnknown;
  return static_cast<Serving>(slices[0].begin()[1]);
}

TEST_F(AdminTest, HealthOfTheDaemonAndEachDevice) {
  EXPECT_EQ(HealthOf(client_, ""), Serving::kServing);
  EXPECT_EQ(HealthOf(client_, "cpu:0"), Serving::kServing);
  EXPECT_EQ(HealthOf(client_, "cpu:7"), Serving::kNoSuchService);
  daemon_.device(0).Break("fell off the bus");
  stream_->Call(RunProgram(1, {1, 1}, {60}));
  // The run may fail before the health service is told.
  EXPECT_TRUE(Eventually([&] { return HealthOf(client_, "cpu:0") == Serving::kNotServing; }));
  EXPECT_EQ(HealthOf(client_, "cpu:1"), Serving::kServing);
  EXPECT_THAT(daemon_.daemon().MetricsText(), HasSubstr("kiln_device_healthy{device=\"cpu:0\"} 0"));
}

TEST_F(AdminTest, ReflectionListsTheServices) {
  grpc::ClientContext context;
  grpc::GenericStub stub(client_.channel);
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  void* tag = nullptr;
  bool ok = false;
  const auto wait = [&] { return queue.Next(&tag, &ok) && ok; };
  call->StartCall(nullptr);
  ASSERT_TRUE(wait());
  // ServerReflectionRequest{list_services: "*"}: field 7.
  const grpc::Slice slice(std::string("\x3a\x01*", 3));
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  ASSERT_TRUE(wait());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  ASSERT_TRUE(wait());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(answer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& part : slices)
    text.append(reinterpret_cast<const char*>(part.begin()), part.size());
  for (const char* service :
       {"kiln.v1.SessionService", "kiln.v1.DeviceService", "kiln.v1.BlobService",
        "kiln.v1.ProgramService", "kiln.v1.AdminService", "grpc.health.v1.Health"}) {
    EXPECT_THAT(text, HasSubstr(service));
  }
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST_F(AdminTest, MetricsCountWhatHappened) {
  for (uint64_t i = 0; i < 9; ++i) stream_->Call(RunProgram(1, {1, 1}, {100 + i}));
  stream_->Call(Read(100));
  stream_->Call(Read(999));
  const std::string text = daemon_.daemon().MetricsText();
  for (const char* line :
       {"kiln_replays_total{device=\"cpu:0\"} 10\n", "kiln_compiles_total 1\n", "kiln_sessions 1\n",
        "kiln_connections 1\n", "kiln_sent_bytes_total 8\n", "kiln_received_bytes_total 8\n",
        "kiln_errors_total{code=\"not_found\"} 1\n",
        "kiln_queue_wait_seconds_count{device=\"cpu:0\"} 10\n",
        "kiln_kernel_cache_misses_total 1\n", "kiln_program_cache_misses_total 1\n",
        "kiln_host_memory_bytes{use=\"blobs\"} 0\n", "kiln_host_memory_refused_total 0\n",
        "kiln_user_runs_total{user=\"", "kiln_kernel_cache_rejected_total 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr(absl::StrCat("kiln_build_info{commit=\"", DaemonCommit(),
                                           "\",version=\"", DaemonVersion(), "\"} 1\n")));
  EXPECT_THAT(text, ContainsRegex("\nkiln_kernel_duration_seconds_count\\{device=\"cpu:0\",user=\""
                                  "[^\"]*\",program=\"[0-9a-f]+\",kernel=\"add\"\\} [1-4]\n"));
  // Under the digest prefix that `kiln programs` shows.
  grpc::ClientContext context;
  v1::ListProgramsResponse programs;
  ASSERT_TRUE(client_.programs->ListPrograms(&context, {}, &programs).ok());
  EXPECT_THAT(text,
              HasSubstr(absl::StrCat("kiln_program_duration_seconds_count{device=\"cpu:0\",user=\"",
                                     *auth::AccountName(geteuid()), "\",program=\"",
                                     programs.programs(0).digest().substr(0, 12), "\"} 10\n")));
  EXPECT_EQ(std::system(absl::StrCat("curl -sf http://127.0.0.1:", daemon_.daemon().metrics_port(),
                                     "/metrics | grep -q '^kiln_replays_total'")
                            .c_str()),
            0);
}

TEST_F(AdminTest, MetricsShowWhatUsersAndOperatorsWaitFor) {
  stream_->Call(RunProgram(1, {1, 1}, {100}));
  stream_->Call(Read(100));
  const Client stranger(daemon_.daemon().listening()[1], {.token = "nonsense"});
  EXPECT_FALSE(stranger.opened.ok());
  daemon_.Advance(absl::Seconds(20));
  const std::string text = daemon_.daemon().MetricsText();
  const std::string me = absl::StrCat("{user=\"", *auth::AccountName(geteuid()), "\"");
  for (const std::string& line :
       {absl::StrCat("\nkiln_user_oldest_session_seconds", me, "} 20\n"),
        absl::StrCat("\nkiln_user_unprotected_sessions", me, "} 1\n"),
        absl::StrCat("\nkiln_user_compile_wait_seconds_total", me, "} "),
        absl::StrCat("\nkiln_user_queue_wait_seconds_total", me, ",device=\"cpu:0\"} "),
        std::string(
            "\nkiln_device_copied_bytes_total{device=\"cpu:0\",direction=\"to_device\"} 8\n"),
        std::string(
            "\nkiln_device_copied_bytes_total{device=\"cpu:0\",direction=\"from_device\"} 8\n"),
        std::string("\nkiln_device_busy_seconds_total{device=\"cpu:0\"} "),
        std::string("\nkiln_device_utilization_ratio{device=\"cpu:0\"} "),
        std::string("\nkiln_rpc_duration_seconds_count{method=\"SessionService/OpenSession\"} 1\n"),
        std::string("\nkiln_failed_logins_total{reason=\"bad_token\"} "),
        std::string("\nkiln_refused_connections_total 0\n"),
        std::string("\nkiln_disk_free_bytes{folder=\"state\"} "),
        std::string("\nkiln_disk_size_bytes{folder=\"cache\"} "),
        std::string("\nkiln_saved_session_bytes "),
        std::string("\nkiln_program_info{program=\"")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  // Streams of sessions and unknown methods are not measured.
  EXPECT_THAT(text, Not(HasSubstr("method=\"SessionService/Connect\"")));
}

}  // namespace
}  // namespace kiln::testing
