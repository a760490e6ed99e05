// Runs passes by name on a graph in text form and prints what comes out: for debugging, and for
// tests that are text files.
//
//   irtool --list                        the stages, in their order
//   irtool --pass simplify graph.txt     one pass alone
//   irtool --to partition < graph.txt    the whole way up to and including a stage; the last one
//   without --to
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/lower.h"
#include "compiler/partition/fuse.h"
#include "compiler/pipeline.h"

namespace kiln {
namespace {

constexpr std::string_view kPartition = "partition";
constexpr std::string_view kKernels = "kernels";

struct Command {
  bool list = false;
  bool one_pass = false;
  std::string stage;
  std::string file;  // empty: standard input
};

absl::StatusOr<Command> ReadCommand(const std::vector<std::string>& words) {
  Command command;
  command.stage = std::string(kKernels);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--list") {
      command.list = true;
    } else if (words[i] == "--pass" || words[i] == "--to") {
      if (i + 1 == words.size()) return absl::InvalidArgumentError(words[i] + " needs a name");
      command.one_pass = words[i] == "--pass";
      command.stage = words[++i];
    } else if (!words[i].empty() && words[i][0] == '-') {
      return absl::InvalidArgumentError("unknown flag " + words[i] + "; try --list, --pass, --to");
    } else {
      command.file = words[i];
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

absl::StatusOr<std::string> RunOnePass(const graph::Graph& graph, const std::string& name) {
  for (const compiler::GraphPass& pass : compiler::GraphPasses()) {
    if (pass.name != name) continue;
    absl::StatusOr<graph::Graph> result = pass.run(graph);
    if (!result.ok()) return result.status();
    absl::Status legal = graph::Verify(*result);
    if (!legal.ok()) return legal;
    return graph::Print(*result);
  }
  return absl::InvalidArgumentError("there is no pass " + name + "; --list names them");
}

absl::StatusOr<std::string> PrintKernels(const partition::Partition& partition) {
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

absl::StatusOr<std::string> RunTo(const graph::Graph& graph, const std::string& stage) {
  bool beyond = stage == kPartition || stage == kKernels;
  std::vector<compiler::PassTime> times;
  absl::StatusOr<graph::Graph> result =
      compiler::RunGraphPasses(graph, beyond ? "" : stage, {}, &times);
  if (!result.ok()) return result.status();
  if (!beyond) return graph::Print(*result);
  absl::StatusOr<partition::Partition> partition = partition::Fuse(*result);
  if (!partition.ok()) return partition.status();
  return stage == kPartition ? partition::Print(*partition) : PrintKernels(*partition);
}

absl::StatusOr<std::string> Run(const std::vector<std::string>& words) {
  absl::StatusOr<Command> command = ReadCommand(words);
  if (!command.ok()) return command.status();
  if (command->list) {
    std::string names;
    for (const compiler::GraphPass& pass : compiler::GraphPasses()) {
      StrAppend(&names, pass.name, pass.optional ? "  (optional)\n" : "\n");
    }
    return StrCat(names, kPartition, "\n", kKernels, "\n");
  }
  absl::StatusOr<std::string> text = ReadText(command->file);
  if (!text.ok()) return text.status();
  absl::StatusOr<graph::Graph> graph = graph::Parse(*text);
  if (!graph.ok()) return graph.status();
  return command->one_pass ? RunOnePass(*graph, command->stage) : RunTo(*graph, command->stage);
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
