// Plans the barriers between devices: before they read what others publish, and again before any
// device overwrites it.
#ifndef KILN_COMPILER_SHARD_MEETINGS_H_
#define KILN_COMPILER_SHARD_MEETINGS_H_

#include "compiler/shard/program.h"

namespace kiln::shard {

// Adds the barriers of a program whose segments are complete. Extends the lifetime of published
// buffers to the next barrier of the devices that read them.
void PlanMeetings(Program* program);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_MEETINGS_H_
