// Compiles training steps for an H100 and checks every kernel's launch, without a GPU:
//
//   launches convnet resnet50 gpt2      these networks; all of them without a name. The networks
//                                       with "_half" compute as under autocast to bfloat16
//     --full                            all blocks of a network, not two of each kind
//     --dump FOLDER                     writes each kernel's loops, schedule and PTX there
//     --assemble                        ptxas assembles them all, and must not spill
//
// The exit status is 0 if every kernel with much work (launches.h) has at least two blocks for each
// unit, every large contraction has tiles and is on matrix units if its factors are short floats,
// no schedule was refused and no kernel spills registers.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/golden/graphs.h"
#include "tests/launches/h100.h"
#include "tests/launches/launches.h"
#include "tests/launches/networks.h"
#include "tests/numerics/machine_codes/ptxas.h"

namespace kiln::launches {
namespace {

struct Network {
  const char* name;
  graph::Graph (*make)(bool full);
};
constexpr Network kNetworks[] = {
    {"convnet", [](bool) { return golden::ConvnetStep({}).graph; }},
    {"resnet50",
     [](bool full) {
       return ResNetStep(full ? ResNetSizes() : ResNetSizes{.blocks = {2, 2, 2, 2}});
     }},
    {"gpt2", [](bool full) { return GptStep(full ? GptSizes() : GptSizes{.blocks = 2}); }},
    {"resnet50_half",
     [](bool full) {
       ResNetSizes sizes{.half = ir::DType::kBFloat16};
       if (!full) sizes.blocks = {2, 2, 2, 2};
       return ResNetStep(sizes);
     }},
    {"gpt2_half",
     [](bool full) {
       return GptStep({.tokens = 256, .blocks = full ? 12 : 2, .half = ir::DType::kBFloat16});
     }},
};

struct Command {
  std::vector<Network> networks;
  bool full = false;
  bool assemble = false;
  std::string dump;
};

// The most kernels of a network that are shown; those that fail are always shown.
constexpr int kShown = 8;

void PrintLaunch(const Launch& launch, const std::string& name) {
  absl::PrintF("  %-40s %4d x %8.1f us, launched %8.1f us %8d blocks %10d threads%s%s\n", name,
               launch.calls, 1e6 * launch.seconds, 1e6 * launch.launched_seconds, launch.blocks,
               launch.threads, launch.scatters ? "  scatters" : "",
               launch.wide ? "" : "  TOO FEW BLOCKS");
  if (launch.contraction_flops >= kLargeContraction) {
    absl::PrintF("    contraction of %.1f GFLOP%s  %s\n", 1e-9 * launch.contraction_flops,
                 launch.on_matrix_units ? " on matrix units" : "", launch.Slow());
  }
}

void Dump(const compiler::CompiledProgram& program, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const compiler::CompiledKernel& kernel = program.kernels[i];
    std::ofstream(absl::StrCat(folder, "/", i, ".txt")) << kernel.ir << "\n"
                                                        << kernel.schedule << "\n"
                                                        << kernel.image.code;
  }
}

// Returns how many kernels spill registers, or cannot be assembled.
int CountSpills(const compiler::CompiledProgram& program) {
  if (numerics::Ptxas().empty()) {
    absl::PrintF("  no ptxas on $PATH or in $KILN_PTXAS: nothing is assembled\n");
    return 0;
  }
  int spills = 0, local = 0;
  for (const compiler::CompiledKernel& kernel : program.kernels) {
    local += absl::StrContains(kernel.image.code, ".local") ? 1 : 0;
    const auto assembled = numerics::Assemble(kernel.image.code, H100().processor);
    if (assembled.status == 0 && numerics::SaysNoSpills(assembled)) continue;
    ++spills;
    absl::PrintF("  %s: %s\n", kernel.image.name, assembled.text);
  }
  absl::PrintF("  ptxas: %d of %d kernels spill, %d use local memory\n", spills,
               program.kernels.size(), local);
  return spills;
}

// Returns how many kernels fail a check.
int Check(const Network& network, const Command& command) {
  compiler::Options options;
  options.threads = 2;
  const auto program = compiler::Compile(network.make(command.full), H100(), options);
  if (!program.ok()) {
    absl::PrintF("%s: %s\n", network.name, program.status().ToString());
    return 1;
  }
  const std::vector<Launch> launches = FindLaunches(*program, H100());
  int wrong = 0, large = 0;
  double seconds = 0, launched_seconds = 0, flops = 0, on_units = 0;
  for (const Launch& launch : launches) {
    flops += launch.calls * launch.contraction_flops;
    if (launch.on_matrix_units) on_units += launch.calls * launch.contraction_flops;
    large += launch.large ? 1 : 0;
    seconds += launch.seconds * launch.calls;
    launched_seconds += launch.launched_seconds * launch.calls;
  }
  absl::PrintF("%s: %d kernels, %d calls, %d large kernels; %.2f ms at best, %.2f as launched\n",
               network.name, launches.size(), program->calls.size(), large, 1e3 * seconds,
               1e3 * launched_seconds);
  absl::PrintF("  %.1f%% of %.1f TFLOP of contractions are on matrix units\n",
               flops == 0 ? 0 : 100 * on_units / flops, 1e-12 * flops);
  int shown = 0;
  for (const Launch& launch : launches) {
    const compiler::CompiledKernel& kernel = program->kernels[launch.kernel];
    const bool good = launch.wide && launch.Slow().empty();
    if (!good || shown++ < kShown)
      PrintLaunch(launch, absl::StrCat(launch.kernel, " ", kernel.image.name));
    if (!kernel.refusal.empty()) absl::PrintF("  schedule refused: %s\n", kernel.refusal);
    wrong += good && kernel.refusal.empty() ? 0 : 1;
  }
  if (!command.dump.empty()) Dump(*program, absl::StrCat(command.dump, "/", network.name));
  if (command.assemble) wrong += CountSpills(*program);
  return wrong;
}

const Network* FindNetwork(const std::string& name) {
  for (const Network& network : kNetworks) {
    if (name == network.name) return &network;
  }
  return nullptr;
}

// Parses the words; returns an error, or an empty text.
std::string Read(const std::vector<std::string>& words, Command* command) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--full") {
      command->full = true;
    } else if (words[i] == "--assemble") {
      command->assemble = true;
    } else if (words[i] == "--dump" && i + 1 < words.size()) {
      command->dump = words[++i];
    } else if (const Network* network = FindNetwork(words[i]); network != nullptr) {
      command->networks.push_back(*network);
    } else {
      return absl::StrCat(words[i], " is no network and no flag; see the top of main.cc");
    }
  }
  if (command->networks.empty())
    command->networks.assign(std::begin(kNetworks), std::end(kNetworks));
  return "";
}

int Main(const std::vector<std::string>& words) {
  Command command;
  if (const std::string wrong = Read(words, &command); !wrong.empty()) {
    absl::PrintF("%s\n", wrong);
    return 2;
  }
  int wrong = 0;
  for (const Network& network : command.networks) wrong += Check(network, command);
  if (wrong > 0) absl::PrintF("%d kernels are not as they should be\n", wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kiln::launches

int main(int argc, char** argv) { return kiln::launches::Main({argv + 1, argv + argc}); }
