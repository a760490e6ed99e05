#include "server/tuner/neighbours.h"

#include "absl/hash/hash.h"
#include "proto/check/check.h"

namespace kiln::tuner {
namespace {

uint64_t FingerprintOf(const std::string& text) { return absl::HashOf(text); }

}  // namespace

size_t Neighbours::BytesOf(const Entry& entry) {
  return entry.setting.size() + entry.extents.size() * sizeof(double);
}

void Neighbours::Put(const std::string& hardware, const std::string& kernel,
                     const std::string& setting) {
  KernelShape shape = ShapeOf(kernel);
  if (shape.extents.size() > kLoopsMax) return;
  const Group group = {FingerprintOf(hardware), FingerprintOf(shape.outline)};
  const uint64_t fingerprint = FingerprintOf(kernel);
  if (const auto found = groups_.find(group); found != groups_.end()) {
    const auto old = found->second.find(fingerprint);
    if (old != found->second.end()) Remove(old->second);
  }
  if (!setting.empty()) {
    entries_.push_back({.group = group,
                        .kernel = fingerprint,
                        .structure = FingerprintOf(shape.structure),
                        .extents = std::move(shape.extents),
                        .setting = setting});
    groups_[group][fingerprint] = std::prev(entries_.end());
    bytes_ += BytesOf(entries_.back());
  }
  while (entries_.size() > kernels_max_ || bytes_ > bytes_max_) Remove(entries_.begin());
  KILN_VALIDATE(*this, entries_.size());
}

void Neighbours::Remove(Entries::iterator entry) {
  bytes_ -= BytesOf(*entry);
  const auto group = groups_.find(entry->group);
  group->second.erase(entry->kernel);
  if (group->second.empty()) groups_.erase(group);
  entries_.erase(entry);
}

std::optional<std::string> Neighbours::Nearest(const std::vector<std::string>& hardware,
                                               const std::string& kernel) const {
  const KernelShape shape = ShapeOf(kernel);
  const uint64_t fingerprint = FingerprintOf(kernel), structure = FingerprintOf(shape.structure);
  const Entry* nearest = nullptr;
  double least = kNotSimilar;
  for (const std::string& each : hardware) {
    const auto group = groups_.find({FingerprintOf(each), FingerprintOf(shape.outline)});
    if (group == groups_.end()) continue;
    for (const auto& [other, entry] : group->second) {
      if (other == fingerprint) continue;
      const double distance =
          DistanceOf(shape.extents, entry->extents, structure == entry->structure);
      // The order of a hash table decides nothing.
      if (distance > least || (distance == least && nearest && other > nearest->kernel)) continue;
      if (distance == kNotSimilar) continue;
      least = distance;
      nearest = &*entry;
    }
  }
  if (nearest == nullptr) return std::nullopt;
  return nearest->setting;
}

void Neighbours::Validate() const {
  size_t bytes = 0, kernels = 0;
  for (const Entry& entry : entries_) bytes += BytesOf(entry);
  KILN_CHECK_EQ(bytes, bytes_);
  for (const auto& [group, kernels_of_group] : groups_) {
    KILN_CHECK(!kernels_of_group.empty());
    kernels += kernels_of_group.size();
    for (const auto& [kernel, entry] : kernels_of_group)
      KILN_CHECK(entry->kernel == kernel && entry->group == group);
  }
  KILN_CHECK_EQ(kernels, entries_.size());
  KILN_CHECK(entries_.size() <= kernels_max_ && bytes_ <= bytes_max_);
}

}  // namespace kiln::tuner
