// Helpers for the generated functions in ops.cc.
#ifndef KILN_CLIENTS_CPP_CALL_H_
#define KILN_CLIENTS_CPP_CALL_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "kiln/graph.h"

namespace kiln::internal {

// Returns "train.cc:31".
std::string SourceOf(const Location& location);

AttributeValue AttributeOf(const Number& number);
AttributeValue AttributeOf(const Dimension& dimension);
AttributeValue AttributeOf(const Dimensions& dimensions);

// Returns the operands of an op that takes any number of its last operand.
std::vector<std::optional<Operand>> Join(absl::Span<const std::optional<Operand>> first,
                                         absl::Span<const Value> many);

// Adds the op to the builder of its first value. Numbers become constants; missing operands at the
// end are dropped. Without any value among the operands, returns a default-constructed Value.
Value Call(std::string_view op, absl::Span<const std::optional<Operand>> operands,
           const Attributes& attributes, DType dtype, const Location& location);

}  // namespace kiln::internal

#endif  // KILN_CLIENTS_CPP_CALL_H_
