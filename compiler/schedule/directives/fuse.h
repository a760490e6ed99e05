#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_FUSE_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_FUSE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "fuse OUTER INNER": two ranges that occur only as outer * extent(inner) + inner become one axis,
// which is appended. Other pairs are refused, since they would need divisions.
struct Fuse {
  static constexpr std::string_view kName = "fuse";
  int outer = 0;
  int inner = 0;

  std::string Print() const;
  static absl::StatusOr<Fuse> Parse(absl::Span<const std::string_view> words);
  bool operator==(const Fuse&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_FUSE_H_
