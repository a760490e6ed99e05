#include "tests/fuzz/run.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

// The sanitizers call it before they end the process. Undefined without them.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace kiln::fuzz {
namespace {

char seed_text[64];

// Does only what a signal handler may do.
void PrintSeed() {
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, seed_text, strlen(seed_text));
}

void OnSignal(int signal) {
  PrintSeed();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void PrintSeedOnCrash() {
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(PrintSeed);
  std::signal(SIGABRT, OnSignal);
  if (__sanitizer_set_death_callback == nullptr) std::signal(SIGSEGV, OnSignal);
}

struct Arguments {
  uint64_t inputs = 1000;
  uint64_t seed = 1;
};

std::optional<Arguments> ReadArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    std::string flag = argv[i];
    uint64_t* value = flag == "--inputs" ? &arguments.inputs : &arguments.seed;
    if (i + 1 == argc || (flag != "--inputs" && flag != "--seed")) return std::nullopt;
    char* end = nullptr;
    *value = std::strtoull(argv[i + 1], &end, 10);
    if (end == argv[i + 1] || *end != '\0') return std::nullopt;
  }
  return arguments;
}

}  // namespace

int Run(int argc, char** argv, double accepted_min, const OneInput& one_input) {
  std::optional<Arguments> arguments = ReadArguments(argc, argv);
  if (!arguments.has_value()) {
    std::cerr << "usage: " << argv[0] << " [--inputs N] [--seed N]\n";
    return 2;
  }
  PrintSeedOnCrash();
  std::map<std::string, uint64_t> outcomes;
  for (uint64_t seed = arguments->seed; seed < arguments->seed + arguments->inputs; ++seed) {
    std::snprintf(seed_text, sizeof(seed_text), "\nfuzz: --inputs 1 --seed %llu\n",
                  static_cast<unsigned long long>(seed));
    Random random(seed);
    Outcome outcome = one_input(random);
    if (outcome.defect.has_value()) {
      std::cerr << "defect: " << *outcome.defect << "\n";
      PrintSeed();
      return 1;
    }
    ++outcomes[outcome.label];
  }
  for (const auto& [label, count] : outcomes) std::cout << label << " " << count << "\n";
  double accepted = static_cast<double>(outcomes["accepted"]);
  if (arguments->inputs >= 1000 && accepted < accepted_min * arguments->inputs) {
    std::cerr << "too few inputs were accepted to show anything\n";
    return 1;
  }
  return 0;
}

size_t Below(Random& random, size_t n) { return random() % n; }
bool OneIn(Random& random, size_t n) { return Below(random, n) == 0; }

}  // namespace kiln::fuzz
