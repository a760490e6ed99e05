// What the generated functions of ops.cc are written with.
#ifndef KILN_CLIENTS_CPP_CALL_H_
#define KILN_CLIENTS_CPP_CALL_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "kiln/graph.h"

namespace kiln::internal {

// "train.cc:31".
std::string SourceOf(const Location& location);

AttributeValue AttributeOf(const Number& number);
AttributeValue AttributeOf(const Dimension& dimension);
AttributeValue AttributeOf(const Dimensions& dimensions);

// Operands of an op that takes any number of the last.
std::vector<std::optional<Operand>> Join(absl::Span<const std::optional<Operand>> first,
                                         absl::Span<const Value> many);

// The op, built by the builder of its first value. Numbers become constants; operands left out at
// the end are left out. Of no value, no value.
Value Call(std::string_view op, absl::Span<const std::optional<Operand>> operands,
           const Attributes& attributes, DType dtype, const Location& location);

}  // namespace kiln::internal

#endif  // KILN_CLIENTS_CPP_CALL_H_
