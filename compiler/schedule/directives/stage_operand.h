#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_STAGE_OPERAND_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_STAGE_OPERAND_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::schedule {

// "stage STAGE OPERAND AXIS LANES DIMENSION…": computes a factor of the stage's product (0 left, 1
// right; the product is the term of its first sum) into scratch, before the loops inside AXIS, for
// everything that they need of it. AXIS -1: once for each task.
//
// The dimensions give the layout, outermost first. Each is an axis as it was before splits, or a
// sum of axes with coefficients on which the operand depends only as a whole, such as the rows oh +
// kh of a convolution's input ("1*2+1*5"). Where the conditions of the operand's loads are false,
// scratch has zeros, so that the inner loops need no conditions. The last dimension is padded with
// zeros to whole vectors of `lanes`, 2 or more. If tasks have threads, all of them copy into shared
// memory, `lanes` adjacent elements at a time (1: single elements). The distance between rows is an
// odd number of such vectors, so that those of different rows are in different banks.
struct StageOperand {
  static constexpr std::string_view kName = "stage";
  struct Term {
    int64_t coefficient = 1;
    int axis = 0;
    bool operator==(const Term&) const = default;
  };
  using Dimension = std::vector<Term>;

  int stage = 0;
  int operand = 0;
  int at = -1;
  int lanes = 1;
  std::vector<Dimension> layout;

  std::string Print() const;
  static absl::StatusOr<StageOperand> Parse(absl::Span<const std::string_view> words);
  bool operator==(const StageOperand&) const = default;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_STAGE_OPERAND_H_
