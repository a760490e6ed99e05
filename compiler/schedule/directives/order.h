#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_ORDER_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_ORDER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "order STAGE AXIS…": the loops of a stage, outermost first; all its axes, each once. Stage -1 is
// the grid that several stages share; a kernel's only stage includes the grid's axes. The default
// is the order of the axes' numbers, with reductions innermost.
struct Order {
  static constexpr std::string_view kName = "order";
  int stage = 0;
  std::vector<int> axes;

  std::string Print() const;
  static absl::StatusOr<Order> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Order&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_ORDER_H_
