// Runs passes by name on a graph in text form and prints the result: for debugging, and for tests
// that are text files.
//
//   irtool --list                        the passes, in their order
//   irtool --pass simplify graph.txt     only one pass
//   irtool --to partition < graph.txt    everything up to and including a pass; without --to up to
//                                        the lowered kernels
//     --disable simplify,merge_rows      without these passes
//     --dump normalize,cluster           also prints the results of these
//     --times                            prints on standard error how long each pass took
//   irtool --sites graph.txt             where other values could share kernels, and the choices
//                                        that would do that
//   irtool --choices choices.txt …       with these choices
//   irtool --space DEVICE kernel.txt     the knobs of a kernel in text form, and the heuristic's
//                                        setting; DEVICE as in irtool_settings.h
//   irtool --space DEVICE --setting setting.txt kernel.txt
//                                        the schedule of a setting
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "compiler/graph/text.h"
#include "compiler/ir/str_cat.h"
#include "compiler/irtool_settings.h"
#include "compiler/kernel/lower.h"
#include "compiler/partition/choices/choices.h"
#include "compiler/partition/cluster/sites.h"
#include "compiler/partition/partition.h"
#include "compiler/pass_timer.h"
#include "compiler/pipeline.h"
#include "drivers/interface/target.h"

namespace kiln {
namespace {

using compiler::PassLevel;
using compiler::PassReport;

constexpr char kLower[] = "lower";

struct Command {
  bool list = false;
  bool one_pass = false;
  bool times = false;
  std::string pass = kLower;
  bool sites = false;
  std::string choices_file;  // empty: none
  bool space = false;
  std::string device;
  std::string setting_file;  // empty: prints the space
  std::string file;          // empty: standard input
  compiler::Options options;
};

absl::StatusOr<Command> ReadCommand(const std::vector<std::string>& words) {
  Command command;
  command.options.now = absl::Now;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& flag = words[i];
    if (flag == "--list" || flag == "--times" || flag == "--sites") {
      (flag == "--list" ? command.list : flag == "--times" ? command.times : command.sites) = true;
    } else if (flag == "--pass" || flag == "--to" || flag == "--disable" || flag == "--dump") {
      if (++i == words.size())
        return absl::InvalidArgumentError(flag + " needs the name of a pass");
      if (flag == "--disable") {
        command.options.disabled_passes = absl::StrSplit(words[i], ',');
      } else if (flag == "--dump") {
        command.options.dumped_passes = absl::StrSplit(words[i], ',');
      } else {
        command.one_pass = flag == "--pass";
        command.pass = words[i];
      }
    } else if (flag == "--choices") {
      if (++i == words.size()) return absl::InvalidArgumentError(flag + " needs a file");
      command.choices_file = words[i];
    } else if (flag == "--space" || flag == "--setting") {
      if (++i == words.size()) return absl::InvalidArgumentError(flag + " needs a value");
      (flag == "--space" ? command.device : command.setting_file) = words[i];
      command.space = true;
    } else if (!flag.empty() && flag[0] == '-') {
      return absl::InvalidArgumentError("unknown flag " + flag +
                                        "; use --list, --pass, --to, --disable, --dump, "
                                        "--times, --sites, --choices, --space, --setting");
    } else {
      command.file = flag;
    }
  }
  return command;
}

absl::StatusOr<std::string> ReadText(const std::string& file) {
  std::ifstream stream;
  if (!file.empty()) stream.open(file);
  std::istream& input = file.empty() ? std::cin : stream;
  if (!input) return absl::NotFoundError("cannot read " + file);
  return std::string(std::istreambuf_iterator<char>(input), {});
}

std::string ListPasses() {
  std::string names;
  for (const compiler::Pass& pass : compiler::Passes()) {
    StrAppend(&names, pass.name, pass.optional ? "  (optional)\n" : "\n");
  }
  return names;
}

absl::StatusOr<std::string> PrintKernels(const partition::Partition& partition,
                                         const compiler::Options& options,
                                         std::vector<PassReport>* reports) {
  const compiler::PassTimer timer(kLower, options, reports);
  std::string text;
  for (size_t i = 0; i < partition.groups.size(); ++i) {
    ir::Context context;
    absl::StatusOr<kernel::LoweredKernel> lowered =
        kernel::Lower(partition, static_cast<int>(i), context);
    if (!lowered.ok()) return lowered.status();
    StrAppend(&text, i == 0 ? "" : "\n", "# ", lowered->kernel.name, "\n",
              kernel::Print(lowered->kernel));
  }
  return text;
}

// Prints the choices for which there are sites, as a search would try them.
absl::StatusOr<std::string> PrintSites(const graph::Graph& graph, const drivers::Target& target,
                                       const compiler::Options& options,
                                       std::vector<PassReport>* reports) {
  const auto state = compiler::RunPasses(graph, target, {"", "split_epilogues"}, options, reports);
  if (!state.ok()) return state.status();
  if (!state->choices.refusal.empty()) return absl::InvalidArgumentError(state->choices.refusal);
  std::string text;
  for (const partition::Site& site : partition::FindSites(state->graph, state->clusters, target))
    StrAppend(&text, site.text, "\n");
  return text;
}

// Returns the result of the command's last pass.
absl::StatusOr<std::string> RunPasses(Command command, const graph::Graph& graph,
                                      std::vector<PassReport>* reports) {
  // After "shard" a graph on a mesh is no longer one graph.
  if (graph.sharding != nullptr && command.pass == kLower) command.pass = "shard";
  // No device: the default target is a core with vector registers.
  const drivers::Target target;
  if (command.sites) return PrintSites(graph, target, command.options, reports);
  if (command.pass == kLower && !command.one_pass) {
    const auto state = compiler::RunPasses(graph, target, {}, command.options, reports);
    if (!state.ok()) return state.status();
    return PrintKernels(state->partition, command.options, reports);
  }
  command.options.dumped_passes.push_back(command.pass);
  const std::string first = command.one_pass ? command.pass : "";
  const auto state =
      compiler::RunPasses(graph, target, {first, command.pass}, command.options, reports);
  if (!state.ok()) return state.status();
  return std::move(reports->back().text);
}

absl::StatusOr<std::string> RunSpace(const Command& command, const std::string& kernel) {
  if (command.setting_file.empty()) return PrintSpace(kernel, command.device);
  const absl::StatusOr<std::string> setting = ReadText(command.setting_file);
  if (!setting.ok()) return setting.status();
  return PrintSchedule(kernel, command.device, *setting);
}

absl::StatusOr<std::string> Run(const std::vector<std::string>& words) {
  absl::StatusOr<Command> command = ReadCommand(words);
  if (!command.ok()) return command.status();
  if (command->list) return ListPasses();
  absl::StatusOr<std::string> text = ReadText(command->file);
  if (!text.ok()) return text.status();
  if (command->space) return RunSpace(*command, *text);
  absl::StatusOr<graph::Graph> graph = graph::Parse(*text);
  if (!graph.ok()) return graph.status();
  if (!command->choices_file.empty()) {
    const absl::StatusOr<std::string> choices = ReadText(command->choices_file);
    if (!choices.ok()) return choices.status();
    if (auto read = partition::ParseChoices(*choices); !read.ok()) return read.status();
    command->options.choices = [choices = *choices](const std::string&, const drivers::Target&) {
      return std::optional<std::string>(choices);
    };
  }
  std::vector<PassReport> reports;
  const absl::StatusOr<std::string> result = RunPasses(*command, *graph, &reports);
  // The reports before a failed pass are useful too.
  for (const PassReport& report : reports) {
    if (!report.text.empty())
      std::cout << "== after " << report.pass << "\n" << report.text << "\n";
    if (!command->times) continue;
    std::cerr << std::left << std::setw(20) << report.pass << std::fixed << std::setprecision(6)
              << report.seconds << " s" << (report.disabled ? "  (off)" : "") << "\n";
  }
  return result;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  absl::StatusOr<std::string> result = kiln::Run({argv + 1, argv + argc});
  if (!result.ok()) {
    std::cerr << "irtool: " << result.status().message() << "\n";
    return 1;
  }
  std::cout << *result;
  return 0;
}
