// Searches for the fastest settings of kernels on this machine's processor, and compares them with
// the heuristic's:
//
//   bench_beam [--threads N] [--features WORDS] [--width N] [--seconds N] [--path]
//              [--setting SETTING] FILE…
//
// A FILE has the loops of one kernel, as `irtool` and `kiln explain` print them;
// tests/bench/kernels has examples. --threads: of the device (1). --width: of the beam (4).
// --seconds: bound for each kernel (60). --path: prints every candidate with its time. --setting:
// searches nothing, and compares the setting of that text with the heuristic's.
//
// First it measures the rates of the device, and prints them. A search ends at the roofline that
// follows from them. Prints for each kernel the setting found, as a text that `irtool --setting`
// reads, and then a table. The times of a row were taken in turns, after the search.
#include "compiler/search/beam.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "server/tuner/device_trials.h"
#include "server/tuner/kernel_trials.h"
#include "server/tuner/measure_rates.h"

namespace kiln::bench {
namespace {

constexpr char kUsage[] =
    "bench_beam [--threads N] [--features WORDS] [--width N] [--seconds N] [--path] "
    "[--setting SETTING] FILE…";

struct Command {
  double threads = 1;
  double width = 4;
  double seconds = 60;
  std::string features;
  std::string setting;  // a file's name; empty: a search finds one
  bool path = false;
  std::vector<std::string> files;
};

struct Flag {
  const char* name;
  double Command::*field;
};
constexpr Flag kFlags[] = {
    {"--threads", &Command::threads},
    {"--width", &Command::width},
    {"--seconds", &Command::seconds},
};

absl::StatusOr<Command> ReadCommand(const std::vector<std::string>& words) {
  Command command;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto* flag = std::find_if(std::begin(kFlags), std::end(kFlags),
                                    [&](const Flag& row) { return row.name == words[i]; });
    if (flag != std::end(kFlags)) {
      if (++i == words.size() || !absl::SimpleAtod(words[i], &(command.*flag->field)) ||
          command.*flag->field <= 0) {
        return absl::InvalidArgumentError(absl::StrCat(flag->name, " needs a positive number"));
      }
    } else if (words[i] == "--features" && i + 1 < words.size()) {
      command.features = words[++i];
    } else if (words[i] == "--setting" && i + 1 < words.size()) {
      command.setting = words[++i];
    } else if (words[i] == "--path") {
      command.path = true;
    } else if (words[i].starts_with("-")) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag ", words[i], "; usage: ", kUsage));
    } else {
      command.files.push_back(words[i]);
    }
  }
  if (command.files.empty()) return absl::InvalidArgumentError(absl::StrCat("usage: ", kUsage));
  return command;
}

int CompileThreads() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U)); }

