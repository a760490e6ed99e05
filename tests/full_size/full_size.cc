// Compares the chosen schedules of kernels with the plain schedule, at the sizes that networks
// have.
//
//   full_size --networks all            every layer of networks.txt, gradients included
//   full_size --random 2000             kernels of random layers, also by random schedules
//   full_size --replay FILE             one failure, as it was printed, from "kernel" on
//
// The first two take
//   --lanes 4,8,16      of the targets; all that this processor can execute
//   --dtypes float32    float32, float64, bfloat16, float16
//   --seed N            other batches, inputs and kernels
//   --part I/N          the I-th of N parts, for several processes
//   --minutes N         stops after this long
//   --points N          of a kernel's loops, at most, in millions; batches are reduced to fit
//   --schedules N       random ones for each kernel of --random and target
//   --settings N        random settings for each kernel and target, by default none
//   --reference N       points that the plain schedule computes of a kernel, in millions
// and --networks a list of names, or of parts of names. The exit status is 0 if nothing differs.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/codegen.h"
#include "compiler/ir/str_cat.h"
#include "tests/full_size/lanes.h"
#include "tests/full_size/layer_kernels.h"
#include "tests/full_size/random_layer.h"
#include "tests/full_size/sweep.h"

namespace kiln::full_size {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kElementsMax = 12 << 20;
constexpr int64_t kMillion = 1'000'000;

struct Arguments {
  std::string networks;
  std::string replay;
  int64_t random = 0;
  std::vector<int> lanes = ExecutableLanes();
  std::vector<ir::DType> dtypes = {ir::DType::kFloat32, ir::DType::kFloat64, ir::DType::kBFloat16,
                                   ir::DType::kFloat16};
  int64_t seed = 1;
  int64_t part = 1;
  int64_t parts = 1;
  int64_t minutes = 24 * 60;
  int64_t points = 0;
  int64_t reference = 0;
  int schedules = 1;
  int settings = 0;
};

bool ReadFlag(const std::string& flag, const std::string& value, Arguments* arguments) {
  if (flag == "--networks" || flag == "--replay") {
    (flag == "--networks" ? arguments->networks : arguments->replay) = value;
    return true;
  }
  if (flag == "--random") return absl::SimpleAtoi(value, &arguments->random);
  if (flag == "--seed") return absl::SimpleAtoi(value, &arguments->seed);
  if (flag == "--minutes") return absl::SimpleAtoi(value, &arguments->minutes);
  if (flag == "--points") return absl::SimpleAtoi(value, &arguments->points);
  if (flag == "--schedules") return absl::SimpleAtoi(value, &arguments->schedules);
  if (flag == "--settings") return absl::SimpleAtoi(value, &arguments->settings);
  if (flag == "--reference") return absl::SimpleAtoi(value, &arguments->reference);
  if (flag == "--part") {
    const std::vector<std::string> numbers = absl::StrSplit(value, '/');
    return numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &arguments->part) &&
           absl::SimpleAtoi(numbers[1], &arguments->parts) && arguments->parts >= 1;
  }
  if (flag == "--lanes") {
    const std::vector<int> executable = ExecutableLanes();
    arguments->lanes.clear();
    for (const absl::string_view word : absl::StrSplit(value, ',')) {
      arguments->lanes.push_back(0);
      if (!absl::SimpleAtoi(word, &arguments->lanes.back()) ||
          std::find(executable.begin(), executable.end(), arguments->lanes.back()) ==
              executable.end()) {
        return false;
      }
    }
    return true;
  }
  if (flag != "--dtypes") return false;
  arguments->dtypes.clear();
  for (const absl::string_view word : absl::StrSplit(value, ',')) {
    const auto dtype = ir::ParseDType(std::string(word));
    if (!dtype.has_value() || !ir::IsFloat(*dtype)) return false;
    arguments->dtypes.push_back(*dtype);
  }
  return true;
}

