#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_FUSE_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_FUSE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "fuse OUTER INNER": two ranges become one axis, outer * extent(inner) + inner, which is appended.
// Ranges that occur in any other way than as this sum are computed from it, by division.
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
