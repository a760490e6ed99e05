// The set of numbers that a client has used, stored as intervals: clients count upwards, so a few
// intervals hold millions of numbers.
#ifndef KILN_SERVER_SESSIONS_ID_SET_H_
#define KILN_SERVER_SESSIONS_ID_SET_H_

#include <cstdint>
#include <iterator>
#include <map>

#include "proto/check/check.h"

namespace kiln::sessions {

class IdSet {
 public:
  bool Contains(uint64_t id) const {
    const auto next = first_to_last_.upper_bound(id);
    return next != first_to_last_.begin() && std::prev(next)->second >= id;
  }

  // Returns false if `id` is in the set already.
  bool Insert(uint64_t id) {
    if (Contains(id)) return false;
    const auto next = first_to_last_.upper_bound(id);
    const bool joins_next = next != first_to_last_.end() && next->first == id + 1;
    const bool joins_previous = next != first_to_last_.begin() && std::prev(next)->second + 1 == id;
    const uint64_t last = joins_next ? next->second : id;
    if (joins_previous) {
      std::prev(next)->second = last;
    } else {
      first_to_last_.emplace_hint(next, id, last);
    }
    if (joins_next) first_to_last_.erase(next);
    KILN_DCHECK(Contains(id));
    KILN_VALIDATE(*this, intervals());
    return true;
  }

  // Adds all numbers from `first` to `last`. Requires: `first` is not above `last`, and none of
  // them is in the set.
  void InsertAll(uint64_t first, uint64_t last) {
    KILN_CHECK_LE(first, last);
    const auto next = first_to_last_.upper_bound(last);
    KILN_CHECK(next == first_to_last_.begin() || std::prev(next)->second < first)
        << "some of " << first << " to " << last << " are in the set";
    first_to_last_[first] = last;
    KILN_VALIDATE(*this, intervals());
  }
  const std::map<uint64_t, uint64_t>& first_to_last() const { return first_to_last_; }
  // The highest number; 0 if the set is empty.
  uint64_t last() const { return first_to_last_.empty() ? 0 : first_to_last_.rbegin()->second; }
  size_t intervals() const { return first_to_last_.size(); }
  // Intervals are not empty, and disjoint.
  void Validate() const {
    for (auto each = first_to_last_.begin(); each != first_to_last_.end(); ++each) {
      KILN_CHECK_LE(each->first, each->second);
      if (each != first_to_last_.begin()) KILN_CHECK_GT(each->first, std::prev(each)->second);
    }
  }

 private:
  std::map<uint64_t, uint64_t> first_to_last_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ID_SET_H_
