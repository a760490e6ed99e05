#include "drivers/cpu/host.h"

#include <cpuid.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "drivers/cpu/instructions.h"
#include "drivers/cpu/thread_control.h"

namespace kiln::drivers::cpu {
namespace {

int64_t CacheBytes(int sysconf_name, int64_t otherwise) {
  const int64_t bytes = sysconf(sysconf_name);
  // sysconf returns 0 or -1 if the size is unknown, as in some virtual machines.
  return bytes > 0 ? bytes : otherwise;
}

}  // namespace

absl::StatusOr<Target> DetectTarget(int threads, const std::string& features) {
  Target target;
  target.architecture = "x86-64";
  if (absl::Status status = ChooseInstructions(HostHasFeature, features, &target); !status.ok())
    return status;
  target.limits.compute_units = threads;
  target.limits.near_memory_bytes = CacheBytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  target.limits.private_cache_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, 512 << 10);
  target.limits.buffer_alignment = kBufferAlignmentMin;
  target.costs = kVectorCoreCosts;
  target.rates = kVectorCoreRates;
  return target;
}

std::string ProcessorModel() {
  // CPUID leaves 80000002h to 80000004h hold 16 characters each; Intel pads them with leading
  // blanks.
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

int AvailableCores(const ControlGroups& groups) {
  double cores = static_cast<double>(AllowedCores().size());
  // sched_getaffinity(2) fails on machines with more cores than a cpu_set_t has bits.
  if (cores == 0) cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return static_cast<int>(std::max(1.0, std::round(std::min(cores, groups.CoreLimit()))));
}

int64_t AvailableMemory(const ControlGroups& groups) {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return std::min(physical, groups.MemoryLimit());
}

}  // namespace kiln::drivers::cpu
