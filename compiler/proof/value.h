// The numbers that a proof computes with. Integers and booleans are exact, and wrap like their
// dtype. A float is an element of the ring of integers modulo 2^64: sums and products may be
// reordered, 0 and 1 are themselves, and every other operation gives a number that depends only on
// its operands. Two expressions that agree at random inputs then, except with a probability of
// about 2^-60, consist of the same operations on the same elements.
#ifndef KILN_COMPILER_PROOF_VALUE_H_
#define KILN_COMPILER_PROOF_VALUE_H_

#include <cstdint>

#include "compiler/ir/node.h"

namespace kiln::proof {

using Value = int64_t;

// Returns a number that depends on all bits of `a` and `b` (the finaliser of SplitMix64; Steele et
// al., 2014).
uint64_t Mix(uint64_t a, uint64_t b);

// Returns the assumed value of an element of the kernel's input; other seeds give other inputs.
// Integers are mostly small and some are negative or large, since they may be indices or lengths.
Value InputElement(uint64_t seed, int buffer, ir::DType dtype, int64_t index);

Value OfConstant(const ir::Node* constant);

// `operands` are up to three values; `operand` is the dtype of the first one.
Value Apply(ir::Op op, ir::DType dtype, ir::DType operand, const Value* operands, int count);

// The initial value of a reduction, and one step of it.
Value Identity(ir::ReduceKind kind, ir::DType dtype);
Value Combine(ir::ReduceKind kind, ir::DType dtype, Value a, Value b);

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_VALUE_H_
