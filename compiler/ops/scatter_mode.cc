#include "compiler/ops/scatter_mode.h"

#include "compiler/ops/attributes.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {

AttributeDef ScatterModeAttribute() {
  return OneOf(OptionalString("mode", "set"), {"set", "add", "mul", "max", "min"});
}

ir::ScatterMode ScatterModeOf(const Attributes& attributes) {
  return ir::ParseScatterMode(StringOf(attributes, "mode")).value();
}

}  // namespace kiln::ops
