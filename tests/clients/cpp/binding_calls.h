// The cases of binding_cases.h as calls of kiln/ops.h. print_binding_calls writes their source.
#ifndef KILN_TESTS_CLIENTS_CPP_BINDING_CALLS_H_
#define KILN_TESTS_CLIENTS_CPP_BINDING_CALLS_H_

#include <string_view>

#include "absl/types/span.h"
#include "kiln/graph.h"

namespace kiln::bindings {

struct Call {
  std::string_view name;  // the case's
  // The op of operands `x`, by its binding, with the case's attributes alone.
  Value (*make)(GraphBuilder& builder, absl::Span<const Value> x);
};

// In the cases' order.
absl::Span<const Call> Calls();

}  // namespace kiln::bindings

#endif  // KILN_TESTS_CLIENTS_CPP_BINDING_CALLS_H_
