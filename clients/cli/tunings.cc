// kiln tune list | stop ID
#include "clients/cli/tunings.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/program.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

constexpr char kDaemonsOwn[] = "(daemon)";

std::string NameOf(const v1::Tuning& tuning) {
  return tuning.name().empty() ? tuning.program()
                               : absl::StrCat(tuning.program(), " ", tuning.name());
}

std::string UserOf(const v1::Tuning& tuning) {
  return tuning.user().empty() ? kDaemonsOwn : tuning.user();
}

std::string AgeOf(const v1::Tuning& tuning) {
  const absl::Duration age = absl::Now() - absl::FromUnixSeconds(tuning.since().seconds());
  return absl::StrCat(std::max<int64_t>(0, absl::ToInt64Seconds(age)), " s");
}

std::string ProgressOf(const v1::Tuning& tuning) {
  const v1::TuneProgramResponse& progress = tuning.progress();
  std::string text = "begins";
  if (tuning.has_progress()) {
    text = absl::StrCat(progress.number(), " of ", progress.kernels(), ", round ", progress.round(),
                        ", ", progress.tried(), " tried");
  }
  if (tuning.paused()) absl::StrAppend(&text, ", paused");
  return text;
}

}  // namespace

absl::Status ListTunings(Invocation& invocation) {
  const auto stub = v1::ProgramService::NewStub(invocation.channel);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListTuningsResponse answer;
  if (absl::Status status = invocation.Check(stub->ListTunings(&context, {}, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  Table table({"id", "program", "user", "device", "kernel", "progress", ">done", ">since"});
  for (const v1::Tuning& tuning : answer.tunings()) {
    table.Add({absl::StrCat(tuning.id()), NameOf(tuning), UserOf(tuning),
               absl::StrJoin(tuning.devices(), ","), tuning.progress().kernel(), ProgressOf(tuning),
               Percent(tuning.progress().fraction_done()), AgeOf(tuning)});
  }
  if (table.empty()) {
    invocation.out << "nothing is being tuned\n";
    return absl::OkStatus();
  }
  table.Print(invocation.out);
  return absl::OkStatus();
}

absl::Status StopTuning(Invocation& invocation) {
  uint64_t id = 0;
  if (invocation.arguments.size() != 2 || !absl::SimpleAtoi(invocation.arguments[1], &id))
    return absl::InvalidArgumentError("`tune stop` needs one number; `kiln tune list` shows them");
  const auto stub = v1::ProgramService::NewStub(invocation.channel);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::StopTuningRequest request;
  request.set_id(id);
  v1::StopTuningResponse answer;
  if (absl::Status status = invocation.Check(stub->StopTuning(&context, request, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  invocation.out << "stopped the search for " << Printable(NameOf(answer.tuning())) << " of "
                 << Printable(UserOf(answer.tuning())) << '\n';
  return absl::OkStatus();
}

}  // namespace kiln::cli
