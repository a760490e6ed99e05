// An index of kernels with settings, by the structure of the kernels.
#ifndef KILN_SERVER_TUNER_NEIGHBOURS_H_
#define KILN_SERVER_TUNER_NEIGHBOURS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/tuner/similar_kernels.h"

namespace kiln::tuner {

// Not thread-safe. The bounds are for the kernels and for the bytes of their settings and extents;
// those that were put first go first. A kernel with more than kLoopsMax loops has no place here.
class Neighbours {
 public:
  static constexpr size_t kLoopsMax = 64;

  Neighbours(size_t kernels_max, size_t bytes_max)
      : kernels_max_(kernels_max), bytes_max_(bytes_max) {}

  // Replaces the setting of the kernel on this hardware; an empty one removes it.
  void Put(const std::string& hardware, const std::string& kernel, const std::string& setting);

  // Returns the setting of the most similar other kernel on one of these kinds of hardware, and the
  // distance (DistanceOf); nullopt if none is similar. Looks only at kernels with the same outline.
  std::optional<std::string> Nearest(const std::vector<std::string>& hardware,
                                     const std::string& kernel) const;

  size_t size() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }
  void Validate() const;

 private:
  // Fingerprints of the hardware and of the outline.
  using Group = std::pair<uint64_t, uint64_t>;
  struct Entry {
    Group group;
    uint64_t kernel = 0;     // the fingerprint of its text
    uint64_t structure = 0;  // of KernelShape::structure
    std::vector<double> extents;
    std::string setting;
  };
  using Entries = std::list<Entry>;

  static size_t BytesOf(const Entry& entry);
  void Remove(Entries::iterator entry);

  const size_t kernels_max_;
  const size_t bytes_max_;
  Entries entries_;  // in the order in which they were put
  absl::flat_hash_map<Group, absl::flat_hash_map<uint64_t, Entries::iterator>> groups_;
  size_t bytes_ = 0;
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_NEIGHBOURS_H_
