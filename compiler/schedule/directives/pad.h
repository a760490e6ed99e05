#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_PAD_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_PAD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "pad AXIS MULTIPLE": extends the axis to the next multiple. Past its end loads give zero without
// reading, and nothing is stored: all tiles are whole, at the cost of some wasted work. Only for
// blocks of threads, and before the axis is split. A summed axis can be padded only on matrix
// units, where products of zeros add nothing.
struct Pad {
  static constexpr std::string_view kName = "pad";
  int axis = 0;
  int64_t multiple = 1;

  std::string Print() const;
  static absl::StatusOr<Pad> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Pad&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_PAD_H_
