// The laws of shapes at the tensor level, as predicates over a node whose operand count and
// attribute kind are right.
#ifndef KILN_COMPILER_IR_SPEC_SHAPES_H_
#define KILN_COMPILER_IR_SPEC_SHAPES_H_

#include <string_view>

#include "compiler/ir/node.h"

namespace kiln::ir {

struct ShapeLaw {
  std::string_view text;  // "the law is: …", for messages
  bool (*holds)(const Node& node);
};

extern const ShapeLaw kAnyShapeLaw;
extern const ShapeLaw kScalarShapeLaw;
extern const ShapeLaw kIotaShapeLaw;
extern const ShapeLaw kSameShapeLaw;  // every operand has the node's shape
extern const ShapeLaw kReduceShapeLaw;
extern const ShapeLaw kReshapeShapeLaw;
extern const ShapeLaw kPermuteShapeLaw;
extern const ShapeLaw kExpandShapeLaw;
extern const ShapeLaw kPadShapeLaw;
extern const ShapeLaw kShrinkShapeLaw;
extern const ShapeLaw kFlipShapeLaw;
extern const ShapeLaw kWindowShapeLaw;
extern const ShapeLaw kUnwindowShapeLaw;
extern const ShapeLaw kGatherElementsShapeLaw;
extern const ShapeLaw kScatterElementsShapeLaw;
extern const ShapeLaw kSendShapeLaw;   // the device numbers are valid
extern const ShapeLaw kShardShapeLaw;  // the spec is as node.h describes
extern const ShapeLaw kGradientShapeLaw;

}  // namespace kiln::ir

#endif  // KILN_COMPILER_IR_SPEC_SHAPES_H_
