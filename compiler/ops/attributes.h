// Attributes of wire nodes: checks them against an op's row, fills in its defaults, and reads them.
#ifndef KILN_COMPILER_OPS_ATTRIBUTES_H_
#define KILN_COMPILER_OPS_ATTRIBUTES_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// "int", "float", "bool", "string", "ints", "shape" or "number".
std::string_view Name(AttributeDef::Type type);
// "any", "positive", "not_negative", "not_zero" or "fraction".
std::string_view Name(AttributeDef::Range range);

// Returns `attributes` with the row's defaults filled in, and integers converted to floats where
// the row says kFloat. INVALID_ARGUMENT names an attribute that is unknown, missing, of the wrong
// type, or not allowed by the row.
absl::StatusOr<Attributes> CompleteAttributes(const OpDef& op, const Attributes& attributes);

// Return values of completed attributes. A missing name or another type is a defect of Kiln and
// ends the process.
int64_t IntOf(const Attributes& attributes, std::string_view name);
double FloatOf(const Attributes& attributes, std::string_view name);
bool BoolOf(const Attributes& attributes, std::string_view name);
const std::string& StringOf(const Attributes& attributes, std::string_view name);
const std::vector<int64_t>& IntsOf(const Attributes& attributes, std::string_view name);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_ATTRIBUTES_H_
