// kiln tune PROGRAM [--seconds N] [--width N] [--force] [--kernels_only]
#include "clients/cli/tune_program.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/command.h"
#include "clients/cli/find_program.h"
#include "clients/cli/format.h"
#include "clients/cli/interruption.h"
#include "clients/cli/table.h"
#include "clients/cli/tunings.h"
#include "kiln/v1/program.grpc.pb.h"

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
      return absl::StrCat("failed: ", progress.why());
    default:
      return "";
  }
}

std::string RatioOf(const Progress& progress) {
  if (progress.seconds_before() <= 0 || progress.seconds_now() <= 0) return "-";
  return absl::StrFormat("%.2f", progress.seconds_before() / progress.seconds_now());
}

Color ColorOf(const Progress& progress) {
  switch (progress.state()) {
    case Progress::FASTER:
      return Color::kGood;
    case Progress::FAILED:
      return Color::kBad;
    default:
      return Color::kNone;
  }
}

std::vector<Cell> CellsOf(const Progress& progress) {
  return {progress.kernel(),
          DurationCell(progress.seconds_before()),
          DurationCell(progress.seconds_now()),
          RatioOf(progress),
          RooflineCell(progress),
          PercentCell(progress.share()),
          Cell(OutcomeOf(progress), ColorOf(progress))};
}

// The table of a search, whose rows are printed as its kernels end.
class ProgressTable {
 public:
  explicit ProgressTable(const Invocation& invocation)
      : invocation_(invocation),
        table_({{"kernel", 32, false},
                {"before", 8, true},
                {"now", 8, true},
                {"ratio", 6, true},
                {"roofline", 17, true},
                {"share", 5, true},
                {"", 0, false}},
               /*first_min=*/8, /*last_min=*/16, invocation.out) {}

  // On a terminal the line of a kernel changes until its search ends; elsewhere it is written then.
  void Show(const Progress& progress) {
    if (!std::exchange(has_begun_, true)) table_.PrintTitles(invocation_.out);
    if (progress.state() != Progress::SEARCHING) return ShowRow(CellsOf(progress));
    if (!invocation_.terminal) return;
    const std::string end = absl::StrCat("  (", progress.number(), " of ", progress.kernels(), ", ",
                                         Percent(progress.fraction_done()), ")");
    invocation_.out << kClearLine << table_.OneLine(CellsOf(progress), end.size(), invocation_.out)
                    << end << std::flush;
    is_open_ = true;
  }
  // The search of this kernel was interrupted: its row shows what was found until then.
  void ShowInterrupted(const Progress& progress) {
    std::vector<Cell> cells = CellsOf(progress);
    cells.back() = Cell(absl::StrCat("interrupted in ", OutcomeOf(progress)), Color::kWarning);
    ShowRow(cells);
  }
  // Ends a line that would change further.
  void End() {
    if (std::exchange(is_open_, false)) invocation_.out << '\n';
  }

 private:
  void ShowRow(const std::vector<Cell>& cells) {
    if (std::exchange(is_open_, false)) invocation_.out << kClearLine;
    table_.PrintRow(cells, invocation_.out);
    invocation_.out << std::flush;
  }

  const Invocation& invocation_;
  StreamedTable table_;
  bool has_begun_ = false;
  bool is_open_ = false;
};

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
  // A search that is interrupted shows the row of the kernel that it was at. A second Ctrl-C ends
  // the program at once.
  const Interruption interruption([&context] { context.TryCancel(); });
  Progress progress;
  ProgressTable table(invocation);
  bool is_faster = false;
  while (call->Read(&progress)) {
    is_faster = is_faster || progress.state() == Progress::FASTER;
    if (!invocation.json) {
      table.Show(progress);
    } else if (absl::Status status = invocation.PrintJsonLine(progress); !status.ok()) {
      return status;
    }
  }
  const bool is_searching = progress.state() == Progress::SEARCHING && !invocation.json;
  const absl::Status status = invocation.Check(call->Finish());
  if (is_searching && interruption.happened()) table.ShowInterrupted(progress);
  table.End();
  if (is_faster && !invocation.json)
    invocation.out << "The program has the faster kernels when it is next defined.\n";
  invocation.interrupted = interruption.happened();
  if (!invocation.interrupted) return status;
  return absl::CancelledError("interrupted; what was found until then is stored");
}

}  // namespace kiln::cli
