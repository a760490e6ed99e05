// Functions that the table of ops expresses by primitives, and that lose digits when computed that
// way: a product's rounding error grows with the argument, or a difference cancels. They are
// recognized by their form.
#ifndef KILN_COMPILER_CODEGEN_MATH_COMPOSITE_H_
#define KILN_COMPILER_CODEGEN_MATH_COMPOSITE_H_

#include <optional>

#include "compiler/ir/node.h"

namespace kiln::codegen {

struct MathComposite {
  enum class Kind {
    kExp,         // exp2(x * log2(e))
    kExpOfMinus,  // exp2(x * -log2(e))
    kLog,         // log2(x) * log(2)
    kCos,         // 1 - 2 sin(x / 2)^2
  };
  Kind kind;
  const ir::Node* argument;  // x
};

// The constants must be log2(e) or log(2), rounded to the node's dtype; they may be on either side.
std::optional<MathComposite> MatchComposite(const ir::Node* node);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_MATH_COMPOSITE_H_
