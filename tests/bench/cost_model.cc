// Compares the cost model (compiler/search/model) with the heuristic's own estimate:
//
//   bench_cost_model collect SAMPLES [--threads N] [--seconds N] FILE…
//   bench_cost_model evaluate SAMPLES…
//
// `collect` searches the kernel of each FILE (as bench_beam) on this machine's processor, and
// appends every measured candidate to the file SAMPLES: a line for each, with its kernel, its
// round, its time, the heuristic's prediction, the time of its parent, and its features.
//
// `evaluate` fits the model to the samples of four fifths of the kernels (a FILE with the name
// STRUCTURE:NAME belongs to the kernels of that structure), predicts those of the
// others, and repeats this for each fifth. The candidates of a round are ordered by the model and
// by the heuristic's estimate. Prints the mean correlation of ranks, and the mean regret: how much
// longer the best of the first 1, 4 and a quarter takes than the best of the round.
#include "compiler/search/model/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/compiler.h"
#include "compiler/search/beam.h"
#include "compiler/search/model/features.h"
#include "drivers/cpu/driver.h"
#include "server/tuner/device_trials.h"
#include "server/tuner/kernel_trials.h"

namespace kiln::bench {
namespace {

constexpr char kUsage[] =
    "bench_cost_model collect SAMPLES [--threads N] [--seconds N] FILE… | evaluate SAMPLES…";
constexpr size_t kFolds = 5;
// Rounds with fewer candidates have no order to speak of.
constexpr size_t kCandidatesMin = 6;

struct Sample {
  std::string kernel;
  int round = 0;
  double seconds = 0;
  double estimate = 0;  // seconds, by the heuristic's model and the parent's time
  double parent_seconds = 0;
  search::Features parent;
  search::CostSample cost;
};

absl::StatusOr<std::string> ReadText(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", file));
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

void AppendFeatures(const search::Features& features, std::string* line) {
  for (const double feature : features) absl::StrAppend(line, " ", feature);
}

// The seconds by which the search orders candidates without a model.
double EstimateOf(const search::Space& space, const search::SearchStep& parent,
                  const search::Setting& setting) {
  const double seconds = parent.timing->seconds;
  for (const auto& [part, values] : setting.parts) {
    if (part != search::kKernelPart && values.form() != parent.setting.parts.at(part).form())
      return seconds;
  }
  const auto before = space.Estimate(parent.setting);
  const auto after = space.Estimate(setting);
  return before && after && *before > 0 ? seconds * *after / *before : seconds;
}

absl::Status Collect(drivers::Device& device, const std::string& file, double seconds,
                     std::ofstream* out) {
  const auto text = ReadText(file);
  if (!text.ok()) return text.status();
  ir::Context context;
  auto kernel = kernel::ParseKernel(*text, context);
  if (!kernel.ok()) return kernel.status();
  kernel->name = "kernel";
  const drivers::Target& target = device.info().target;
  auto runner = tuner::DeviceTrials::Make(device, *kernel, /*seed=*/1);
  if (!runner.ok()) return runner.status();
  const search::Space space(*kernel, target, search::MachineOf(target));
  tuner::KernelTrials trials(*kernel, target, compiler::CompileJob, **runner,
                             {.compile_threads = 1});
  const auto result =
      search::FindSetting(space, trials, {.seconds_max = seconds, .now = absl::Now});
  if (!result.ok()) return result.status();
  std::vector<absl::StatusOr<search::Features>> features;
  for (const search::SearchStep& step : result->path) {
    const auto schedule = space.Write(step.setting);
    features.push_back(schedule.ok() ? search::FeaturesOf(*kernel, *schedule, target)
                                     : schedule.status());
  }
  const std::string name = file.substr(file.rfind('/') + 1);
  for (size_t i = 1; i < result->path.size(); ++i) {
    const search::SearchStep& step = result->path[i];
    const search::SearchStep& parent = result->path[step.parent];
    if (!step.timing.ok() || !parent.timing.ok() || !features[i].ok()) continue;
    std::string line = absl::StrCat(name, " ", step.round, " ", step.timing->seconds, " ",
                                    EstimateOf(space, parent, step.setting), " ",
                                    parent.timing->seconds, " ", result->path[0].timing->seconds);
    AppendFeatures(*features[0], &line);
    AppendFeatures(*features[step.parent], &line);
    AppendFeatures(*features[i], &line);
    *out << line << "\n" << std::flush;
  }
  std::printf("%s: %zu candidates\n", name.c_str(), result->path.size());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status CollectAll(const std::vector<std::string>& words) {
  double threads = 1, seconds = 20;
  std::vector<std::string> files;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "--threads" || words[i] == "--seconds") {
      double& value = words[i] == "--threads" ? threads : seconds;
      if (++i == words.size() || !absl::SimpleAtod(words[i], &value) || value <= 0)
        return absl::InvalidArgumentError(kUsage);
    } else {
      files.push_back(words[i]);
    }
  }
  drivers::cpu::CpuDriver driver({.devices = 1, .threads_per_device = static_cast<int>(threads)});
  std::string why_none;
  auto devices = driver.Enumerate(&why_none);
  if (!devices.ok()) return devices.status();
  if (devices->empty()) return absl::UnavailableError(why_none);
  std::ofstream out(words[1], std::ios::app);
  for (const std::string& file : files) {
    const absl::Status status = Collect(*devices->front(), file, seconds, &out);
    if (!status.ok())
      std::fprintf(stderr, "%s: %s\n", file.c_str(), std::string(status.message()).c_str());
  }
  return out ? absl::OkStatus() : absl::UnavailableError("cannot write the samples");
}

absl::Status ReadSamples(const std::string& file, std::vector<Sample>* samples) {
  const auto text = ReadText(file);
  if (!text.ok()) return text.status();
  std::istringstream lines(*text);
  const size_t count = search::FeatureNames().size();
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    Sample sample;
    double heuristic = 0;
    in >> sample.kernel >> sample.round >> sample.seconds >> sample.estimate >>
        sample.parent_seconds >> heuristic;
    for (auto* features : {&sample.cost.heuristic, &sample.parent, &sample.cost.features}) {
      features->resize(count);
      for (double& feature : *features) in >> feature;
    }
    if (!in || heuristic <= 0)
      return absl::InvalidArgumentError(absl::StrCat(file, " has a line of another version"));
    sample.cost.log_ratio = std::log(sample.seconds / heuristic);
    samples->push_back(std::move(sample));
  }
  return absl::OkStatus();
}

// Kernels of one structure, which differ only in sizes, are in one fold, so that those of the
// others are new to the model.
std::string StructureOf(const Sample& sample) {
  return sample.kernel.substr(0, sample.kernel.find(':'));
}

struct Scores {
  int rounds = 0;
  double correlation = 0, regret1 = 0, regret4 = 0, regret_quarter = 0;

