// A canonical form of scatters, for any axis and index shape, and the meaning of their modes as
// reductions. Internal to partition/scatter.
#ifndef KILN_COMPILER_PARTITION_SCATTER_LINES_H_
#define KILN_COMPILER_PARTITION_SCATTER_LINES_H_

#include <cstdint>

#include "compiler/ir/node.h"
#include "compiler/ops/builder.h"

namespace kiln::partition {

// Each of L lines has its own index, which gives for each of P positions one of N destinations. A
// row of C values goes to that destination.
struct ScatterLines {
  const ir::Node* x = nullptr;       // [L, N, C]
  const ir::Node* index = nullptr;   // [L, P], int64
  const ir::Node* values = nullptr;  // [L, P, C]
  ir::ScatterMode mode = ir::ScatterMode::kSet;

  int64_t lines() const { return x->shape()[0]; }
  int64_t destinations() const { return x->shape()[1]; }
  int64_t positions() const { return index->shape()[1]; }
  int64_t columns() const { return x->shape()[2]; }
};

// Uses only views.
ScatterLines ToLines(ops::Builder& b, const ir::Node* scatter);
// Returns `result`, which has the shape of ToLines' x, in the scatter's shape.
const ir::Node* FromLines(ops::Builder& b, const ir::Node* result, const ir::Node* scatter);

// For every mode except kSet: values are converted to terms, terms are reduced, and the result is
// converted back to a value. (There is no minimum reduction: it is the maximum of the negated
// values.)
const ir::Node* TermOf(ops::Builder& b, ir::ScatterMode mode, const ir::Node* value);
const ir::Node* ValueOf(ops::Builder& b, ir::ScatterMode mode, const ir::Node* term);
const ir::Node* ReduceTerms(ops::Builder& b, ir::ScatterMode mode, const ir::Node* terms,
                            int64_t axis);
// Returns the neutral term.
const ir::Node* NeutralTerm(ops::Builder& b, ir::ScatterMode mode, ir::DType dtype);
// Combines values into x, which has the same shape.
const ir::Node* CombineInto(ops::Builder& b, ir::ScatterMode mode, const ir::Node* x,
                            const ir::Node* values);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SCATTER_LINES_H_
