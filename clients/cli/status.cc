// kiln status: a daemon on one screen.
#include "clients/cli/status.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/findings.h"
#include "clients/cli/format.h"
#include "clients/cli/json.h"
#include "clients/cli/table.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "kiln/v1/device.grpc.pb.h"
#include "kiln/v1/program.grpc.pb.h"
#include "kiln/v1/session.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// The daemon's answers.
struct Overview {
  v1::GetDaemonResponse daemon;
  v1::ListDevicesResponse devices;
  v1::ListUsersResponse users;
  v1::ListSessionsResponse sessions;
  v1::ListFirstCallsResponse first_calls;
  v1::ListTuningsResponse tunings;
  v1::GetCacheResponse cache;
  std::vector<Finding> problems;
};

// Calls a method with an empty request. A daemon that does not know it leaves the answer empty.
template <typename Stub, typename Request, typename Answer>
absl::Status Ask(const Invocation& invocation, Stub& stub,
                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Answer*),
                 Answer* answer) {
  grpc::ClientContext context;
  SetDeadline(context);
  const grpc::Status status = (stub.*method)(&context, Request(), answer);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) return absl::OkStatus();
  return invocation.Check(status);
}

absl::Status AskForDaemon(const Invocation& invocation, v1::AdminService::Stub& stub,
                          Overview* overview) {
  grpc::ClientContext context;
  SetDeadline(context);
  absl::Status status = invocation.Check(stub.GetDaemon(&context, {}, &overview->daemon));
  if (!status.ok()) return status;
  const Finding found[] = {CertificateFinding(context, invocation.now()),
                           VersionFinding(overview->daemon)};
  for (const Finding& finding : found)
    if (finding.verdict != Verdict::kOk) overview->problems.push_back(finding);
  if (auto draining = DrainingFinding(overview->daemon))
    overview->problems.push_back(*std::move(draining));
  return absl::OkStatus();
}

absl::StatusOr<Overview> LookAtDaemon(const Invocation& invocation) {
  Overview overview;
  const auto admin = v1::AdminService::NewStub(invocation.channel);
  const auto devices = v1::DeviceService::NewStub(invocation.channel);
  const auto sessions = v1::SessionService::NewStub(invocation.channel);
  const auto programs = v1::ProgramService::NewStub(invocation.channel);
  using Admin = v1::AdminService::Stub;
  using Programs = v1::ProgramService::Stub;
  absl::Status status = AskForDaemon(invocation, *admin, &overview);
  if (status.ok())
    status = Ask(invocation, *devices, &v1::DeviceService::Stub::ListDevices, &overview.devices);
  if (status.ok()) status = Ask(invocation, *admin, &Admin::ListUsers, &overview.users);
  if (status.ok())
    status =
        Ask(invocation, *sessions, &v1::SessionService::Stub::ListSessions, &overview.sessions);
  if (status.ok())
    status = Ask(invocation, *programs, &Programs::ListFirstCalls, &overview.first_calls);
  if (status.ok()) status = Ask(invocation, *programs, &Programs::ListTunings, &overview.tunings);
  if (status.ok()) status = Ask(invocation, *admin, &Admin::GetCache, &overview.cache);
  if (!status.ok()) return status;
  for (Finding& finding : DeviceFindings(overview.devices))
    if (finding.verdict != Verdict::kOk) overview.problems.push_back(std::move(finding));
  return overview;
}

