// Attributes in the text form: "axes=[0,1]", "value=0.5", "id=3 extent=16". Used only by text.cc
// and text_parse.cc.
#ifndef KILN_COMPILER_IR_TEXT_ATTRIBUTE_H_
#define KILN_COMPILER_IR_TEXT_ATTRIBUTE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/node.h"

namespace kiln::ir {

// Returns "key=value" pairs in the op's order, separated by spaces; empty for no attribute.
std::string AttributeText(Op op, DType dtype, const Attribute& attribute);

using Field = std::pair<std::string_view, std::string_view>;  // key, value
// Returns the attribute of `op`. INVALID_ARGUMENT if a key is missing, unknown or out of order, or
// if its value does not parse.
absl::StatusOr<Attribute> ParseAttribute(Op op, DType dtype, const std::vector<Field>& fields);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_TEXT_ATTRIBUTE_H_
