#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/find_program.h"
#include "clients/cli/format.h"
#include "clients/cli/json.h"
#include "clients/cli/table.h"
#include "clients/cli/usage_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "kiln/v1/device.grpc.pb.h"
#include "kiln/v1/program.grpc.pb.h"
#include "kiln/v1/session.grpc.pb.h"

namespace kiln::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Devices : public v1::DeviceService::Service {
  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*,
                           v1::ListDevicesResponse* answer) override {
    v1::Device* device = answer->add_devices();
    device->set_name("cpu:0");
    device->set_model("Some CPU");
    device->set_target("x86-64/avx512");
    device->set_memory_total_bytes(8ull << 30);
    device->set_memory_used_bytes(1536);
    device->set_compute_units(2);
    device->set_utilization(0.5);
    device->set_health(v1::Device::FAILED);
    device->set_health_message("the fan fell off");
    answer->add_drivers()->set_name("cpu");
    answer->mutable_drivers(0)->set_devices(1);
    answer->add_drivers()->set_name("cuda");
    answer->mutable_drivers(1)->set_why_not_more("no library\x1b[2J");
    return grpc::Status::OK;
  }
};

class Sessions : public v1::SessionService::Service {
 public:
  std::string description = "ann@laptop train.py";
  std::string closed;

 private:
  grpc::Status EndSession(grpc::ServerContext*, const v1::EndSessionRequest* request,
                          v1::EndSessionResponse* answer) override {
    if (request->name() != "night" && request->name() != "s12")
      return {grpc::StatusCode::NOT_FOUND, "no such session"};
    closed = request->name();
    answer->set_name("s12");
    answer->set_user("ann");
    return grpc::Status::OK;
  }
  grpc::Status ListSessions(grpc::ServerContext*, const v1::ListSessionsRequest*,
                            v1::ListSessionsResponse* answer) override {
    v1::Session* session = answer->add_sessions();
    session->set_name("s12");
    session->mutable_client()->set_description(description);
    session->set_runs(7);
    session->set_connected(true);
    session->set_snapshot_seconds(60);
    session->mutable_snapshot_taken()->set_seconds(1'700'000'000 - 100);
    session->set_memory_bytes(4096);
    return grpc::Status::OK;
  }
};

class Programs : public v1::ProgramService::Service {
 public:
  std::string name = "train_step";
  std::vector<std::string> devices = {"cpu:0"};
  std::vector<std::string> first_calls;
  bool cold = false;