absl::StatusOr<std::string> ReadText(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", file));
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

absl::StatusOr<tuner::DeviceRates> MeasureRates(drivers::Device& device) {
  return tuner::MeasureRates(
      device.info().target, compiler::CompileJob, CompileThreads(),
      [&device](const kernel::Kernel& buffers,
                absl::FunctionRef<absl::Status(tuner::TrialRunner&)> use) -> absl::Status {
        auto runner = tuner::DeviceTrials::Make(device, buffers, /*seed=*/1);
        if (!runner.ok()) return runner.status();
        return use(**runner);
      });
}

void PrintThroughput(const char* title, const tuner::Throughput& rates) {
  std::printf("# %s: float32 %.1f GFLOP/s fused, %.1f other; float64 %.1f, %.1f\n", title,
              rates.float32.fused / 1e9, rates.float32.other / 1e9, rates.float64.fused / 1e9,
              rates.float64.other / 1e9);
  for (const tuner::TrafficRates& one : rates.traffic) {
    std::printf("#   %lld bytes: read %.1f GB/s, write %.1f, copy %.1f\n",
                static_cast<long long>(one.bytes), one.read / 1e9, one.write / 1e9, one.copy / 1e9);
  }
}

// The device as irtool's --space takes it.
std::string DeviceText(const drivers::Limits& limits) {
  return absl::StrCat(
      "vector_bytes=", limits.vector_bytes, " vector_registers=", limits.vector_registers,
      " compute_units=", limits.compute_units, " near_memory_bytes=", limits.near_memory_bytes,
      " private_cache_bytes=", limits.private_cache_bytes);
}

absl::StatusOr<std::unique_ptr<drivers::Device>> OpenDevice(const Command& command) {
  drivers::cpu::CpuDriver driver({.devices = 1,
                                  .threads_per_device = static_cast<int>(command.threads),
                                  .features = command.features});
  std::string why_none;
  auto devices = driver.Enumerate(&why_none);
  if (!devices.ok()) return devices.status();
  if (devices->empty()) return absl::UnavailableError(why_none);
  return std::move(devices->front());
}

struct TableRow {
  std::string name;
  double heuristic_seconds = 0;
  double best_seconds = 0;
  double noise = 0;
  tuner::Roofline roofline;
  double search_seconds = 0;
  int repeated = 0;
  search::SearchProgress progress;
  search::Ending ending = search::Ending::kNoGain;
};

// The search for one kernel.
class KernelSearch {
 public:
  KernelSearch(drivers::Device& device, const tuner::DeviceRates& rates, const Command& command)
      : device_(device), rates_(rates), command_(command) {}

  absl::StatusOr<TableRow> Run(const std::string& file) {
    const auto text = ReadText(file);
    if (!text.ok()) return text.status();
    auto kernel = kernel::ParseKernel(*text, context_);
    if (!kernel.ok()) return kernel.status();
    kernel_ = *std::move(kernel);
    kernel_.name = "kernel";
    auto runner = tuner::DeviceTrials::Make(device_, kernel_, /*seed=*/1);
    if (!runner.ok()) return runner.status();
    runner_ = *std::move(runner);
    TableRow row;
    row.name = file.substr(file.rfind('/') + 1);
    absl::Status status = command_.setting.empty() ? Search(&row) : TimeSetting(&row);
    if (!status.ok()) return status;
    return row;
  }

 private:
  tuner::KernelTrials Trials(int confirming_rounds, double patience_seconds) {
    return tuner::KernelTrials(kernel_, device_.info().target, compiler::CompileJob, *runner_,
                               {.compile_threads = CompileThreads(),
                                .confirming_rounds = confirming_rounds,
                                .patience_seconds = patience_seconds});
  }

  absl::Status Search(TableRow* row) {
    const search::Space space(kernel_, device_.info().target, search::Machine::kLanes);
    const tuner::TrialOptions defaults;
    tuner::KernelTrials trials = Trials(defaults.confirming_rounds, defaults.patience_seconds);
    row->roofline = tuner::RooflineOf(kernel_, rates_);
    const absl::Time start = absl::Now();
    const auto result = search::FindSetting(
        space, trials,
        {.width = static_cast<int>(command_.width),
         .seconds_max = command_.seconds,
         .roofline_seconds = row->roofline.seconds,
         .now = absl::Now,
         .on_progress = [&](const search::SearchProgress& now) { PrintProgress(row->name, now); }});
    std::fprintf(stderr, "\n");
    if (!result.ok()) return result.status();
    row->search_seconds = absl::ToDoubleSeconds(absl::Now() - start);
    row->repeated = trials.repeated();
    row->progress = result->progress;
    row->ending = result->ending;
    if (command_.path) std::printf("%s", search::PrintPath(*result).c_str());
    std::printf("# %s: irtool --space \"%s\" --setting FILE\n%s\n", row->name.c_str(),
                DeviceText(device_.info().target.limits).c_str(),
                search::Print(result->best.candidate.setting).c_str());
    return TimeInTurns(space, result->best.candidate, row);
  }

  // Times the setting of the command instead of searching one.
  absl::Status TimeSetting(TableRow* row) {
    const search::Space space(kernel_, device_.info().target, search::Machine::kLanes);
    row->roofline = tuner::RooflineOf(kernel_, rates_);
    const auto text = ReadText(command_.setting);
    if (!text.ok()) return text.status();
    auto parsed = search::ParseSetting(*text);
    if (!parsed.ok()) return parsed.status();
    search::Candidate candidate = {space.Complete(parsed->setting, &parsed->ignored), {}};
    for (const std::string& why : parsed->ignored) std::fprintf(stderr, "%s\n", why.c_str());
    auto schedule = space.Write(candidate.setting);
    if (!schedule.ok()) return schedule.status();
    candidate.schedule = *std::move(schedule);
    return TimeInTurns(space, candidate, row);
  }

  // Times the best and the heuristic's schedule anew, more often than the search does. If they are
  // the same, only once.
  absl::Status TimeInTurns(const search::Space& space, const search::Candidate& candidate,
                           TableRow* row) {
    constexpr int kRounds = 31;
    const auto schedule = space.Write(space.heuristic());
    if (!schedule.ok()) return schedule.status();
    search::Measured heuristic{{space.heuristic(), *schedule}, {}};
    tuner::KernelTrials trials = Trials(kRounds, /*patience_seconds=*/60);
    const auto alone = trials.Measure(nullptr, {&heuristic.candidate, 1}).front();
    if (!alone.ok()) return alone.status();
    heuristic.timing = *alone;
    row->heuristic_seconds = row->best_seconds = alone->seconds;
    if (candidate.setting == space.heuristic()) return absl::OkStatus();
    const auto best = trials.Confirm(heuristic, candidate);
    if (!best.ok()) return best.status();
    row->best_seconds = best->seconds;
    row->noise = best->noise;
    return absl::OkStatus();
  }

  static void PrintProgress(const std::string& name, const search::SearchProgress& now) {
    std::fprintf(stderr, "\r%s: round %d, %d candidates, %.1f us, was %.1f us ", name.c_str(),
                 now.round, now.tried, now.best_seconds * 1e6, now.heuristic_seconds * 1e6);
  }

  drivers::Device& device_;
  const tuner::DeviceRates& rates_;
  const Command& command_;
  ir::Context context_;
  kernel::Kernel kernel_;
  std::unique_ptr<tuner::DeviceTrials> runner_;
};

void PrintTable(const std::vector<TableRow>& rows) {
  std::printf("%-24s %12s %12s %6s %6s %12s %-8s %6s %10s %7s %6s %8s %10s %7s  %s\n", "kernel",
              "heuristic us", "best us", "ratio", "noise", "roofline us", "limit", "rounds",
              "candidates", "equal", "failed", "rejected", "duplicates", "seconds", "ended by");
  for (const TableRow& row : rows) {
    const std::string limit(tuner::LimitName(row.roofline.limit));
    std::printf("%-24s %12.1f %12.1f %6.2f %6.3f %12.1f %-8s %6d %10d %7d %6d %8d %10d %7.1f  %s\n",
                row.name.c_str(), row.heuristic_seconds * 1e6, row.best_seconds * 1e6,
                row.heuristic_seconds / row.best_seconds, row.noise, row.roofline.seconds * 1e6,
                limit.c_str(), row.progress.round, row.progress.tried, row.repeated,
                row.progress.failed, row.progress.rejected, row.progress.duplicates,
                row.search_seconds, std::string(search::EndingName(row.ending)).c_str());
  }
}

absl::Status Run(const std::vector<std::string>& words) {
  const auto command = ReadCommand(words);
  if (!command.ok()) return command.status();
  const auto device = OpenDevice(*command);
  if (!device.ok()) return device.status();
  const absl::Time start = absl::Now();
  const auto rates = MeasureRates(**device);
  if (!rates.ok()) return rates.status();
  std::printf("# rates, measured in %.2f s; a launch takes %.2f us\n",
              absl::ToDoubleSeconds(absl::Now() - start), rates->launch_seconds * 1e6);
  PrintThroughput("all threads", rates->all);
  PrintThroughput("one thread", rates->thread);
  std::vector<TableRow> rows;
  absl::Status failed;
  for (const std::string& file : command->files) {
    const auto row = KernelSearch(**device, *rates, *command).Run(file);
    if (row.ok()) {
      rows.push_back(*row);
      continue;
    }
    failed = absl::Status(row.status().code(), absl::StrCat(file, ": ", row.status().message()));
    std::fprintf(stderr, "%s\n", std::string(failed.message()).c_str());
  }
  PrintTable(rows);
  return failed;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  const absl::Status status = kiln::bench::Run({argv + 1, argv + argc});
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "bench_beam: %s\n", std::string(status.message()).c_str());
  return EXIT_FAILURE;
}