  void Add(const std::vector<double>& predictions, const std::vector<double>& times) {
    ++rounds;
    correlation += search::RankCorrelation(predictions, times);
    regret1 += search::Regret(predictions, times, 1);
    regret4 += search::Regret(predictions, times, 4);
    regret_quarter += search::Regret(predictions, times, (times.size() + 3) / 4);
  }
  void Print(const char* name) const {
    const double n = std::max(rounds, 1);
    std::printf("%-24s %7d %10.3f %8.1f%% %8.1f%% %8.1f%%\n", name, rounds, correlation / n,
                100 * regret1 / n, 100 * regret4 / n, 100 * regret_quarter / n);
  }
};

absl::Status Evaluate(const std::vector<std::string>& words) {
  std::vector<Sample> samples;
  for (size_t i = 1; i < words.size(); ++i) {
    if (absl::Status status = ReadSamples(words[i], &samples); !status.ok()) return status;
  }
  std::map<std::string, size_t> kernels;  // with their folds
  for (const Sample& sample : samples)
    kernels.try_emplace(StructureOf(sample), kernels.size() % kFolds);
  Scores model_scores, heuristic_scores, chance;
  double fit_seconds = 0;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<search::CostSample> known;
    std::map<std::pair<std::string, int>, std::vector<const Sample*>> rounds;
    for (const Sample& sample : samples) {
      if (kernels[StructureOf(sample)] != fold) {
        known.push_back(sample.cost);
      } else {
        rounds[{sample.kernel, sample.round}].push_back(&sample);
      }
    }
    const absl::Time start = absl::Now();
    const auto model = search::CostModel::Fit(known);
    fit_seconds = std::max(fit_seconds, absl::ToDoubleSeconds(absl::Now() - start));
    for (const auto& [round, candidates] : rounds) {
      if (candidates.size() < kCandidatesMin) continue;
      std::vector<double> times, by_model, by_heuristic, none;
      for (const Sample* sample : candidates) {
        const search::Features& heuristic = sample->cost.heuristic;
        times.push_back(sample->seconds);
        by_heuristic.push_back(sample->estimate);
        by_model.push_back(std::log(sample->parent_seconds) +
                           model.Predict(heuristic, sample->cost.features) -
                           model.Predict(heuristic, sample->parent));
        none.push_back(static_cast<double>(none.size() * 7919 % 101));
      }
      model_scores.Add(by_model, times);
      heuristic_scores.Add(by_heuristic, times);
      chance.Add(none, times);
    }
  }
  std::printf("%zu samples of %zu structures of kernels; a fit takes %.2f s\n", samples.size(),
              kernels.size(), fit_seconds);
  std::printf("%-24s %7s %10s %9s %9s %9s\n", "order", "rounds", "ranks", "first", "first 4",
              "quarter");
  model_scores.Print("model");
  heuristic_scores.Print("heuristic's estimate");
  chance.Print("chance");
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& words) {
  if (words.size() >= 3 && words[0] == "collect") return CollectAll(words);
  if (words.size() >= 2 && words[0] == "evaluate") return Evaluate(words);
  return absl::InvalidArgumentError(absl::StrCat("usage: ", kUsage));
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  const absl::Status status = kiln::bench::Run({argv + 1, argv + argc});
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "bench_cost_model: %s\n", std::string(status.message()).c_str());
  return EXIT_FAILURE;
}
