// A bounded number of values for a label.
#ifndef KILN_SERVER_METRICS_BOUNDED_NAMES_H_
#define KILN_SERVER_METRICS_BOUNDED_NAMES_H_

#include <set>
#include <string>

namespace kiln::metrics {

// The first names keep their own value permanently, so that counters never decrease; later names
// share "other". Not thread-safe.
class BoundedNames {
 public:
  explicit BoundedNames(int most) : most_(most) {}

  std::string Name(const std::string& name) {
    if (known_.contains(name)) return name;
    if (static_cast<int>(known_.size()) >= most_) return "other";
    known_.insert(name);
    return name;
  }

 private:
  const int most_;
  std::set<std::string> known_;
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_BOUNDED_NAMES_H_
