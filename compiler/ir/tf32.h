// tf32, the format in which matrix units read float32: its exponent and 10 of its 23 bits of
// fraction.
#ifndef KILN_COMPILER_IR_TF32_H_
#define KILN_COMPILER_IR_TF32_H_

#include <cstdint>

#include "compiler/ir/node.h"

namespace kiln::ir {

// The bits of a float32 that tf32 keeps.
inline constexpr uint32_t kTf32Mask = 0xffffe000;
inline constexpr int kTf32DroppedBits = 13;

// If `node` is an `and` that clears the bits of a 32-bit value that tf32 does not have, returns the
// masked operand; else null. Works at both levels.
const Node* UnderTf32Mask(const Node* node);
// Returns whether the node is a float32 made of such bits: then a tf32 matrix unit reads it
// exactly.
bool IsRoundedToTf32(const Node* node);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_TF32_H_
