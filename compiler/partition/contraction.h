// Sums of products: matmuls, convolutions and their gradients.
#ifndef KILN_COMPILER_PARTITION_CONTRACTION_H_
#define KILN_COMPILER_PARTITION_CONTRACTION_H_

#include "compiler/ir/node.h"

namespace kiln::partition {

// The product that a reduction sums up, behind views and casts; null if it sums up anything else.
const ir::Node* ProductOf(const ir::Node* reduction);

// Whether the reduction is a sum of products of two operands that are each read many times: a
// matmul or a convolution.
bool IsContraction(const ir::Node* node);

// Of a contraction: about as many rows, or columns if there are fewer, has a matrix of its results.
double TileSide(const ir::Node* contraction);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CONTRACTION_H_
