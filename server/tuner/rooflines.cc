#include "server/tuner/rooflines.h"

#include <set>
#include <utility>

namespace kiln::tuner {

std::vector<Roofline> Rooflines::Of(absl::Span<const Kernel> kernels) {
  std::vector<Roofline> found;
  found.reserve(kernels.size());
  absl::MutexLock lock(&mutex_);
  ReadRates(kernels);
  for (const Kernel& kernel : kernels) found.push_back(Find(kernel));
  return found;
}

size_t Rooflines::remembered() const {
  absl::MutexLock lock(&mutex_);
  return remembered_;
}

void Rooflines::ReadRates(absl::Span<const Kernel> kernels) {
  std::set<absl::string_view> seen;
  for (const Kernel& kernel : kernels) {
    if (!seen.insert(kernel.hardware).second) continue;
    OfHardware& known = hardware_[std::string(kernel.hardware)];
    std::optional<DeviceRates> stored = store_.FindRates(std::string(kernel.hardware));
    if (stored == known.rates) continue;
    remembered_ -= known.by_digest.size();
    known = {.rates = std::move(stored), .by_digest = {}};
  }
}

Roofline Rooflines::Find(const Kernel& kernel) {
  OfHardware& known = hardware_.find(kernel.hardware)->second;
  if (!known.rates) return Roofline();
  const auto found = known.by_digest.find(kernel.digest);
  if (found != known.by_digest.end()) return found->second;
  if (remembered_ >= kRememberedMax) {
    for (auto& [key, other] : hardware_) other.by_digest.clear();
    remembered_ = 0;
  }
  const Roofline roofline = RooflineOf(*kernel.ir, *known.rates);
  known.by_digest.emplace(kernel.digest, roofline);
  ++remembered_;
  return roofline;
}

}  // namespace kiln::tuner
