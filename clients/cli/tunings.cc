// kiln tune list | stop ID
#include "clients/cli/tunings.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
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

Cell AgeOf(const v1::Tuning& tuning, absl::Time now) {
  const absl::Duration age = now - absl::FromUnixSeconds(tuning.since().seconds());
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(age));
  return {absl::StrCat(seconds, " s"), static_cast<double>(seconds)};
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

Cell RooflineCell(const v1::TuneProgramResponse& progress) {
  if (progress.roofline_seconds() <= 0) return "-";
  return {absl::StrCat(Duration(progress.roofline_seconds()), " (", progress.roofline_limit(), ")"),
          progress.roofline_seconds()};
}

absl::Status ListTunings(Invocation& invocation) {
  const auto stub = v1::ProgramService::NewStub(invocation.channel);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListTuningsResponse answer;
  if (absl::Status status = invocation.Check(stub->ListTunings(&context, {}, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);
  Table table({"id", "program", "user", "device", "kernel", "progress", ">now", "roofline", ">done",
               ">since"});
  for (const v1::Tuning& tuning : answer.tunings()) {
    const v1::TuneProgramResponse& progress = tuning.progress();
    table.Add({CountCell(tuning.id()), NameOf(tuning), UserOf(tuning),
               absl::StrJoin(tuning.devices(), ","), progress.kernel(), ProgressOf(tuning),
               DurationCell(progress.seconds_now()), RooflineCell(progress),
               PercentCell(progress.fraction_done()), AgeOf(tuning, invocation.now())});
  }
  if (table.empty()) {
    invocation.out << "nothing is being tuned\n";
    return absl::OkStatus();
  }
  return invocation.PrintTable(table);
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
