// A scatter in one form, whatever its axis and the shape of its index, and what its mode means as a
// reduction. Internal to compiler/partition.
#ifndef KILN_COMPILER_PARTITION_SCATTER_LINES_H_
#define KILN_COMPILER_PARTITION_SCATTER_LINES_H_

#include <cstdint>

#include "compiler/ir/node.h"
#include "compiler/ops/builder.h"

namespace kiln::partition {

// Each of L lines has an index of its own: it names, for each of P positions, one of N
// destinations, which a row of C values goes to.
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

// Views alone.
ScatterLines ToLines(ops::Builder& b, const ir::Node* scatter);
// `result`, of the shape of ToLines' x, as the scatter has it.
const ir::Node* FromLines(ops::Builder& b, const ir::Node* result, const ir::Node* scatter);

// Of every mode but kSet: its values are made terms, terms are reduced, and what comes of that is
// made a value again. (There is no reduction to the smallest: it is the largest of what is
// negated.)
const ir::Node* TermOf(ops::Builder& b, ir::ScatterMode mode, const ir::Node* value);
const ir::Node* ValueOf(ops::Builder& b, ir::ScatterMode mode, const ir::Node* term);
const ir::Node* ReduceTerms(ops::Builder& b, ir::ScatterMode mode, const ir::Node* terms,
                            int64_t axis);
// The term that changes nothing.
const ir::Node* NeutralTerm(ops::Builder& b, ir::ScatterMode mode, ir::DType dtype);
// x with values of its own shape combined into it.
const ir::Node* CombineInto(ops::Builder& b, ir::ScatterMode mode, const ir::Node* x,
                            const ir::Node* values);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SCATTER_LINES_H_