  void Fill(v1::Program* program) {
    program->set_digest("abcdef0123456789");
    program->set_name(name);
    program->set_device(devices.front());
    program->mutable_devices()->Assign(devices.begin(), devices.end());
    program->set_runs(4);
    program->set_device_seconds(0.1);
    program->set_compile_seconds(1.25);
  }
  void Fill(v1::Kernel* kernel, const std::string& name, double median) {
    kernel->set_name(name);
    kernel->set_digest("feed" + name);
    kernel->set_launches(2);
    kernel->set_seconds_median(median);
    kernel->set_flops(2000000);
    kernel->set_samples(3);
    kernel->set_cold(cold);
  }
  grpc::Status ListPrograms(grpc::ServerContext*, const v1::ListProgramsRequest*,
                            v1::ListProgramsResponse* answer) override {
    Fill(answer->add_programs());
    return grpc::Status::OK;
  }
  grpc::Status ListFirstCalls(grpc::ServerContext*, const v1::ListFirstCallsRequest*,
                              v1::ListFirstCallsResponse* answer) override {
    if (first_calls.empty()) return {grpc::StatusCode::UNIMPLEMENTED, "an older daemon"};
    for (const std::string& of : first_calls) {
      v1::FirstCall* call = answer->add_first_calls();
      call->set_name(of);
      call->set_session("s12");
      call->set_part("emit");
      call->set_kernels(84);
      call->set_kernels_made(31);
      call->set_seconds(3.5);
    }
    return grpc::Status::OK;
  }
  grpc::Status ListKernels(grpc::ServerContext*, const v1::ListKernelsRequest*,
                           v1::ListKernelsResponse* answer) override {
    Fill(answer->add_kernels(), "quick", 0.001);
    Fill(answer->add_kernels(), "slow", 0.003);
    return grpc::Status::OK;
  }
  v1::StopTuningRequest stopped;
  bool tunes = true;
  grpc::Status ListTunings(grpc::ServerContext*, const v1::ListTuningsRequest*,
                           v1::ListTuningsResponse* answer) override {
    if (!tunes) return grpc::Status::OK;
    v1::Tuning* asked = answer->add_tunings();
    asked->set_id(3);
    asked->set_program("abcdef012345");
    asked->set_name("train\nstep");
    asked->set_user("ann");
    asked->add_devices("cpu:0");
    asked->add_devices("cpu:1");
    asked->mutable_progress()->set_kernel("matmul_1");
    asked->mutable_progress()->set_number(1);
    asked->mutable_progress()->set_kernels(3);
    asked->mutable_progress()->set_round(2);
    asked->mutable_progress()->set_tried(48);
    asked->mutable_progress()->set_fraction_done(0.25);
    asked->mutable_progress()->set_seconds_now(1e-3);
    asked->mutable_progress()->set_roofline_seconds(5e-4);
    asked->mutable_progress()->set_roofline_limit("memory");
    asked->mutable_since()->set_seconds(1'700'000'000 - 30);
    v1::Tuning* idle = answer->add_tunings();
    idle->set_id(4);
    idle->set_program("fedcba");
    idle->add_devices("cuda:0");
    idle->set_paused(true);
    idle->mutable_since()->set_seconds(1'700'000'000 - 7200);
    return grpc::Status::OK;
  }
  grpc::Status StopTuning(grpc::ServerContext*, const v1::StopTuningRequest* request,
                          v1::StopTuningResponse* answer) override {
    stopped = *request;
    if (request->id() == 9) return {grpc::StatusCode::NOT_FOUND, "no tuning has the number 9"};
    answer->mutable_tuning()->set_program("abcdef012345");
    if (request->id() == 3) answer->mutable_tuning()->set_user("ann");
    return grpc::Status::OK;
  }
  v1::TuneProgramRequest tuned;
  grpc::Status TuneProgram(grpc::ServerContext*, const v1::TuneProgramRequest* request,
                           grpc::ServerWriter<v1::TuneProgramResponse>* writer) override {
    tuned = *request;
    v1::TuneProgramResponse progress;
    progress.set_kernel("matmul_1");
    progress.set_number(1);
    progress.set_kernels(3);
    progress.set_share(0.75);
    progress.set_round(2);
    progress.set_tried(48);
    progress.set_seconds_before(2e-3);
    progress.set_roofline_seconds(5e-4);
    progress.set_roofline_limit("memory");
    progress.set_seconds_now(1.6e-3);
    progress.set_fraction_done(0.1);
    progress.set_state(v1::TuneProgramResponse::SEARCHING);
    writer->Write(progress);
    progress.set_seconds_now(1e-3);
    progress.set_state(v1::TuneProgramResponse::FASTER);
    writer->Write(progress);
    progress.set_kernel("sum_2");
    progress.set_number(2);
    progress.set_share(0.25);
    progress.set_seconds_before(0);
    progress.set_seconds_now(0);
    progress.clear_roofline_seconds();
    progress.set_state(v1::TuneProgramResponse::FAILED);
    progress.set_why("no\nrunner");
    writer->Write(progress);
    if (request->seconds() == 1) return {grpc::StatusCode::UNAVAILABLE, "cpu:0 is already tuning"};
    return grpc::Status::OK;
  }
  grpc::Status ExplainProgram(grpc::ServerContext*, const v1::ExplainProgramRequest* request,
                              v1::ExplainProgramResponse* answer) override {
    if (request->digest() != "abcdef0123456789")
      return {grpc::StatusCode::NOT_FOUND, "no such program"};
    Fill(answer->mutable_program());
    answer->set_graph("the graph");
    answer->set_partition("the partition");
    v1::PassReport* simplify = answer->add_passes();
    simplify->set_pass("simplify");
    simplify->set_disabled(true);
    v1::PassReport* normalize = answer->add_passes();
    normalize->set_pass("normalize");
    normalize->set_seconds(0.002);
    normalize->set_text("the normal graph");
    for (const auto& [part, seconds] :
         std::vector<std::pair<std::string, double>>{{"decode", 0.5}, {"run", 2}}) {
      v1::FirstCallPart* proto = answer->add_first_call();
      proto->set_name(part);
      proto->set_seconds(seconds);
      proto->set_page_faults(7);
    }
    Fill(answer->add_kernels(), "quick", 0.001);
    Fill(answer->add_kernels(), "slow", 0.003);
    for (v1::Kernel& kernel : *answer->mutable_kernels()) {
      kernel.set_schedule("schedule of " + kernel.name());
      if (kernel.name() == "slow") {
        kernel.set_refused_schedule("split 0 3");
        kernel.set_refusal("element 7 of out2 gets another value");
        kernel.set_setting_refusal("stage 0: lanes is 5");
      }
      kernel.set_setting("setting 1\nstage 0 form=panel lanes=8\nstage 1 form=scalar\n");
      kernel.set_setting_ignored("polish=3");
      if (kernel.name() == "quick") {
        kernel.set_roofline_seconds(1e-6);
        kernel.set_roofline_limit("compute");
      }
      kernel.set_source("source of " + kernel.name());
      if (request->with_assembly()) kernel.set_assembly("assembly of " + kernel.name());
    }
    return grpc::Status::OK;
  }
};

class Admin : public v1::AdminService::Service {
  grpc::Status GetCache(grpc::ServerContext*, const v1::GetCacheRequest*,
                        v1::GetCacheResponse* answer) override {
    answer->set_path("/cache/kernels.sqlite");
    answer->set_kernels(42);
    answer->set_bytes(1 << 20);
    return grpc::Status::OK;
  }
  grpc::Status ClearCache(grpc::ServerContext*, const v1::ClearCacheRequest*,
                          v1::ClearCacheResponse* answer) override {
    answer->set_kernels_deleted(42);
    return grpc::Status::OK;
  }
  grpc::Status ExportSettings(grpc::ServerContext*, const v1::ExportSettingsRequest*,
                              v1::ExportSettingsResponse* answer) override {
    answer->set_text("kiln settings 1\nend of 0\n");
    answer->set_settings(7);
    return grpc::Status::OK;
  }
  grpc::Status ImportSettings(grpc::ServerContext*, const v1::ImportSettingsRequest* request,
                              v1::ImportSettingsResponse* answer) override {
    if (request->text() != "kiln settings 1\nend of 0\n")
      return {grpc::StatusCode::INVALID_ARGUMENT, "line 1: not settings"};
    answer->set_added(1);
    answer->set_replaced(2);
    answer->set_kept(3);
    return grpc::Status::OK;
  }
  // Returns another start time after it has been stopped, as the next daemon does.
  grpc::Status GetDaemon(grpc::ServerContext*, const v1::GetDaemonRequest*,
                         v1::GetDaemonResponse* answer) override {
    answer->set_version(version);
    answer->mutable_started()->set_seconds(1'700'000'000 - (stopped_ ? 60 : 5 * 3600));
    return grpc::Status::OK;
  }
  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest* request,
                     v1::DrainResponse*) override {
    if (request->stop()) stopped_ = request->device().empty();
    if (request->device() == "cpu:7") return {grpc::StatusCode::NOT_FOUND, "no device cpu:7"};
    return grpc::Status::OK;
  }

  static void Fill(const std::string& name, uint64_t limit, bool is_set, v1::UserQuotas* user) {
    user->set_user(name);
    v1::ResourceQuota* memory = user->add_resources();
    memory->set_resource("device_memory");
    memory->set_device("cpu:0");
    memory->set_used(1536);
    memory->set_in_bytes(true);
    v1::ResourceQuota* sessions = user->add_resources();
    sessions->set_resource("sessions");
    sessions->set_used(3);
    sessions->set_limit(limit);
    sessions->set_is_set(is_set);
  }
  grpc::Status ListQuotas(grpc::ServerContext*, const v1::ListQuotasRequest*,
                          v1::ListQuotasResponse* answer) override {
    Fill("ann", 8, true, answer->add_users());
    Fill("bob", 4, false, answer->add_users());
    return grpc::Status::OK;
  }
  grpc::Status SetQuota(grpc::ServerContext*, const v1::SetQuotaRequest* request,
                        v1::SetQuotaResponse* answer) override {
    set_quota = *request;
    Fill(request->user(), 9, true, answer->mutable_user());
    return grpc::Status::OK;
  }
  grpc::Status ListAuditEvents(grpc::ServerContext*, const v1::ListAuditEventsRequest*,
                               grpc::ServerWriter<v1::AuditEvent>* events) override {
    v1::AuditEvent event;
    for (const char* user : {"ann", "bob"}) {
      event.set_user(user);
      events->Write(event);
    }
    return grpc::Status::OK;
  }
  grpc::Status VerifyAuditLog(grpc::ServerContext*, const v1::VerifyAuditLogRequest*,
                              v1::VerifyAuditLogResponse* answer) override {
    answer->set_events(12);
    answer->set_unprotected_events(3);
    answer->set_last_number(15);
    answer->set_last_seal("5ea1");
    if (tampered.empty()) return grpc::Status::OK;
    answer->mutable_problem()->set_file("audit.jsonl");
    answer->mutable_problem()->set_line(7);
    answer->mutable_problem()->set_what(tampered);
    return grpc::Status::OK;
  }
  grpc::Status RevokeUser(grpc::ServerContext*, const v1::RevokeUserRequest* request,
                          v1::RevokeUserResponse* answer) override {
    answer->set_sessions_closed(request->name() == "ann" ? 1 : 2);
    return grpc::Status::OK;
  }
  grpc::Status AddUser(grpc::ServerContext*, const v1::AddUserRequest* request,
                       v1::AddUserResponse* answer) override {
    add_user = *request;
    answer->mutable_user()->set_name(request->name());
    answer->set_token("kiln_1_2");
    return grpc::Status::OK;
  }
  grpc::Status AddToken(grpc::ServerContext*, const v1::AddTokenRequest* request,
                        v1::AddTokenResponse* answer) override {
    add_token = *request;
    answer->mutable_user()->set_name(request->user());
    answer->set_token("kiln_3_4");
    return grpc::Status::OK;
  }
  grpc::Status RevokeToken(grpc::ServerContext*, const v1::RevokeTokenRequest* request,
                           v1::RevokeTokenResponse* answer) override {
    if (request->token_id() != "1") return {grpc::StatusCode::NOT_FOUND, "no such token"};
    answer->mutable_user()->set_name("ann");
    return grpc::Status::OK;
  }
  // Each call finds that another second of ann's device time has passed.
  grpc::Status ListUsers(grpc::ServerContext*, const v1::ListUsersRequest*,
                         v1::ListUsersResponse* answer) override {
    ++calls_;
    v1::User* user = answer->add_users();
    user->set_name("ann\x1b[2J");
    v1::DeviceUse* use = user->add_devices();
    use->set_device("cpu:0");
    use->set_sessions(1);
    use->set_runs(static_cast<uint64_t>(calls_));
    answer->add_users()->set_name("idle");
    v1::Token* token = answer->mutable_users(1)->add_tokens();
    token->set_id("1234");
    token->mutable_created()->set_seconds(86400);
    token->mutable_expires()->set_seconds(3 * 86400);
    answer->mutable_users(1)->add_devices()->set_device("cpu:0");
    return calls_ == fail_at_ ? failure_ : grpc::Status::OK;
  }

 public:
  int calls_ = 0;
  int fail_at_ = -1;
  grpc::Status failure_{grpc::StatusCode::UNAVAILABLE, "starts again"};
  std::atomic<bool> stopped_ = false;
  std::string version = ClientVersion();
  std::string tampered;
  v1::SetQuotaRequest set_quota;
  v1::AddUserRequest add_user;
  v1::AddTokenRequest add_token;
};

// Noon of a day, so that ages are the same in every run.
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

Process FakeProcess(std::map<std::string, std::string> environment = {}) {
  return {.now = [] { return kNow; },
          .environment = [environment](const std::string& name) -> std::optional<std::string> {
            const auto found = environment.find(name);
            return found == environment.end() ? std::nullopt : std::optional(found->second);
          }};
}

class CliTest : public ::testing::Test {
 protected:
  CliTest() : socket_(absl::StrCat("unix:", ::testing::TempDir(), "/cli-", getpid(), ".sock")) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(&devices_);
    builder.RegisterService(&sessions_);
    builder.RegisterService(&programs_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
  }
  int Run(std::vector<std::string> arguments) {
    arguments.push_back("--address=" + socket_);
    out_.str("");
    error_.str("");
    return Main(arguments, out_, error_, process_);
  }
  std::string out() const { return out_.str(); }
  std::string error() const { return error_.str(); }

  const std::string socket_;
  Process process_ = FakeProcess();
  Devices devices_;
  Sessions sessions_;
  Programs programs_;
  Admin admin_;
  std::unique_ptr<grpc::Server> server_;
  std::ostringstream out_;
  std::ostringstream error_;
};

TEST_F(CliTest, Devices) {
  ASSERT_EQ(Run({"devices"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("DEVICE +MODEL +TARGET"));
  EXPECT_THAT(out(), ContainsRegex("cpu:0 +Some CPU +x86-64/avx512 +2 +1.50 KiB +8.00 GiB +0 +50% "
                                   "+failed: the fan fell off"));
  EXPECT_THAT(out(), ContainsRegex("\nDRIVER +DEVICES +WHY NOT MORE\ncpu +1"));
  EXPECT_THAT(out(), ContainsRegex("\ncuda +0 +no library"));
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, JsonIsTheAnswerAndNothingElse) {
  ASSERT_EQ(Run({"devices", "--json"}), 0) << error();
  EXPECT_EQ(out().substr(0, 1), "{");
  EXPECT_THAT(out(), HasSubstr("\"memory_used_bytes\": 1536"));
  EXPECT_THAT(out(), HasSubstr("\"queue_length\": 0"));
  EXPECT_THAT(out(), HasSubstr("\"why_not_more\": \"no library"));
  EXPECT_THAT(out(), Not(HasSubstr("DEVICE ")));
}

TEST_F(CliTest, Sessions) {
  ASSERT_EQ(Run({"sessions"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("s12 +ann@laptop train.py +connected"));
  EXPECT_THAT(out(), HasSubstr("100 s ago"));
}

TEST_F(CliTest, ASessionIsClosedByItsNames) {
  for (const char* name : {"night", "s12"}) {
    ASSERT_EQ(Run({"sessions", "close", name}), 0) << error();
    EXPECT_EQ(out(), "closed s12 of ann\n");
    EXPECT_EQ(sessions_.closed, name);
  }
  EXPECT_EQ(Run({"sessions", "close", "s13"}), 1);
  EXPECT_THAT(error(), HasSubstr("no such session"));
  EXPECT_EQ(Run({"sessions", "close"}), 2);
  EXPECT_EQ(Run({"sessions", "night"}), 2);
}

// A session's or program's name must not move another user's cursor.
TEST_F(CliTest, WhatOthersWroteIsEscaped) {
  sessions_.description = "ann\x1b[2J\u202e\nroot";
  programs_.name = sessions_.description;
  const char* escaped = "ann\\x1B[2J\\u{202E}\\nroot";
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"sessions"}, {"programs"}, {"explain", "abcd"}, {"kernels", "nothing"}}) {
    Run(command);
    const std::string printed = out() + error();
    EXPECT_THAT(printed, HasSubstr(escaped)) << command[0];
    EXPECT_THAT(printed, Not(HasSubstr("\x1b"))) << command[0];
    EXPECT_THAT(printed, Not(HasSubstr("\u202e"))) << command[0];
    EXPECT_THAT(printed, Not(HasSubstr("\nroot"))) << command[0];
  }
  ASSERT_EQ(Run({"programs", "--json"}), 0);
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(out(), Not(HasSubstr("\u202e")));
}

TEST_F(CliTest, Programs) {
  ASSERT_EQ(Run({"programs"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("abcdef012345 +train_step .* 1.25 s +4 +25.0 ms"));
}

TEST_F(CliTest, ProgramsThatSomebodyWaitsFor) {
  programs_.first_calls = {"slow\x1b[2J"};
  ASSERT_EQ(Run({"programs"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("slow.* +s12 +emit +84 +31 +3.50 s\n\nPROGRAM"));
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, ExplainAccountsForTheFirstCall) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"explain", "abcd", "--passes"}, {"explain", "abcd", "--summary"}}) {
    ASSERT_EQ(Run(command), 0) << error();
    EXPECT_THAT(out(), HasSubstr("== first call: 2.50 s from the graph to the answer\n"));
    EXPECT_THAT(out(), ContainsRegex("decode +500 ms +7\n"));
  }
}

TEST_F(CliTest, AProgramsDevicesAreAllNamed) {
  programs_.devices = {"cpu:0"};
  ASSERT_EQ(Run({"explain", "train_step", "--summary"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("\ndevice    cpu:0\n"));
  programs_.devices = {"cpu:0", "cpu:1"};
  ASSERT_EQ(Run({"explain", "train_step", "--summary"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("\ndevices   cpu:0, cpu:1\n"));
  ASSERT_EQ(Run({"programs"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("train_step +cpu:0, cpu:1 "));
}

TEST_F(CliTest, TimesOfAFirstRunAreMarked) {
  ASSERT_EQ(Run({"kernels"}), 0) << error();
  EXPECT_THAT(out(), Not(HasSubstr("cold")));
  programs_.cold = true;
  ASSERT_EQ(Run({"kernels"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("1 +slow +feedslow +2 +3.00 ms \\(cold\\) "));
}

TEST_F(CliTest, KernelsByTimeWithTheirShare) {
  ASSERT_EQ(Run({"kernels", "train_step"}), 0) << error();
  EXPECT_LT(out().find("slow"), out().find("quick"));
  EXPECT_THAT(out(), ContainsRegex("1 +slow +feedslow +2 +3.00 ms +- +75% +0.67 GFLOP/s"));
}

TEST_F(CliTest, ExplainGoesFromGraphToAssembly) {
  ASSERT_EQ(Run({"explain", "abcd"}), 0) << error();
  size_t last = 0;
  for (const char* part : {"time per kernel", "the graph", "the partition", "schedule of quick",
                           "source of quick", "assembly of quick", "schedule of slow"}) {
    const size_t found = out().find(part);
    ASSERT_NE(found, std::string::npos) << part;
    EXPECT_GT(found, last) << part;
    last = found;
  }
}

TEST_F(CliTest, ExplainShowsRefusedSchedules) {
  ASSERT_EQ(Run({"explain", "train_step", "--kernel", "slow"}), 0) << error();
  EXPECT_THAT(out(),
              HasSubstr("refused schedule\nsplit 0 3\nelement 7 of out2 gets another value"));
  ASSERT_EQ(Run({"explain", "train_step", "--kernel", "quick"}), 0) << error();
  EXPECT_THAT(out(), Not(HasSubstr("refused")));
}

TEST_F(CliTest, ExplainSaysWhatBecameOfSettings) {
  ASSERT_EQ(Run({"explain", "train_step", "--kernel", "quick"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("\ntuned     stage 0 form=panel lanes=8; stage 1 form=scalar "
                               "(ignored: polish=3)\n"));
  ASSERT_EQ(Run({"explain", "train_step", "--kernel", "slow"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("\ntuned     no; the stored setting cannot be used: stage 0: lanes "
                               "is 5 (ignored: polish=3)\n"));
}

TEST_F(CliTest, ExplainShowsTheRoofline) {
  ASSERT_EQ(Run({"explain", "train_step", "--kernel", "quick"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex(
                         "\nroofline  1.00 .*s, limited by compute; the kernel reaches 0% of it"));
  ASSERT_EQ(Run({"explain", "train_step", "--kernel", "slow"}), 0) << error();
  EXPECT_THAT(out(), Not(HasSubstr("roofline")));
}

TEST_F(CliTest, TuneMovesSettings) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/settings-", getpid());
  ASSERT_EQ(Run({"tune", "export", file}), 0) << error();
  EXPECT_EQ(out(), "wrote 7 settings\n");
  ASSERT_EQ(Run({"tune", "import", file}), 0) << error();
  EXPECT_EQ(out(), "added 1 settings, replaced 2 by faster ones, kept 3\n");
  ASSERT_EQ(Run({"tune", "import", file, "--json"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("\"replaced\": 2"));
  std::ofstream(file) << "garbage";
  EXPECT_EQ(Run({"tune", "import", file}), 1);
  EXPECT_THAT(error(), HasSubstr(file + ": line 1: not settings"));
  unlink(file.c_str());
  EXPECT_EQ(Run({"tune", "import", file}), 1);
  EXPECT_THAT(error(), HasSubstr("cannot read the file"));
  EXPECT_EQ(Run({"tune", "export", file + "/none"}), 1);
  EXPECT_THAT(error(), HasSubstr("cannot write the file"));
  EXPECT_EQ(Run({"tune", "export"}), 2);
}

TEST_F(CliTest, TuneMovesSettingsThroughPipes) {
  ASSERT_EQ(Run({"tune", "export", "-"}), 0) << error();
  const std::string text = out();
  EXPECT_THAT(text, HasSubstr("kiln settings 1"));
  EXPECT_THAT(text, Not(HasSubstr("wrote")));
  EXPECT_NE(access("-", F_OK), 0);
  std::istringstream in(text);
  std::streambuf* const before = std::cin.rdbuf(in.rdbuf());
  EXPECT_EQ(Run({"tune", "import", "-"}), 0) << error();
  std::cin.rdbuf(before);
  EXPECT_THAT(out(), HasSubstr("added 1 settings"));
}

TEST_F(CliTest, TuneListShowsWhatRuns) {
  ASSERT_EQ(Run({"tune", "list"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("ID +PROGRAM +USER +DEVICE +KERNEL +PROGRESS +NOW +ROOFLINE "
                                   "+DONE +SINCE\n"));
  EXPECT_THAT(out(), ContainsRegex("3 +abcdef012345 train.*step +ann +cpu:0,cpu:1 +matmul_1 +1 of "
                                   "3, round 2, 48 tried +1.00 ms +500 .*s .memory. +25% +30 s\n"));
  EXPECT_THAT(out(), ContainsRegex("4 +fedcba +\\(daemon\\) +cuda:0 +begins, paused"));
  ASSERT_EQ(Run({"tune", "list", "--json"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("\"paused\": true"));
  programs_.tunes = false;
  ASSERT_EQ(Run({"tune", "list"}), 0) << error();
  EXPECT_EQ(out(), "nothing is being tuned\n");
}

TEST_F(CliTest, TuneStopEndsOne) {
  ASSERT_EQ(Run({"tune", "stop", "3"}), 0) << error();
  EXPECT_EQ(programs_.stopped.id(), 3);
  EXPECT_EQ(out(), "stopped the search for abcdef012345 of ann\n");
  ASSERT_EQ(Run({"tune", "stop", "4"}), 0) << error();
  EXPECT_EQ(out(), "stopped the search for abcdef012345 of (daemon)\n");
  EXPECT_EQ(Run({"tune", "stop", "9"}), 1);
  EXPECT_THAT(error(), HasSubstr("no tuning has the number 9"));
  EXPECT_EQ(Run({"tune", "stop"}), 2);
  EXPECT_EQ(Run({"tune", "stop", "it"}), 2);
}

TEST_F(CliTest, TuneShowsALineForEachKernel) {
  ASSERT_EQ(Run({"tune", "train_step", "--seconds", "5", "--width", "2", "--force"}), 0) << error();
  EXPECT_EQ(programs_.tuned.digest(), "abcdef0123456789");
  EXPECT_EQ(programs_.tuned.seconds(), 5);
  EXPECT_EQ(programs_.tuned.beam_width(), 2);
  EXPECT_TRUE(programs_.tuned.force());
  EXPECT_THAT(out(),
              ContainsRegex("KERNEL +BEFORE +NOW +RATIO +ROOFLINE +SHARE\n"
                            "matmul_1 +2.00 ms +1.00 ms +2.00 +500 .*s .memory. +75%  faster\n"
                            "sum_2 +- +- +- +- +25%  failed: no.*runner\n"
                            "The program has the faster kernels when it is next defined.\n$"));
  EXPECT_FALSE(programs_.tuned.kernels_only());
  ASSERT_EQ(Run({"tune", "train_step", "--kernels_only"}), 0) << error();
  EXPECT_TRUE(programs_.tuned.kernels_only());
  ASSERT_EQ(Run({"tune", "train_step", "--json"}), 0) << error();
  EXPECT_EQ(programs_.tuned.seconds(), 60);
  EXPECT_EQ(programs_.tuned.beam_width(), 4);
  EXPECT_FALSE(programs_.tuned.force());
  EXPECT_THAT(out(), HasSubstr("\"state\":\"SEARCHING\""));
  EXPECT_EQ(Run({"tune", "train_step", "--seconds", "1"}), 1);
  EXPECT_THAT(error(), HasSubstr("already tuning"));
  EXPECT_EQ(Run({"tune", "nothing"}), 1);
  EXPECT_EQ(Run({"tune"}), 2);
  EXPECT_EQ(Run({"tune", "train_step", "--width", "0"}), 2);
  EXPECT_EQ(Run({"tune", "train_step", "--wide"}), 2);
}

TEST_F(CliTest, ExplainOneKernel) {
  ASSERT_EQ(Run({"explain", "train_step", "--kernel", "slow"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("assembly of slow"));
  EXPECT_THAT(out(), Not(HasSubstr("quick")));
  EXPECT_EQ(Run({"explain", "train_step", "--kernel", "none"}), 1);
  EXPECT_THAT(error(), HasSubstr("has no kernel none"));
}

TEST_F(CliTest, ExplainPassesShowsNothingElse) {
  EXPECT_EQ(Run({"explain", "train_step", "--passes", "--summary"}), 2);
  EXPECT_EQ(Run({"explain", "train_step", "--passes", "--kernel", "slow"}), 2);
  EXPECT_THAT(error(), HasSubstr("--passes cannot be used with --summary"));
}

TEST_F(CliTest, ExplainSummaryHasNoCode) {
  ASSERT_EQ(Run({"explain", "train_step", "--summary"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("the partition"));
  EXPECT_THAT(out(), Not(HasSubstr("source of")));
}

TEST_F(CliTest, ExplainPassesShowsThemAlone) {
  ASSERT_EQ(Run({"explain", "train_step", "--passes"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("simplify +off\nnormalize +2.00 ms\n"));
  EXPECT_THAT(out(), HasSubstr("== after normalize\nthe normal graph\n"));
  EXPECT_THAT(out(), Not(HasSubstr("the partition")));
}

TEST_F(CliTest, AnUnknownProgramIsNamedBesideThoseThereAre) {
  EXPECT_EQ(Run({"explain", "nothing"}), 1);
  EXPECT_THAT(error(),
              HasSubstr("there is no program nothing; the daemon has abcdef012345 (train_step)"));
}

TEST_F(CliTest, Cache) {
  ASSERT_EQ(Run({"cache"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("42 in 1.00 MiB"));
  ASSERT_EQ(Run({"cache", "clear"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("deleted 42 kernels"));
  EXPECT_EQ(Run({"cache", "burn"}), 2);
}

TEST_F(CliTest, TopShowsUsersWhoHaveUsedADevice) {
  ASSERT_EQ(Run({"top", "--interval=0.1", "--count", "2"}), 0) << error();
  EXPECT_EQ(admin_.calls_, 3);  // before the first table, and for each
  EXPECT_THAT(out(), ContainsRegex("DEVICE +LOAD +QUEUE"));
  EXPECT_THAT(out(), ContainsRegex("cpu:0 +50% .*failed: the fan fell off"));
  EXPECT_THAT(out(), HasSubstr("ann\\x1B[2J"));
  EXPECT_THAT(out(), Not(HasSubstr("idle")));
  // Only a terminal is cleared.
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, TopGoesOnWhenTheDaemonIsAwayForAMoment) {
  admin_.fail_at_ = 2;
  ASSERT_EQ(Run({"top", "--interval=0.1", "--count=2"}), 0) << error();
  EXPECT_THAT(error(), HasSubstr("trying again"));
  EXPECT_THAT(out(), ContainsRegex("USER +DEVICE +SHARE"));
}

// gRPC cancels calls that it can no longer answer when a daemon stops.
TEST_F(CliTest, TopGoesOnWhenTheDaemonEndsWhileItIsAsked) {
  admin_.fail_at_ = 2;
  admin_.failure_ = grpc::Status::CANCELLED;
  ASSERT_EQ(Run({"top", "--interval=0.1", "--count=2"}), 0) << error();
  EXPECT_THAT(error(), HasSubstr("stopped during the call"));
  EXPECT_THAT(error(), HasSubstr("trying again"));
}

TEST_F(CliTest, TopIsSortedAndCut) {
  ASSERT_EQ(Run({"top", "--interval=0.1", "--count=1", "--sort", "user", "--limit", "1"}), 0)
      << error();
  EXPECT_THAT(out(), HasSubstr("ann\\x1B[2J"));
  EXPECT_EQ(Run({"top", "--interval=0.1", "--count=1", "--sort", "age"}), 2);
  EXPECT_THAT(error(), HasSubstr("there is no column age"));
  EXPECT_EQ(Run({"top", "--watch"}), 2);
  EXPECT_THAT(error(), HasSubstr("takes only --sort and --limit"));
}

TEST_F(CliTest, TopSaysWhatItTakes) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"top", "--count=0"},
                                             {"top", "--interval", "nan"},
                                             {"top", "--interval=0"},
                                             {"top", "x"}}) {
    EXPECT_EQ(Run(wrong), 2) << wrong.back();
  }
}

TEST_F(CliTest, Quotas) {
  ASSERT_EQ(Run({"quota"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("USER +RESOURCE +DEVICE +USED +LIMIT"));
  EXPECT_THAT(out(), ContainsRegex("ann +device_memory +cpu:0 +1.50 KiB +-\n"));
  EXPECT_THAT(out(), ContainsRegex("ann +sessions +- +3 +8\n"));
  EXPECT_THAT(out(), ContainsRegex("bob +sessions +- +3 +4 .default.\n"));
  ASSERT_EQ(Run({"quota", "--json"}), 0);
  EXPECT_THAT(out(), HasSubstr("\"resource\": \"sessions\""));
}

TEST_F(CliTest, SettingQuotas) {
  ASSERT_EQ(Run({"quota", "set", "ann", "device_memory=4GiB", "sessions=9", "programs=none",
                 "buffers=default"}),
            0)
      << error();
  EXPECT_THAT(out(), ContainsRegex("ann +sessions +- +3 +9\n"));
  EXPECT_EQ(admin_.set_quota.user(), "ann");
  EXPECT_EQ(admin_.set_quota.limits_size(), 3);
  EXPECT_EQ(admin_.set_quota.limits().at("device_memory"), uint64_t{4} << 30);
  EXPECT_EQ(admin_.set_quota.limits().at("sessions"), 9);
  EXPECT_EQ(admin_.set_quota.limits().at("programs"), 0);
  ASSERT_EQ(admin_.set_quota.defaults_size(), 1);
  EXPECT_EQ(admin_.set_quota.defaults(0), "buffers");
  EXPECT_THAT(error(), HasSubstr("no user is called ann yet"));
  ASSERT_EQ(Run({"quota", "set", "idle", "sessions=9"}), 0) << error();
  EXPECT_EQ(error(), "");
  EXPECT_EQ(Run({"quota", "set", "idle", "weight=-5"}), 2);
  EXPECT_THAT(error(), HasSubstr("`weight=-5`: a limit is a number such as 200"));
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"quota", "list"},
                                             {"quota", "set", "ann"},
                                             {"quota", "set", "ann", "sessions"},
                                             {"quota", "set", "ann", "sessions="},
                                             {"quota", "set", "ann", "=8"},
                                             {"quota", "set", "ann", "sessions=many"}}) {
    EXPECT_EQ(Run(wrong), 2) << wrong.back();
  }
}

TEST(UsageTable, SharesAndRatesAreOfTheTimeBetweenTheSamples) {
  UsageSample before, now;
  const auto add = [](UsageSample& sample, const std::string& user, double seconds, uint64_t runs) {
    v1::User* added = sample.users.add_users();
    added->set_name(user);
    v1::DeviceUse* use = added->add_devices();
    use->set_device("cpu:0");
    use->set_device_seconds(seconds);
    use->set_runs(runs);
  };
  before.seconds = 10;
  now.seconds = 12;
  add(before, "ann", 5, 100);
  add(now, "ann", 5.5, 140);
  add(now, "bob", 1, 3);  // new
  add(before, "eve", 9, 1000);
  add(now, "eve", 1, 10);  // the daemon has restarted
  std::ostringstream out;
  UsageTable(before, now).Print(out);
  EXPECT_THAT(out.str(), ContainsRegex("\nbob +cpu:0 +50% +1.5 .*\nann +cpu:0 +25% +20.0 "));
  EXPECT_THAT(out.str(), ContainsRegex("\neve +cpu:0 +0% +0.0 "));
}

TEST_F(CliTest, AuditAsJsonIsALineForEachEvent) {
  ASSERT_EQ(Run({"audit", "--json"}), 0) << error();
  const std::vector<std::string> lines = absl::StrSplit(out(), '\n');
  ASSERT_EQ(lines.size(), 3);  // the last one is empty
  EXPECT_THAT(lines[0], HasSubstr("\"user\":\"ann\""));
  EXPECT_THAT(lines[1], HasSubstr("\"user\":\"bob\""));
  for (const int i : {0, 1}) {
    EXPECT_EQ(lines[i].front(), '{');
    EXPECT_EQ(lines[i].back(), '}');
  }
}

TEST_F(CliTest, UsersAreAddedWithWhatTheyAreKnownBy) {
  ASSERT_EQ(Run({"user", "add", "ann", "--role=viewer"}), 0) << error();
  EXPECT_EQ(out(), "kiln_1_2\n");
  EXPECT_TRUE(admin_.add_user.identities().empty());
  ASSERT_EQ(Run({"user", "add", "ann", "--by", "system", "--by=certificate"}), 0) << error();
  EXPECT_THAT(admin_.add_user.identities(), ElementsAre("system", "certificate"));
  EXPECT_EQ(Run({"user", "add", "ann", "--system"}), 2);
}

TEST_F(CliTest, TokensAreAddedListedAndRevoked) {
  ASSERT_EQ(Run({"user", "token", "add", "ann"}), 0) << error();
  EXPECT_EQ(out(), "kiln_3_4\n");
  EXPECT_EQ(admin_.add_token.valid_seconds(), 0);
  for (const auto& [text, seconds] :
       std::map<std::string, uint64_t>{{"30d", 30 * 86400}, {"12h", 12 * 3600}, {"1h30m", 5400}}) {
    ASSERT_EQ(Run({"user", "token", "add", "--expires", text, "ann"}), 0) << error();
    EXPECT_EQ(admin_.add_token.valid_seconds(), seconds) << text;
  }
  for (const char* text : {"0d", "-1h", "soon", "", "36501d", "3"})
    EXPECT_EQ(Run({"user", "token", "add", "ann", std::string("--expires=") + text}), 2) << text;
  ASSERT_EQ(Run({"user", "token", "list", "idle"}), 0) << error();
  EXPECT_THAT(out(), ContainsRegex("1234 +1970-01-02 +1970-01-04"));
  EXPECT_EQ(Run({"user", "token", "list", "nobody"}), 1);
  ASSERT_EQ(Run({"user", "token", "revoke", "1"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("ann's sessions continue"));
  EXPECT_THAT(error(), HasSubstr("`kiln user token add ann` makes one"));
  EXPECT_EQ(Run({"user", "token", "revoke", "2"}), 1);
  EXPECT_EQ(Run({"user", "token"}), 2);
}

TEST_F(CliTest, RevokingSaysHowManySessionsEnded) {
  ASSERT_EQ(Run({"user", "revoke", "ann"}), 0) << error();
  EXPECT_EQ(out(), "revoked ann; closed 1 session\n");
  ASSERT_EQ(Run({"user", "revoke", "bob"}), 0) << error();
  EXPECT_EQ(out(), "revoked bob; closed 2 sessions\n");
}

TEST_F(CliTest, Drain) {
  ASSERT_EQ(Run({"drain"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("the daemon has stopped"));
  ASSERT_EQ(Run({"drain", "cpu:0"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("cpu:0: no new sessions"));
  ASSERT_EQ(Run({"drain", "--undo", "cpu:0"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("cpu:0 in use again"));
  EXPECT_EQ(Run({"drain", "cpu:7"}), 1);
  EXPECT_EQ(Run({"drain", "cpu:0", "cpu:1"}), 2);
  EXPECT_EQ(Run({"drain", "--all"}), 2);
}

TEST_F(CliTest, WrongUsageIsTwoAndHelpIsZero) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"fly"}), 2);
  EXPECT_THAT(error(), HasSubstr("unknown command fly"));
  EXPECT_EQ(Run({"devices", "extra"}), 2);
  EXPECT_THAT(error(), HasSubstr("unexpected: extra"));
  for (const Command& command : AllCommands()) {
    EXPECT_EQ(Run({std::string(command.name), "--help"}), 0);
    EXPECT_THAT(out(), HasSubstr("usage: kiln " + std::string(command.name)));
  }
}

TEST_F(CliTest, VersionIsThisProgramsAndTheDaemons) {
  ASSERT_EQ(Run({"version"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("kiln   " + ClientVersion() + "\nkilnd  "));
  ASSERT_EQ(Run({"--version"}), 0);
  EXPECT_EQ(out(), "kiln " + ClientVersion() + "\n");
}

TEST(Cli, VersionIsKnownWithoutADaemon) {
  std::ostringstream out, error;
  EXPECT_EQ(Main({"version", "--address", "unix:/nowhere/kilnd.sock"}, out, error), 1);
  EXPECT_EQ(out.str(), "kiln   " + ClientVersion() + "\n");
  EXPECT_THAT(error.str(), HasSubstr("no kilnd answers"));
}

TEST(Completion, WordsAreThoseOfTheHelp) {
  const Command command = {"tune", "[export FILE|list]", "",
                           "  PROGRAM       a digest\n"
                           "    --seconds N   for all kernels\n"
                           "  import FILE   stores them\n"
                           "    words in the middle\n"
                           "The last line.\n",
                           nullptr};
  const std::vector<std::string> words = WordsOf(command);
  EXPECT_EQ(absl::StrJoin(words, " "),
            "export list --seconds import --json --json_schema --color --address --token --ca "
            "--certificate --key --help");
}

TEST(Completion, EachShellGetsEveryCommand) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::ostringstream out, error;
    ASSERT_EQ(Main({"completion", shell}, out, error), 0) << error.str();
    for (const Command& command : AllCommands())
      EXPECT_THAT(out.str(), HasSubstr(std::string(command.name))) << shell;
  }
  std::ostringstream out, error;
  EXPECT_EQ(Main({"completion", "ksh"}, out, error), 2);
  EXPECT_THAT(error.str(), HasSubstr("expected bash, zsh or fish"));
}

TEST(Cli, AnUnknownCommandIsOneLineWithTheMostSimilarOne) {
  std::ostringstream out, error;
  EXPECT_EQ(Main({"tnue"}, out, error), 2);
  EXPECT_EQ(error.str(), "kiln: unknown command tnue; did you mean `kiln tune`?\n");
  error.str("");
  EXPECT_EQ(Main({"photosynthesis"}, out, error), 2);
  EXPECT_EQ(error.str(), "kiln: unknown command photosynthesis; `kiln help` lists the commands\n");
  error.str("");
  EXPECT_EQ(Main({std::string(100000, 'x')}, out, error), 2);
  EXPECT_THAT(error.str(), HasSubstr("`kiln help`"));
}

TEST(Cli, OutputThatCannotBeWrittenIsAFailure) {
  std::ofstream full("/dev/full");
  std::ostringstream error;
  EXPECT_EQ(Main({"completion", "bash"}, full, error), 1);
  EXPECT_THAT(error.str(), HasSubstr("could not be written"));
}

TEST_F(CliTest, StatusIsOneScreenWithTheProblems) {
  admin_.version = "9.1.0";
  ASSERT_EQ(Run({"status"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("kilnd 9.1.0 at " + socket_ + ", up 5 h\n"));
  EXPECT_THAT(out(), ContainsRegex("cpu:0 +Some CPU +50% .*failed: the fan fell off"));
  EXPECT_THAT(out(), ContainsRegex("\nsessions +1 open, 1 connected; they hold 4.00 KiB\n"));
  EXPECT_THAT(out(),
              ContainsRegex("\ntuner +2 searches: .*of ann, 25%; .*the daemon itself, paused"));
  EXPECT_THAT(out(),
              ContainsRegex("\nFAIL +cpu:0 +Some CPU, failed: the fan fell off. It is not used"));
  EXPECT_THAT(out(), ContainsRegex("\nwarn +version +kilnd 9.1.0"));
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
  ASSERT_EQ(Run({"status", "--json"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("\"verdict\": \"FAIL\""));
  EXPECT_EQ(Run({"status", "--sort", "load"}), 2);
  EXPECT_THAT(error(), HasSubstr("takes only --watch"));
}

TEST_F(CliTest, TablesAreSortedAndCut) {
  ASSERT_EQ(Run({"kernels", "--sort", "median"}), 0) << error();
  EXPECT_LT(out().find("feedslow"), out().find("feedquick"));
  ASSERT_EQ(Run({"kernels", "--sort=-median"}), 0) << error();
  EXPECT_LT(out().find("feedquick"), out().find("feedslow"));
  ASSERT_EQ(Run({"kernels", "--sort", "kernel", "--limit", "1"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr("feedquick"));
  EXPECT_THAT(out(), Not(HasSubstr("feedslow")));
  EXPECT_THAT(out(), HasSubstr("\nand 1 more\n"));
  ASSERT_EQ(Run({"sessions", "--sort", "device_time"}), 0) << error();
  EXPECT_EQ(Run({"sessions", "--sort", "age"}), 2);
  EXPECT_THAT(error(), HasSubstr("there is no column age; --sort takes one of: session, user"));
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"sessions", "--limit", "0"},
                                             {"sessions", "--limit"},
                                             {"sessions", "--sort="},
                                             {"sessions", "--json", "--limit", "1"},
                                             {"sessions", "close", "s12", "--limit", "1"},
                                             {"cache", "--sort", "kernels"},
                                             {"version", "--watch"},
                                             {"sessions", "--watch=0"},
                                             {"sessions", "--watch=soon"},
                                             {"sessions", "--color", "blue"}}) {
    EXPECT_EQ(Run(wrong), 2) << wrong.back();
  }
  EXPECT_EQ(sessions_.closed, "");
}

// A stream that breaks after some screens, as a pipe does whose reader has ended.
class Screens : public std::stringbuf {
 public:
  explicit Screens(int screens_max) : left_(screens_max) {}
  int sync() override { return --left_ > 0 ? 0 : -1; }

 private:
  int left_;
};

TEST_F(CliTest, WatchShowsTheTableUntilItsReaderIsGone) {
  Screens screens(3);
  std::ostream out(&screens);
  EXPECT_EQ(Main({"devices", "--watch", "0.1", "--address=" + socket_}, out, error_, process_), 1);
  size_t tables = 0;
  for (size_t at = 0; (at = screens.str().find("MODEL", at)) != std::string::npos; ++at) ++tables;
  EXPECT_EQ(tables, 3);
  EXPECT_THAT(screens.str(), HasSubstr("kiln devices at " + socket_ + ", "));
}

TEST_F(CliTest, ColorsRepeatWhatTheTextSays) {
  const std::string red = "\x1b[31mfailed: the fan fell off\x1b[0m";
  ASSERT_EQ(Run({"devices", "--color", "always"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr(red));
  process_.terminal = true;
  ASSERT_EQ(Run({"devices"}), 0) << error();
  EXPECT_THAT(out(), HasSubstr(red));
  ASSERT_EQ(Run({"devices", "--color=never"}), 0) << error();
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
  process_ = FakeProcess({{"NO_COLOR", "1"}});
  process_.terminal = true;
  ASSERT_EQ(Run({"devices"}), 0) << error();
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
  process_ = FakeProcess({{"TERM", "dumb"}});
  process_.terminal = true;
  ASSERT_EQ(Run({"devices"}), 0) << error();
  EXPECT_THAT(out(), Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, AuditVerifyNamesTheFirstWrongLine) {
  ASSERT_EQ(Run({"audit", "verify"}), 0) << error();
  EXPECT_EQ(
      out(),
      "12 events are as they were written; 3 before them, of a version without seals, are not "
      "sealed\nthe last one is event 15 with the seal 5ea1\n");
  admin_.tampered = "was changed";
  EXPECT_EQ(Run({"audit", "verify"}), 1);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(error(), "kiln audit: audit.jsonl:7: this line was changed\n");
  EXPECT_EQ(Run({"audit", "verify", "--json"}), 1);
  EXPECT_THAT(out(), HasSubstr("\"line\": 7"));
}

TEST_F(CliTest, ExplainAsAPageIsEscapedAndLoadsNothing) {
  programs_.name = "<script>alert(1)</script>\"&'";
  const std::string file = absl::StrCat(::testing::TempDir(), "/explain-", getpid(), ".html");
  ASSERT_EQ(Run({"explain", "abcd", "--html", file}), 0) << error();
  EXPECT_EQ(out(), "wrote " + file + "\n");
  std::stringstream page;
  page << std::ifstream(file).rdbuf();
  for (const char* part :
       {"&lt;script&gt;alert(1)&lt;/script&gt;&quot;&amp;&#39;", "assembly of slow",
        "the partition", "default-src 'none'", "<a href=\"#kernel2\">slow</a>"})
    EXPECT_THAT(page.str(), HasSubstr(part));
  for (const char* part : {"<script", "http://", "https://", "src=", "url("})
    EXPECT_THAT(page.str(), Not(HasSubstr(part)));
  // The slow kernel comes first in the table.
  EXPECT_LT(page.str().find("#kernel2"), page.str().find("#kernel1"));
  EXPECT_EQ(Run({"explain", "abcd", "--html", "/dev/full"}), 1);
  EXPECT_THAT(error(), HasSubstr("cannot write the file /dev/full"));
  EXPECT_EQ(Run({"explain", "abcd", "--html", file, "--summary"}), 2);
  unlink(file.c_str());
}

// The outputs of commands on terminals of two widths: a change of a table shows up in review.
TEST_F(CliTest, OutputsAreThoseOfTheGoldenFiles) {
  admin_.version = "0.2.0";
  process_ = FakeProcess();
  const std::pair<std::string, std::vector<std::string>> kOutputs[] = {
      {"devices", {"devices"}},
      {"sessions", {"sessions"}},
      {"programs", {"programs"}},
      {"kernels", {"kernels"}},
      {"explain", {"explain", "abcd"}},
      {"explain_summary", {"explain", "abcd", "--summary"}},
      {"cache", {"cache"}},
      {"tune", {"tune", "abcd"}},
      {"tune_list", {"tune", "list"}},
      {"user_list", {"user", "list"}},
      {"quota", {"quota"}},
      {"status", {"status"}}};
  for (const int columns : {80, 120}) {
    process_.columns = columns;
    for (const auto& [name, arguments] : kOutputs) {
      ASSERT_EQ(Run(arguments), 0) << error();
      const std::string text =
          absl::StrReplaceAll(out(), {{socket_, "unix:/kilnd.sock"}, {ClientVersion(), "0.2.0"}});
      const std::string path = absl::StrCat(KILN_GOLDEN, "/", name, ".", columns, ".txt");
      if (std::getenv("KILN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
      std::stringstream golden;
      golden << std::ifstream(path).rdbuf();
      EXPECT_EQ(text, golden.str())
          << path << " differs; KILN_UPDATE_GOLDEN=1 writes the files anew";
      // Code and messages are not broken.
      if (name == "explain") continue;
      const std::vector<std::string> lines = absl::StrSplit(text, '\n');
      for (const std::string& line : lines)
        EXPECT_LE(Width(line), static_cast<size_t>(columns)) << path << ": " << line;
    }
  }
}

TEST(Json, NumbersAreNumbers) {
  v1::Device device;
  device.set_memory_total_bytes(~uint64_t{0});
  device.set_utilization(0.1);
  device.set_health(v1::Device::FAILED);
  EXPECT_EQ(
      ToJson(device, /*on_many_lines=*/false),
      "{\"name\":\"\",\"model\":\"\",\"target\":\"\",\"memory_total_bytes\":"
      "18446744073709551615,\"memory_used_bytes\":0,\"compute_units\":0,\"health\":\"FAILED\","
      "\"health_message\":\"\",\"queue_length\":0,\"utilization\":0.1}");
  device.set_utilization(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(ToJson(device, true), HasSubstr("\n \"utilization\": null\n}\n"));
  v1::SetQuotaRequest quota;
  (*quota.mutable_limits())["a\"b"] = 7;
  EXPECT_EQ(ToJson(quota, false), "{\"user\":\"\",\"limits\":{\"a\\\"b\":7},\"defaults\":[]}");
  v1::GetDaemonResponse daemon;
  daemon.mutable_started()->set_seconds(1'700'000'000);
  daemon.mutable_started()->set_nanos(500'000'000);
  EXPECT_THAT(ToJson(daemon, false), HasSubstr("\"started\":\"2023-11-14T22:13:20.5Z\""));
  v1::ExportSettingsResponse settings;
  settings.set_text("a\xff");
  EXPECT_THAT(ToJson(settings, false), HasSubstr("\"text\":\"Yf8=\""));
}

TEST(Json, TextsAreEscaped) {
  EXPECT_EQ(JsonString("a\"\\\n\x1b\x7f"), "\"a\\\"\\\\\\n\\u001b\\u007f\"");
  EXPECT_EQ(JsonString("ä€😀"), "\"\\u00e4\\u20ac\\ud83d\\ude00\"");
  // Bytes that are not UTF-8: a stray one, a cut character, a surrogate, an overlong zero.
  EXPECT_EQ(JsonString("\xff"), "\"\\ufffd\"");
  EXPECT_EQ(JsonString("\xe2\x82"), "\"\\ufffd\\ufffd\"");
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
}

TEST(Json, EveryCommandHasASchemaOrSaysWhyNot) {
  for (const Command& command : AllCommands()) {
    std::ostringstream out, error;
    const int status = Main({std::string(command.name), "--json_schema"}, out, error);
    if (command.name == "user") {
      EXPECT_EQ(status, 2);
      EXPECT_THAT(error.str(), HasSubstr("name one of `kiln user add`, `kiln user list`"));
    } else if (command.connects_itself) {
      EXPECT_EQ(status, 2) << command.name;
      EXPECT_THAT(error.str(), HasSubstr("there is no JSON of this command"));
    } else {
      EXPECT_EQ(status, 0) << command.name << error.str();
      EXPECT_THAT(out.str(), HasSubstr("\"title\": \"kiln " + std::string(command.name)));
    }
  }
  std::ostringstream out, error;
  ASSERT_EQ(Main({"tune", "list", "--json_schema"}, out, error), 0);
  EXPECT_THAT(out.str(), HasSubstr("\"title\": \"kiln tune list --json\""));
}

TEST(Table, ARowIsStreamedInColumnsThatFitTheTerminal) {
  const std::vector<Cell> row = {"a_kernel_with_a_long_name", "1.00 ms",
                                 "failed: the compiler has said something long"};
  std::ostringstream wide, narrow;
  const std::vector<StreamedTable::Column> columns = {
      {"kernel", 30, false}, {"now", 8, true}, {"", 0, false}};
  StreamedTable(columns, 8, 16, wide).PrintRow(row, wide);
  EXPECT_EQ(wide.str(),
            "a_kernel_with_a_long_name        1.00 ms  failed: the compiler has said something "
            "long\n");
  SetColumnsMax(narrow, 40);
  const StreamedTable table(columns, 8, 16, narrow);
  table.PrintTitles(narrow);
  table.PrintRow(row, narrow);
  const std::vector<std::string> lines = absl::StrSplit(narrow.str(), '\n');
  for (const std::string& line : lines) EXPECT_LE(Width(line), 40) << line;
  EXPECT_THAT(narrow.str(), HasSubstr("1.00 ms"));
  EXPECT_LE(Width(table.OneLine(row, 10, narrow)), 30);
}

TEST(Table, IsAsWideAsTheTerminalAtMost) {
  Table table({"driver", ">devices", "why not more"});
  table.Add({"cuda", "0", "the driver is not installed; install version 525 or a newer one"});
  table.Add({"cpu", "12", ""});
  std::ostringstream wide, narrow;
  table.Print(wide);
  EXPECT_THAT(wide.str(), HasSubstr("cuda          0  the driver is not installed; install version "
                                    "525 or a newer one\n"));
  SetColumnsMax(narrow, 40);
  table.Print(narrow);
  EXPECT_EQ(narrow.str(),
            "DRIVER  DEVICES  WHY NOT MORE\n"
            "cuda          0  the driver is not\n"
            "                 installed; install\n"
            "                 version 525 or a newer\n"
            "                 one\n"
            "cpu          12\n");
}

TEST(Table, LongWordsAreBrokenBetweenCharactersAndNumbersStayWhole) {
  Table table({"name", ">bytes"});
  table.Add({"äöüäöüäöüäöüäöüäöüäöüäöüäöüäöü", "1234567890123"});
  std::ostringstream out;
  SetColumnsMax(out, 10);  // narrower than a column may become
  table.Print(out);
  EXPECT_EQ(out.str(),
            "NAME\n"
            "          BYTES\n"
            "äöüäöüäöüäöüäöüäöüäöüäöü\n"
            "äöüäöü\n"
            "  1234567890123\n");
}

TEST(Cli, NoDaemonSaysWhereItLookedAndWhatToDo) {
  std::ostringstream out, error;
  EXPECT_EQ(Main({"devices", "--address", "unix:/nowhere/kilnd.sock"}, out, error), 1);
  EXPECT_THAT(error.str(), HasSubstr("no kilnd answers at unix:/nowhere/kilnd.sock"));
  EXPECT_THAT(error.str(), HasSubstr("Start one with `kilnd`"));
}

TEST(FindProgramTest, SeveralDigestsAreAmbiguous) {
  v1::ListProgramsResponse programs;
  programs.add_programs()->set_digest("aa1");
  programs.add_programs()->set_digest("aa2");
  EXPECT_EQ(FindProgram(programs, "aa").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*FindProgram(programs, "aa2"), "aa2");
}

TEST(FindProgramTest, NamesSomeOfManyPrograms) {
  v1::ListProgramsResponse programs;
  for (int i = 0; i < 30; ++i) programs.add_programs()->set_digest(absl::StrCat("d", i));
  const std::string message(FindProgram(programs, "nope").status().message());
  EXPECT_THAT(message, HasSubstr("d7 () and 22 more; see `kiln programs`"));
  EXPECT_THAT(message, Not(HasSubstr("d8")));
}

TEST(FindProgramTest, TheNewestOfAName) {
  v1::ListProgramsResponse programs;
  for (int age : {3, 9, 5}) {
    v1::Program* program = programs.add_programs();
    program->set_digest(absl::StrCat("d", age));
    program->set_name("step");
    program->mutable_compiled()->set_seconds(age);
  }
  EXPECT_EQ(*FindProgram(programs, "step"), "d9");
}

TEST(Format, Quantities) {
  EXPECT_EQ(Bytes(12), "12 B");
  EXPECT_EQ(Bytes(1536), "1.50 KiB");
  EXPECT_EQ(Bytes(123ull << 20), "123 MiB");
  EXPECT_EQ(Duration(0), "-");
  EXPECT_EQ(Duration(8.3e-7), "830 ns");
  EXPECT_EQ(Duration(12.34e-6), "12.3 µs");
  EXPECT_EQ(Duration(90), "90.0 s");
  EXPECT_EQ(Duration(600), "10 min");
  EXPECT_EQ(Rate(2e9, 0.5, "FLOP"), "4.00 GFLOP/s");
  EXPECT_EQ(Rate(2e9, 0, "FLOP"), "-");
}

TEST(TableTest, ColumnsAlignByCharactersNotBytes) {
  Table table({"name", ">time"});
  table.Add({"a", "12 µs"});
  table.Add({"long", "1 s"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(), "NAME   TIME\na     12 µs\nlong    1 s\n");
}

}  // namespace
}  // namespace kiln::cli
