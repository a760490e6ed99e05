#include "drivers/cpu/host.h"

#include <cpuid.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "drivers/cpu/instructions.h"

namespace kiln::drivers::cpu {
namespace {

int64_t CacheBytes(int sysconf_name, int64_t otherwise) {
  const int64_t bytes = sysconf(sysconf_name);
  return bytes > 0 ? bytes : otherwise;
}

// A limit in a control group's file; none, or "max", is no limit.
int64_t ReadLimit(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  int64_t limit = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &limit) || limit <= 0) return INT64_MAX;
  return limit;
}

// Version 2: every group from this process's up to the root may have a limit.
int64_t UnifiedLimit(const std::string& root, const std::string& own_cgroup_file) {
  std::ifstream file(own_cgroup_file);
  std::string line;
  std::string path;
  while (std::getline(file, line)) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  int64_t limit = ReadLimit(root + "/memory.max");
  while (path.size() > 1) {
    limit = std::min(limit, ReadLimit(absl::StrCat(root, path, "/memory.max")));
    path.resize(path.rfind('/'));
  }
  return limit;
}

}  // namespace

absl::StatusOr<Target> DetectTarget(int threads, const std::string& features) {
  Target target;
  target.architecture = "x86-64";
  if (absl::Status status = ChooseInstructions(HostHasFeature, features, &target); !status.ok())
    return status;
  target.compute_units = threads;
  target.near_memory_bytes = CacheBytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  target.private_cache_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, 512 << 10);
  return target;
}

std::string ProcessorModel() {
  constexpr unsigned kBrand = 0x80000002;
  char brand[49] = {};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned words[4];
    if (!__get_cpuid(kBrand + i, &words[0], &words[1], &words[2], &words[3])) return "x86-64";
    std::memcpy(brand + 16 * i, words, sizeof(words));
  }
  const std::string text = brand;
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "x86-64"
                                    : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

int AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more cores than the set holds.
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return std::max<int>(1, sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, CPU_COUNT(&set));
}

int64_t AvailableMemory(const std::string& cgroup_root, const std::string& own_cgroup_file) {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  const int64_t version1 = ReadLimit(cgroup_root + "/memory/memory.limit_in_bytes");
  return std::min({physical, version1, UnifiedLimit(cgroup_root, own_cgroup_file)});
}

}  // namespace kiln::drivers::cpu
