// kiln trace [--seconds N] [-o FILE]
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/trace_json.h"
#include "kiln/v1/trace.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

constexpr double kTraceSecondsMax = 3600;
// For the last spans, after the trace has ended.
constexpr int kLastSpansSeconds = 30;
// About a gigabyte.
constexpr size_t kTraceSpansMax = 4'000'000;
constexpr char kStandardOutput[] = "-";

struct TraceOptions {
  double seconds = 5;
  std::string file = "trace.json";
};

absl::StatusOr<TraceOptions> ParseTraceOptions(const std::vector<std::string>& arguments) {
  TraceOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    if (name == "--seconds") {
      if (!value || !absl::SimpleAtod(*value, &options.seconds) || !(options.seconds > 0) ||
          options.seconds > kTraceSecondsMax)
        return absl::InvalidArgumentError("--seconds takes a time above 0, at most 3600");
    } else if (name == "-o" || name == "--output") {
      if (!value || value->empty())
        return absl::InvalidArgumentError(absl::StrCat(name, " takes a file; -: stdout"));
      options.file = *value;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unexpected: ", name));
    }
  }
  return options;
}

void Collect(const v1::TraceResponse& answer, CollectedTrace* trace) {
  if (answer.has_began()) {
    trace->began =
        absl::FromUnixSeconds(answer.began().seconds()) + absl::Nanoseconds(answer.began().nanos());
  }
  for (const v1::TraceSpan& span : answer.spans()) trace->spans.push_back(span);
  if (answer.dropped() == 0) return;
  CollectedTrace::Gap& gap = trace->gaps.emplace_back();
  gap.dropped = answer.dropped();
  if (trace->spans.empty()) return;
  const v1::TraceSpan& last = trace->spans.back();
  gap.after_nanoseconds =
      last.start_nanoseconds() + static_cast<int64_t>(last.duration_nanoseconds());
}

absl::Status WriteTo(Invocation& invocation, const std::string& file, const CollectedTrace& trace) {
  if (file == kStandardOutput) {
    WriteChromeTrace(trace, invocation.out);
    return absl::OkStatus();
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  WriteChromeTrace(trace, out);
  if (!out.flush())
    return absl::UnavailableError(absl::StrCat("cannot write the file ", Printable(file)));
  invocation.out << "wrote " << trace.spans.size() << " spans to " << Printable(file)
                 << "; open it at https://ui.perfetto.dev\n";
  return absl::OkStatus();
}

void ReportGaps(Invocation& invocation, const CollectedTrace& trace) {
  uint64_t dropped = 0;
  for (const CollectedTrace::Gap& gap : trace.gaps) dropped += gap.dropped;
  if (dropped == 0) return;
  invocation.error << dropped << " spans are missing: they came faster than they could be read\n";
}

}  // namespace

absl::Status RunTrace(Invocation& invocation) {
  const auto options = ParseTraceOptions(invocation.arguments);
  if (!options.ok()) return options.status();
  v1::TraceRequest request;
  const absl::Duration duration = absl::Seconds(options->seconds);
  request.mutable_duration()->set_seconds(absl::ToInt64Seconds(duration));
  request.mutable_duration()->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(duration - absl::Seconds(absl::ToInt64Seconds(duration)))));
  grpc::ClientContext context;
  SetDeadline(context, static_cast<int>(options->seconds) + kLastSpansSeconds);
  const auto stub = v1::TraceService::NewStub(invocation.channel);
  const auto reader = stub->Trace(&context, request);
  CollectedTrace trace{.address = invocation.address};
  v1::TraceResponse answer;
  while (reader->Read(&answer)) {
    if (invocation.json) {
      if (absl::Status status = invocation.PrintJsonLine(answer); !status.ok()) return status;
      continue;
    }
    Collect(answer, &trace);
    if (trace.spans.size() > kTraceSpansMax) {
      context.TryCancel();
      return absl::ResourceExhaustedError(
          absl::StrCat("there are more than ", kTraceSpansMax, " spans; trace a shorter time"));
    }
  }
  if (absl::Status status = invocation.Check(reader->Finish()); !status.ok()) return status;
  if (invocation.json) return absl::OkStatus();
  if (absl::Status status = WriteTo(invocation, options->file, trace); !status.ok()) return status;
  ReportGaps(invocation, trace);
  return absl::OkStatus();
}

}  // namespace kiln::cli
