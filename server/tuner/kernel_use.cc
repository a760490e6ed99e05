#include "server/tuner/kernel_use.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::tuner {
namespace {

// A kernel of each kind of device and, if programs are not shared, of each user.
std::string UseKey(const KernelToTune& kernel) {
  return absl::StrCat(HardwareOf(kernel), "\n", kernel.text);
}

int64_t TextBytes(const std::string& key, const KernelUse::Used& used) {
  return static_cast<int64_t>(key.size() + used.kernel.text.size());
}

}  // namespace

void KernelUse::Look(absl::Span<const std::shared_ptr<runtime::Program>> programs) {
  std::erase_if(seen_, [](const auto& seen) { return seen.second.program.expired(); });
  for (const std::shared_ptr<runtime::Program>& program : programs) {
    const double device_seconds = program->device_seconds();
    Seen& seen = seen_.try_emplace(program.get(), Seen{.program = program}).first->second;
    if (device_seconds <= seen.device_seconds || !program->has_users()) continue;
    const std::vector<KernelToTune> kernels = KernelsOf(*program);
    double sum = 0;
    for (const KernelToTune& kernel : kernels) sum += kernel.seconds * kernel.launches;
    // Its runs were not timed kernel by kernel yet, so this is added later.
    if (sum <= 0) continue;
    const double seconds = device_seconds - std::exchange(seen.device_seconds, device_seconds);
    for (const KernelToTune& kernel : kernels)
      Add(kernel, program->short_digest(), seconds * kernel.seconds * kernel.launches / sum);
  }
}

void KernelUse::Add(const KernelToTune& kernel, const std::string& program, double seconds) {
  if (seconds <= 0) return;
  const auto [at, is_new] =
      kernels_.try_emplace(UseKey(kernel), Used{.kernel = kernel, .program = program});
  if (is_new) text_bytes_ += TextBytes(at->first, at->second);
  at->second.seconds += seconds;
  while (kernels_.size() > kKernelsMax || text_bytes_ > kTextBytesMax) DropLeastUsed();
}

void KernelUse::DropLeastUsed() {
  const auto least = std::min_element(
      kernels_.begin(), kernels_.end(),
      [](const auto& a, const auto& b) { return a.second.seconds < b.second.seconds; });
  text_bytes_ -= TextBytes(least->first, least->second);
  kernels_.erase(least);
  KILN_CHECK_GE(text_bytes_, 0);
}

std::vector<const KernelUse::Used*> KernelUse::Unsearched(
    const runtime::ManagedDevice& device) const {
  std::vector<const Used*> unsearched;
  for (const auto& [key, used] : kernels_)
    if (used.kernel.device == &device && !used.is_searched) unsearched.push_back(&used);
  std::stable_sort(unsearched.begin(), unsearched.end(),
                   [](const Used* a, const Used* b) { return a->seconds > b->seconds; });
  return unsearched;
}

void KernelUse::SetSearched(const KernelToTune& kernel) {
  if (const auto found = kernels_.find(UseKey(kernel)); found != kernels_.end())
    found->second.is_searched = true;
}

}  // namespace kiln::tuner
