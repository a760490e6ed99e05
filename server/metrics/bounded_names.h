// A bounded number of values for a label.
#ifndef KILN_SERVER_METRICS_BOUNDED_NAMES_H_
#define KILN_SERVER_METRICS_BOUNDED_NAMES_H_

#include <set>
#include <string>

#include "proto/check/check.h"

namespace kiln::metrics {

// The first names keep their own value permanently, so that counters never decrease; later names
// share "other". Not thread-safe.
class BoundedNames {
 public:
  explicit BoundedNames(int names_max) : names_max_(names_max) {}

  std::string Name(const std::string& name) {
    if (known_.contains(name)) return name;
    if (static_cast<int>(known_.size()) >= names_max_) return "other";
    known_.insert(name);
    KILN_CHECK_LE(known_.size(), names_max_);
    return name;
  }

 private:
  const int names_max_;
  std::set<std::string> known_;
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_BOUNDED_NAMES_H_
