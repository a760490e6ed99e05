// kiln tune PROGRAM [--seconds N] [--width N] [--force] [--kernels_only]
#include "clients/cli/tune_program.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/command.h"
#include "clients/cli/find_program.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/program.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

using Progress = v1::TuneProgramResponse;

constexpr char kClearLine[] = "\r\x1b[K";
// More than the daemon needs to end the batch of candidates that it has begun.
constexpr int kSecondsToEnd = 600;

struct TuneOptions {
  std::string program;
  uint32_t seconds = 60;
  uint32_t width = 4;
  bool force = false;
  bool kernels_only = false;
};

absl::StatusOr<TuneOptions> ParseTuneOptions(const std::vector<std::string>& arguments) {
  TuneOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--force" || argument == "--kernels_only") {
      (argument == "--force" ? options.force : options.kernels_only) = true;
    } else if (argument == "--seconds" || argument == "--width") {
      uint32_t& value = argument == "--width" ? options.width : options.seconds;
      if (++i == arguments.size() || !absl::SimpleAtoi(arguments[i], &value) || value == 0)
        return absl::InvalidArgumentError(
            absl::StrCat(argument, " takes a number, 1 to 4294967295"));
    } else if (!argument.empty() && argument[0] == '-') {
      return absl::InvalidArgumentError(absl::StrCat("unknown option ", argument));
    } else if (options.program.empty()) {
      options.program = argument;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("expected one program; unexpected: ", argument));
    }
  }
  if (options.program.empty())
    return absl::InvalidArgumentError("expected a program; `kiln programs` lists them");
  return options;
}

std::string OutcomeOf(const Progress& progress) {
  switch (progress.state()) {
    case Progress::SEARCHING:
      return absl::StrCat("round ", progress.round(), ", ", progress.tried(), " tried");
    case Progress::FASTER:
      return "faster";
    case Progress::KEPT:
      return "nothing faster";
    case Progress::SEARCHED:
      return "searched before";
    case Progress::NO_TIME:
      return "no time left";
    case Progress::FAILED:
      return absl::StrCat("failed: ", Printable(progress.why()));
    default:
      return "";
  }
}

std::string RatioOf(const Progress& progress) {
  if (progress.seconds_before() <= 0 || progress.seconds_now() <= 0) return "-";
  return absl::StrFormat("%.2f", progress.seconds_before() / progress.seconds_now());
}

// "1.2 ms (memory)".
std::string RooflineOf(const Progress& progress) {
  if (progress.roofline_seconds() <= 0) return "-";
  return absl::StrCat(Duration(progress.roofline_seconds()), " (",
                      Printable(progress.roofline_limit()), ")");
}

std::string Column(const std::string& text, size_t width) {
  return std::string(width - std::min(width, Width(text)), ' ') + text;
}

std::string LineOf(const Progress& progress) {
  return absl::StrFormat("%-32s %s %s %s %s %s  %s", Printable(progress.kernel()),
                         Column(Duration(progress.seconds_before()), 8),
                         Column(Duration(progress.seconds_now()), 8), Column(RatioOf(progress), 6),
                         Column(RooflineOf(progress), 17), Column(Percent(progress.share()), 5),
                         OutcomeOf(progress));
}

void ShowHeader(const Invocation& invocation) {
  invocation.out << absl::StrFormat("%-32s %8s %8s %6s %17s %5s\n", "KERNEL", "BEFORE", "NOW",
                                    "RATIO", "ROOFLINE", "SHARE");
}

// On a terminal the line of a kernel changes until its search ends; elsewhere it is written then.
void ShowProgress(const Invocation& invocation, const Progress& progress) {
  const bool is_searching = progress.state() == Progress::SEARCHING;
  if (!invocation.terminal) {
    if (!is_searching) invocation.out << LineOf(progress) << std::endl;
    return;
  }
  invocation.out << kClearLine << LineOf(progress);
  if (is_searching) {
    invocation.out << "  (" << progress.number() << " of " << progress.kernels() << ", "
                   << Percent(progress.fraction_done()) << ')';
  } else {
    invocation.out << '\n';
  }
  invocation.out << std::flush;
}

}  // namespace

absl::Status TuneProgram(Invocation& invocation) {
  const auto options = ParseTuneOptions(invocation.arguments);
  if (!options.ok()) return options.status();
  const auto programs = ListPrograms(invocation);
  if (!programs.ok()) return programs.status();
  const auto digest = FindProgram(*programs, options->program);
  if (!digest.ok()) return digest.status();
  v1::TuneProgramRequest request;
  request.set_digest(*digest);
  request.set_seconds(options->seconds);
  request.set_beam_width(options->width);
  request.set_force(options->force);
  request.set_kernels_only(options->kernels_only);
  grpc::ClientContext context;
  const uint32_t seconds_max = std::numeric_limits<int>::max() - kSecondsToEnd;
  SetDeadline(context, static_cast<int>(std::min(options->seconds, seconds_max)) + kSecondsToEnd);
  const auto stub = v1::ProgramService::NewStub(invocation.channel);
  const auto call = stub->TuneProgram(&context, request);
  Progress progress;
  bool has_begun = false, is_faster = false;
  while (call->Read(&progress)) {
    is_faster = is_faster || progress.state() == Progress::FASTER;
    if (!invocation.json) {
      if (!std::exchange(has_begun, true)) ShowHeader(invocation);
      ShowProgress(invocation, progress);
    } else if (absl::Status status = invocation.PrintJsonLine(progress); !status.ok()) {
      return status;
    }
  }
  if (invocation.terminal && progress.state() == Progress::SEARCHING) invocation.out << '\n';
  if (is_faster && !invocation.json)
    invocation.out << "The program has the faster kernels when it is next defined.\n";
  return invocation.Check(call->Finish());
}

}  // namespace kiln::cli