std::string Count(uint64_t count, const std::string& one, const std::string& many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string UsersText(const Overview& overview) {
  std::set<std::string> active;
  for (const v1::Session& session : overview.sessions.sessions()) active.insert(session.user());
  uint64_t added = 0;
  for (const v1::User& user : overview.users.users())
    if (!user.role().empty() && !user.has_revoked()) ++added;
  return absl::StrCat(
      Count(active.size(), "has a session", "have sessions"), "; ",
      added == 0 ? std::string("none was added") : Count(added, "was added", "were added"));
}

std::string SessionsText(const Overview& overview) {
  uint64_t connected = 0, bytes = 0;
  for (const v1::Session& session : overview.sessions.sessions()) {
    if (session.connected()) ++connected;
    bytes += session.memory_bytes();
  }
  const auto open = static_cast<uint64_t>(overview.sessions.sessions_size());
  if (open == 0) return "none is open";
  return absl::StrCat(open, " open, ", connected, " connected; they hold ", Bytes(bytes));
}

std::string QueueText(const Overview& overview) {
  uint64_t programs = 0, operations = 0;
  for (const v1::Device& device : overview.devices.devices()) programs += device.queue_length();
  for (const v1::User& user : overview.users.users())
    for (const v1::DeviceUse& use : user.devices()) operations += use.waiting();
  std::string text =
      absl::StrCat(Count(programs, "program waits", "programs wait"), " for devices, ",
                   Count(operations, "operation is", "operations are"), " unfinished");
  if (const auto first = static_cast<uint64_t>(overview.first_calls.first_calls_size()); first > 0)
    absl::StrAppend(&text, "; ", Count(first, "program is", "programs are"),
                    " compiled or run for the first time");
  return text;
}

std::string TunerText(const Overview& overview) {
  if (overview.tunings.tunings().empty()) return "no search runs";
  std::vector<std::string> searches;
  for (const v1::Tuning& tuning : overview.tunings.tunings()) {
    searches.push_back(absl::StrCat(
        tuning.name().empty() ? tuning.program() : tuning.name(), " of ",
        tuning.user().empty() ? "the daemon itself" : tuning.user(),
        tuning.paused() ? ", paused"
                        : absl::StrCat(", ", Percent(tuning.progress().fraction_done()))));
  }
  return absl::StrCat(Count(searches.size(), "search", "searches"), ": ",
                      absl::StrJoin(searches, "; "));
}

std::string CacheText(const v1::GetCacheResponse& cache) {
  return absl::StrCat(Count(cache.kernels(), "kernel", "kernels"), " in ", Bytes(cache.bytes()),
                      "; ", Count(cache.hits(), "hit", "hits"), ", ",
                      Count(cache.misses(), "miss", "misses"));
}

void PrintOverview(const Invocation& invocation, const Overview& overview, std::ostream& out) {
  const absl::Time started = absl::FromUnixSeconds(overview.daemon.started().seconds());
  out << "kilnd " << Printable(overview.daemon.version()) << " at " << invocation.address << ", up "
      << Duration(std::max(1.0, absl::ToDoubleSeconds(invocation.now() - started))) << "\n\n";
  Table devices({"device", "model", ">load", ">queue", ">memory", ">of", "health"});
  for (const v1::Device& device : overview.devices.devices()) {
    devices.Add({device.name(), device.model(), Percent(device.utilization()),
                 absl::StrCat(device.queue_length()), Bytes(device.memory_used_bytes()),
                 Bytes(device.memory_total_bytes()), HealthCell(device)});
  }
  devices.Print(out);
  out << '\n';
  const std::pair<const char*, std::string> lines[] = {{"users", UsersText(overview)},
                                                       {"sessions", SessionsText(overview)},
                                                       {"queue", QueueText(overview)},
                                                       {"tuner", TunerText(overview)},
                                                       {"cache", CacheText(overview.cache)}};
  Table facts({"", "now"});
  for (const auto& [name, text] : lines) facts.Add({name, text});
  facts.Print(out);
  out << '\n';
  if (overview.problems.empty()) {
    out << Colored("no problem was found", Color::kGood, out) << '\n';
    return;
  }
  Table problems({"", "subject", "problem, and what to do"});
  for (const Finding& problem : overview.problems)
    problems.Add({VerdictCell(problem.verdict), problem.subject, problem.text});
  problems.Print(out);
}

template <typename List>
std::vector<const google::protobuf::Message*> Pointers(const List& list) {
  std::vector<const google::protobuf::Message*> pointers;
  for (const auto& message : list) pointers.push_back(&message);
  return pointers;
}

std::string JsonOf(const Overview& overview) {
  JsonObject json;
  json.Add("daemon", overview.daemon);
  json.Add("devices", Pointers(overview.devices.devices()));
  json.Add("users", Pointers(overview.users.users()));
  json.Add("sessions", Pointers(overview.sessions.sessions()));
  json.Add("first_calls", Pointers(overview.first_calls.first_calls()));
  json.Add("tunings", Pointers(overview.tunings.tunings()));
  json.Add("cache", overview.cache);
  std::vector<JsonObject::Texts> problems;
  for (const Finding& problem : overview.problems) {
    problems.push_back({{"verdict", problem.verdict == Verdict::kFailure ? "FAIL" : "warn"},
                        {"subject", problem.subject},
                        {"text", problem.text}});
  }
  json.Add("problems", problems);
  return json.Text();
}

template <typename Message>
std::string ListOf() {
  return absl::StrCat(R"({"type": "array", "items": )", InnerSchemaOf(*Message::descriptor()), "}");
}

}  // namespace

std::string StatusSchema() {
  const std::pair<const char*, std::string> members[] = {
      {"daemon", InnerSchemaOf(*v1::GetDaemonResponse::descriptor())},
      {"devices", ListOf<v1::Device>()},
      {"users", ListOf<v1::User>()},
      {"sessions", ListOf<v1::Session>()},
      {"first_calls", ListOf<v1::FirstCall>()},
      {"tunings", ListOf<v1::Tuning>()},
      {"cache", InnerSchemaOf(*v1::GetCacheResponse::descriptor())},
      {"problems",
       R"({"type": "array", "items": {"type": "object", "properties": {"verdict": {"enum": ["warn", )"
       R"("FAIL"]}, "subject": {"type": "string"}, "text": {"type": "string"}}, "required": )"
       R"(["verdict", "subject", "text"], "additionalProperties": false}})"}};
  std::vector<std::string> properties, required;
  for (const auto& [name, schema] : members) {
    properties.push_back(absl::StrCat(JsonString(name), ": ", schema));
    required.push_back(JsonString(name));
  }
  return absl::StrCat(R"({"type": "object", "properties": {)", absl::StrJoin(properties, ", "),
                      R"(}, "required": [)", absl::StrJoin(required, ", "),
                      R"(], "additionalProperties": false})");
}

absl::Status RunStatus(Invocation& invocation) {
  if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) return status;
  const auto overview = LookAtDaemon(invocation);
  if (!overview.ok()) return overview.status();
  if (invocation.json) {
    invocation.out << JsonOf(*overview);
  } else {
    PrintOverview(invocation, *overview, invocation.out);
  }
  return absl::OkStatus();
}

}  // namespace kiln::cli
