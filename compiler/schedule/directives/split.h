#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_SPLIT_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_SPLIT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "split AXIS FACTOR": axis = outer * factor + inner. Appends outer (extent / factor, rounded up),
// then inner (factor). The outer axis must be before the inner one in the order.
struct Split {
  static constexpr std::string_view kName = "split";
  int axis = 0;
  int64_t factor = 1;

  std::string Print() const;
  static absl::StatusOr<Split> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Split&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_SPLIT_H_
