// All kinds of directives. Each has its own pair of files with its meaning, printer and parser.
#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVE_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVE_H_

#include <variant>

#include "compiler/schedule/ahead.h"
#include "compiler/schedule/bind.h"
#include "compiler/schedule/fuse.h"
#include "compiler/schedule/order.h"
#include "compiler/schedule/pad.h"
#include "compiler/schedule/partial.h"
#include "compiler/schedule/prefetch.h"
#include "compiler/schedule/split.h"
#include "compiler/schedule/stage_operand.h"
#include "compiler/schedule/stream.h"

namespace kiln::schedule {

using Directive =
    std::variant<Fuse, Split, Order, Bind, Partial, StageOperand, Stream, Prefetch, Ahead, Pad>;

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVE_H_
