// Sums of products: matmuls, convolutions and their gradients.
#ifndef KILN_COMPILER_PARTITION_CONTRACTION_H_
#define KILN_COMPILER_PARTITION_CONTRACTION_H_

#include "compiler/ir/node.h"

namespace kiln::partition {

// Returns the product that a reduction sums up, below views and casts; null if there is none.
const ir::Node* ProductOf(const ir::Node* reduction);

// Returns whether the reduction is a sum of products of two operands that are each read many times:
// a matmul or a convolution.
bool IsContraction(const ir::Node* node);

// Returns approximately the number of rows or of columns, whichever is smaller, of the matrix of a
// contraction's results.
double TileSide(const ir::Node* contraction);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CONTRACTION_H_
