#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_SKIP_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_SKIP_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "skip STAGE": terms of this stage's sums are left out where a condition fails without which they
// add nothing, such as the padding of a convolution. A branch tests each condition as far out as
// its loops are open. Conditions on the loops inside all loops of the sum (the tile) and on lanes
// are not tested: there the terms are computed. A term with a zero factor is then left out even if
// the other factor is infinite. Not where blocks of threads run a task.
struct Skip {
  static constexpr std::string_view kName = "skip";
  int stage = 0;

  std::string Print() const;
  static absl::StatusOr<Skip> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Skip&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_SKIP_H_
