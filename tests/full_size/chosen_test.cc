// Compares the chosen schedules for kernels.txt, on processors of all kinds, with the plain
// schedule.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "compiler/search/heuristics/heuristic.h"
#include "tests/full_size/comparison.h"
#include "tests/full_size/lanes.h"

namespace kiln::full_size {
namespace {

struct NamedKernel {
  std::string name;
  std::string text;
};

// Reads lines "kernel NAME", each followed by the kernel.
std::vector<NamedKernel> Kernels() {
  std::ifstream file(KILN_TEST_DATA "/kernels.txt");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<NamedKernel> kernels;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "kernel ")) {
      kernels.push_back({std::string(line), ""});
    } else if (!kernels.empty()) {
      absl::StrAppend(&kernels.back().text, line, "\n");
    }
  }
  return kernels;
}

// Returns processors with these lanes for which schedules are chosen, with small caches, so that
// kernels that exceed them need not be large. The lanes of the last one are threads.
std::vector<drivers::Target> TargetsLike(const drivers::Target& host) {
  constexpr struct {
    int units;
    int64_t near_memory_bytes;
    int64_t private_cache_bytes;
  } kSizes[] = {{1, 32 << 10, 1 << 20},
                {2, 32 << 10, 128 << 10},
                {16, 1 << 10, 16 << 10},
                {2, 1 << 10, 2 << 10}};
  std::vector<drivers::Target> targets;
  for (const auto& size : kSizes) {
    drivers::Target target = host;
    target.limits.compute_units = size.units;
    target.limits.near_memory_bytes = size.near_memory_bytes;
    target.limits.private_cache_bytes = size.private_cache_bytes;
    targets.push_back(target);
  }
  targets.push_back(targets[1]);
  targets.back().limits.vector_registers = 8;
  targets.push_back(targets[1]);
  targets.back().limits.vector_bytes = 4;
  return targets;
}

TEST(Chosen, SchedulesGiveWhatThePlainOneGives) {
  const std::vector<NamedKernel> kernels = Kernels();
  ASSERT_GT(kernels.size(), 20);
  for (const NamedKernel& named : kernels) {
    SCOPED_TRACE(named.name);
    ir::Context context;
    const auto kernel = kernel::ParseKernel(named.text, context);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    Comparison comparison(*kernel, context, {});
    ASSERT_TRUE(comparison.MakeReference(TargetWith(4, 1)).ok());
    for (const int lanes : ExecutableLanes()) {
      const drivers::Target host = TargetWith(lanes, 1);
      std::set<std::string> seen;
      for (const drivers::Target& target : TargetsLike(host)) {
        const schedule::Schedule chosen = search::Choose(*kernel, target);
        if (!seen.insert(schedule::Print(chosen)).second) continue;
        EXPECT_EQ(comparison.Check(chosen, host), "") << lanes << " lanes\n"
                                                      << schedule::Print(chosen);
      }
    }
  }
}

}  // namespace
}  // namespace kiln::full_size
