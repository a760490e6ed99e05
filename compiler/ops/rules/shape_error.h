// Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_RULES_SHAPE_ERROR_H_
#define KILN_COMPILER_OPS_RULES_SHAPE_ERROR_H_

#include "absl/status/status.h"
#include "compiler/ir/str_cat.h"

namespace kiln::ops {

template <typename... Parts>
absl::Status ShapeError(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_SHAPE_ERROR_H_
