// tf32, the format in which matrix units take float32: its exponent, and 10 of its 23 bits behind
// the point.
#ifndef KILN_COMPILER_IR_TF32_H_
#define KILN_COMPILER_IR_TF32_H_

#include <cstdint>

#include "compiler/ir/node.h"

namespace kiln::ir {

// The bits of a float32 that tf32 has.
inline constexpr uint32_t kTf32Mask = 0xffffe000;
inline constexpr int kTf32DroppedBits = 13;

// At any level: what an `and` masks that leaves of 32 bits no more than tf32 has; else null.
const Node* UnderTf32Mask(const Node* node);
// Whether the node is a float32 made of such bits: a matrix unit that takes tf32 leaves nothing of
// it out.
bool IsRoundedToTf32(const Node* node);

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_TF32_H_
