#ifndef KILN_COMPILER_SCHEDULE_PAD_H_
#define KILN_COMPILER_SCHEDULE_PAD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "pad AXIS MULTIPLE": the axis goes on to the next multiple. Beyond its end nothing is read, zeros
// stand for what would have been, and nothing is stored: whole tiles at the price of some work for
// nothing. Only of blocks of threads, and before the axis is split; an axis that is summed over only
// on matrix units, where products of zeros add nothing.
struct Pad {
  static constexpr std::string_view kName = "pad";
  int axis = 0;
  int64_t multiple = 1;

  std::string Print() const;
  static absl::StatusOr<Pad> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Pad&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_PAD_H_
