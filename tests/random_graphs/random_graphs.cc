// Random graphs over all ops and dtypes: compiled graphs give the interpreter's results, and
// gradients agree with finite differences. A failing graph is shrunk and printed as text IR.
//
//   random_graphs [--graphs N] [--seed FIRST] [--threads N] [--cpu_features WORDS]
//                 [--disable_passes NAMES] [--device cpu|cuda|hsa|level_zero|opencl]
//                 [--choices SEED]
//
// With --choices the kernels are not those of the partitioner, but chosen at random.
//
// The exit status is 0 if no graph differs and, from 2,000 graphs on, every op of the table
// occurred.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "compiler/ir/str_cat.h"
#include "tests/numerics/compiled/run_compiled.h"
#include "tests/numerics/target.h"
#include "tests/random_graphs/statistics.h"
#include "tests/random_graphs/trial.h"

namespace kiln::random_graphs {
namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE
constexpr int kThreadsMax = 64;
constexpr uint64_t kEnoughForAllOps = 2000;
constexpr double kManySeconds = 20;  // a graph that takes longer is reported

struct Arguments {
  uint64_t graphs = 300;
  uint64_t seed = 1;
  uint64_t threads = 2;
  uint64_t choices = 0;  // 0: the partitioner's
  std::string cpu_features;
  std::string disable_passes;
  std::string device = "cpu";
};

std::optional<Arguments> ReadArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    std::string* text = flag == "--cpu_features"     ? &arguments.cpu_features
                        : flag == "--disable_passes" ? &arguments.disable_passes
                        : flag == "--device"         ? &arguments.device
                                                     : nullptr;
    if (text != nullptr && i + 1 < argc) {
      *text = argv[i + 1];
      continue;
    }
    uint64_t* value = flag == "--graphs"    ? &arguments.graphs
                      : flag == "--seed"    ? &arguments.seed
                      : flag == "--threads" ? &arguments.threads
                      : flag == "--choices" ? &arguments.choices
                                            : nullptr;
    if (value == nullptr || i + 1 == argc) return std::nullopt;
    char* end = nullptr;
    *value = std::strtoull(argv[i + 1], &end, 10);
    if (end == argv[i + 1] || *end != '\0') return std::nullopt;
  }
  if (arguments.threads < 1 || arguments.threads > kThreadsMax) return std::nullopt;
  return arguments;
}

// The seeds being tried, for the message after a crash; 0: none.
std::atomic<uint64_t> seeds_in_work[kThreadsMax];

void OnSignal(int signal) {
  char text[64];
  for (const auto& seed : seeds_in_work) {
    if (seed == 0) continue;
    const int length = std::snprintf(text, sizeof(text), "random_graphs: --graphs 1 --seed %llu\n",
                                     static_cast<unsigned long long>(seed));
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, length);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Each thread takes one seed after another.
class Run {
 public:
  explicit Run(const Arguments& arguments)
      : next_(arguments.seed), end_(arguments.seed + arguments.graphs) {}

  void Work(int thread) {
    for (uint64_t seed = next_++; seed < end_; seed = next_++) {
      seeds_in_work[thread] = seed;
      const auto begun = std::chrono::steady_clock::now();
      const Trial trial = TryOne(seed);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
      Add(seed, trial, took.count());
    }
    seeds_in_work[thread] = 0;
  }

  const Statistics& statistics() const { return statistics_; }

 private:
  void Add(uint64_t seed, const Trial& trial, double seconds) {
    const std::lock_guard lock(mutex_);
    statistics_.Add(trial);
    if (seconds > kManySeconds) {
      std::cout << "slow: --graphs 1 --seed " << seed << " took " << seconds << " s" << std::endl;
    }
    if (!trial.failure.empty()) {
      std::cout << "\ndifferent: --graphs 1 --seed " << seed << "\n" << trial.failure << std::endl;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - printed_ < std::chrono::seconds(10)) return;
    printed_ = now;
    const std::chrono::duration<double> run = now - start_;
    std::cout << statistics_.graphs() << " graphs, " << statistics_.failures() << " different, "
              << statistics_.kernels() << " kernels, "
              << static_cast<double>(statistics_.graphs()) / run.count() << " graphs/s, at";
    for (const auto& at : seeds_in_work) {
      if (at != 0) std::cout << " " << at;
    }
    std::cout << std::endl;
  }

  std::atomic<uint64_t> next_;
  const uint64_t end_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point printed_ = start_;
  std::mutex mutex_;
  Statistics statistics_;
};

}  // namespace
}  // namespace kiln::random_graphs

int main(int argc, char** argv) {
  using namespace kiln::random_graphs;
  const auto arguments = ReadArguments(argc, argv);
  if (!arguments.has_value()) {
    std::cerr << "usage: " << argv[0]
              << " [--graphs N] [--seed FIRST] [--threads N] [--cpu_features WORDS] "
                 "[--disable_passes NAMES] [--device NAME] [--choices SEED]\n";
    return 2;
  }
  if (const auto status = kiln::numerics::SetCpuFeatures(arguments->cpu_features); !status.ok()) {
    std::cerr << status.message() << "\n";
    return absl::IsFailedPrecondition(status) ? kSkipped : 2;
  }
  if (const auto status = kiln::numerics::UseDevice(arguments->device); !status.ok()) {
    std::cerr << status.message() << "\n";
    return absl::IsFailedPrecondition(status) ? kSkipped : 2;
  }
  if (const auto status = kiln::numerics::DisablePasses(arguments->disable_passes); !status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  kiln::numerics::ChooseAtRandom(arguments->choices);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) std::signal(signal, OnSignal);
  Run run(*arguments);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < arguments->threads; ++i) threads.emplace_back(&Run::Work, &run, i);
  for (std::thread& thread : threads) thread.join();
  const Statistics& statistics = run.statistics();
  std::cout << statistics.Summary() << std::endl;
  const bool is_complete = arguments->graphs < kEnoughForAllOps || statistics.MissingOps().empty();
  return statistics.failures() == 0 && is_complete ? 0 : 1;
}