class Program {
 public:
  explicit Program(const Arguments& arguments, SweepOptions options)
      : arguments_(arguments), sweep_(std::move(options)) {}

  void RunNetworks(const std::vector<Network>& networks) {
    const SizeLimits limits = {arguments_.points * kMillion, kElementsMax};
    int64_t number = 0;
    for (const Network& network : networks) {
      if (!IsWanted(network.name)) continue;
      for (const Layer& layer : network.layers) {
        for (const ir::DType dtype : arguments_.dtypes) {
          // Counted before any layer is skipped, so that each process gets its own layers no matter
          // what the others do.
          if (number++ % arguments_.parts != arguments_.part - 1) continue;
          if (layer.kind == "adam" && dtype != ir::DType::kFloat32) continue;
          if (IsLate()) return;
          RunLayer(network.name, layer, BatchOf(number), dtype, limits);
        }
      }
    }
  }

  void RunRandom() {
    for (int64_t i = 0; sweep_.counts().kernels < arguments_.random && !IsLate(); ++i) {
      // Another layer for each seed, part and number.
      const int64_t seed = (arguments_.seed * arguments_.parts + arguments_.part) * kMillion + i;
      std::mt19937_64 random(seed);
      const std::string text = RandomLayer(random);
      const auto layer = ParseLayer(text);
      if (!layer.ok()) {
        Fail(StrCat(text, ": ", layer.status().ToString()));
        continue;
      }
      const ir::DType dtype = arguments_.dtypes[random() % arguments_.dtypes.size()];
      RunLayer("random", *layer, BatchOf(seed), dtype,
               {arguments_.points * kMillion, kElementsMax / 8}, 2);
    }
  }

  int Finish() {
    Print(true);
    return failures_ + sweep_.counts().failures > 0 || sweep_.counts().kernels == 0 ? 1 : 0;
  }

 private:
  bool IsWanted(const std::string& name) const {
    if (arguments_.networks == "all") return true;
    for (const absl::string_view word : absl::StrSplit(arguments_.networks, ',')) {
      if (absl::StrContains(name, word)) return true;
    }
    return false;
  }

  bool IsLate() const { return Clock::now() - start_ >= std::chrono::minutes(arguments_.minutes); }

  // Each layer has other batches in other dtypes.
  int64_t BatchOf(int64_t number) const {
    constexpr int64_t kBatches[] = {128, 1, 7, 32, 256, 3, 64, 16, 100, 2, 33, 8, 127, 5, 31};
    return kBatches[(number * 7 + arguments_.seed) % static_cast<int64_t>(std::size(kBatches))];
  }

  // Runs the first `kernels_max` kernels that are new.
  void RunLayer(const std::string& network, const Layer& layer, int64_t batch, ir::DType dtype,
                const SizeLimits& limits, int64_t kernels_max = INT64_MAX) {
    const auto sized = KernelsWithin(layer, batch, dtype, limits);
    const std::string label = StrCat(network, ": ", layer.text, ", batch ",
                                     sized.ok() ? sized->batch : batch, ", ", ir::Name(dtype));
    if (!sized.ok()) return Fail(StrCat(label, ": ", sized.status().ToString()));
    if (!sized->fits && arguments_.random > 0) return;
    ++layers_;
    for (const std::string& text : sized->kernels) {
      if (!sweep_.IsNew(text)) continue;
      if (kernels_max-- <= 0) return;
      const auto begun = Clock::now();
      const std::string failure = sweep_.Try(text, label);
      if (!failure.empty()) std::cout << failure << std::endl;
      const std::chrono::duration<double> took = Clock::now() - begun;
      if (took.count() > kManySeconds) {
        std::cout << "slow: " << label << " took " << took.count() << " s" << std::endl;
      }
      Print(false);
    }
  }

  void Fail(const std::string& what) {
    ++failures_;
    std::cout << "different: " << what << std::endl;
  }

