// All kinds of directives. Each has its own pair of files with its meaning, printer and parser.
#ifndef KILN_COMPILER_SCHEDULE_DIRECTIVES_DIRECTIVE_H_
#define KILN_COMPILER_SCHEDULE_DIRECTIVES_DIRECTIVE_H_

#include <variant>

#include "compiler/schedule/directives/ahead.h"
#include "compiler/schedule/directives/bind.h"
#include "compiler/schedule/directives/fuse.h"
#include "compiler/schedule/directives/order.h"
#include "compiler/schedule/directives/pad.h"
#include "compiler/schedule/directives/partial.h"
#include "compiler/schedule/directives/prefetch.h"
#include "compiler/schedule/directives/skip.h"
#include "compiler/schedule/directives/split.h"
#include "compiler/schedule/directives/stage_operand.h"
#include "compiler/schedule/directives/stream.h"

namespace kiln::schedule {

using Directive = std::variant<Fuse, Split, Order, Bind, Partial, StageOperand, Stream, Skip,
                               Prefetch, Ahead, Pad>;

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_DIRECTIVES_DIRECTIVE_H_
