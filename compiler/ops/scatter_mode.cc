#include "compiler/ops/scatter_mode.h"

#include "compiler/ir/str_cat.h"
#include "compiler/ops/attributes.h"

namespace kiln::ops {

absl::StatusOr<ir::ScatterMode> ScatterModeOf(const Attributes& attributes, const ir::Node* x,
                                              const ir::Node* values) {
  const std::string& name = StringOf(attributes, "mode");
  const std::optional<ir::ScatterMode> mode = ir::ParseScatterMode(name);
  if (!mode.has_value()) {
    return absl::InvalidArgumentError(
        StrCat("mode \"", name, "\"; it must be set, add, mul, max or min"));
  }
  if (values->dtype() != x->dtype()) {
    return absl::InvalidArgumentError(StrCat("values of ", ir::Name(values->dtype()),
                                             " to scatter into ", ir::Name(x->dtype()),
                                             "; both must have one dtype"));
  }
  if (*mode != ir::ScatterMode::kSet && x->dtype() == ir::DType::kBool) {
    return absl::InvalidArgumentError(
        StrCat("mode \"", name, "\" of bools; it must be set, or x and values numbers"));
  }
  return *mode;
}

}  // namespace kiln::ops
