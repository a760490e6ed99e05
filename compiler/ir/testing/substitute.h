// Replaces nodes by other nodes.
#ifndef KILN_COMPILER_IR_TESTING_SUBSTITUTE_H_
#define KILN_COMPILER_IR_TESTING_SUBSTITUTE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::ir {

// Returns `roots` with every occurrence of a key replaced by its value. The values themselves are
// not substituted again.
using Substitution = absl::flat_hash_map<const Node*, const Node*>;
std::vector<const Node*> Substitute(Context& context, absl::Span<const Node* const> roots,
                                    const Substitution& substitution);
const Node* Substitute(Context& context, const Node* root, const Substitution& substitution);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_TESTING_SUBSTITUTE_H_