  void Print(bool at_once) {
    const auto now = Clock::now();
    if (!at_once && now - printed_ < std::chrono::seconds(10)) return;
    printed_ = now;
    const std::chrono::duration<double> run = now - start_;
    std::cout << static_cast<int64_t>(run.count()) << " s: " << layers_
              << " layers in their dtypes, " << sweep_.Summary() << std::endl;
  }

  static constexpr double kManySeconds = 15;

  const Arguments& arguments_;
  Sweep sweep_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point printed_ = start_;
  int64_t layers_ = 0;
  int64_t failures_ = 0;
};

std::string ReadFile(const std::string& name) {
  std::ifstream file(name);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Runs the kernel with the schedule of the file on each target; prints the loops first.
int Replay(const Arguments& arguments) {
  const std::vector<std::string> parts = absl::StrSplit(ReadFile(arguments.replay), "schedule\n");
  const size_t begin = parts[0].find("buffer");
  if (parts.size() != 2 || begin == std::string::npos) {
    std::cerr << arguments.replay << ": no kernel and its schedule, as a failure prints them\n";
    return 1;
  }
  ir::Context context;
  const auto kernel = kernel::ParseKernel(parts[0].substr(begin), context);
  const auto schedule = schedule::Parse(parts[1]);
  if (!kernel.ok() || !schedule.ok()) {
    std::cerr << arguments.replay << ": " << kernel.status() << ", " << schedule.status() << "\n";
    return 1;
  }
  const auto source = codegen::Source(*kernel, *schedule);
  std::cout << (source.ok() ? *source : source.status().ToString()) << std::endl;
  Comparison comparison(*kernel, context, {static_cast<uint64_t>(arguments.seed), INT64_MAX});
  const absl::Status status = comparison.MakeReference(TargetWith(arguments.lanes[0], 1));
  if (!status.ok()) std::cerr << status << "\n";
  bool differs = !status.ok();
  for (const int lanes : arguments.lanes) {
    const std::string difference = comparison.Check(*schedule, TargetWith(lanes, 1));
    std::cout << lanes << " lanes: " << (difference.empty() ? "equal" : difference) << std::endl;
    differs |= !difference.empty();
  }
  return differs ? 1 : 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  bool is_legal = argc % 2 == 1;
  for (int i = 1; is_legal && i + 1 < argc; i += 2) {
    is_legal = ReadFlag(argv[i], argv[i + 1], &arguments);
  }
  if (is_legal && !arguments.replay.empty()) return Replay(arguments);
  const bool is_random = arguments.random > 0;
  if (!is_legal || is_random == !arguments.networks.empty()) {
    std::cerr << "usage: " << argv[0]
              << " --networks all|NAME,… | --random N | --replay FILE [--lanes 4,8,16] "
                 "[--dtypes float32,…] [--seed N] [--part I/N] [--minutes N] [--points N] "
                 "[--reference N] [--schedules N] [--settings N]\n";
    return 2;
  }
  if (arguments.points == 0) arguments.points = is_random ? 20 : 400;
  if (arguments.reference == 0) arguments.reference = is_random ? 20 : 10;
  SweepOptions options;
  options.lanes = arguments.lanes;
  options.random_schedules = is_random ? arguments.schedules : 0;
  options.random_settings = arguments.settings;
  options.comparison = {static_cast<uint64_t>(arguments.seed), arguments.reference * kMillion};
  PrintCaseOnCrash();
  Program program(arguments, options);
  if (is_random) {
    program.RunRandom();
    return program.Finish();
  }
  const auto networks = ParseNetworks(ReadFile(KILN_TEST_DATA "/networks.txt"));
  if (!networks.ok()) {
    std::cerr << networks.status() << "\n";
    return 1;
  }
  program.RunNetworks(*networks);
  return program.Finish();
}

}  // namespace
}  // namespace kiln::full_size

int main(int argc, char** argv) { return kiln::full_size::Main(argc, argv); }
