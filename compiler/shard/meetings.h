// When devices meet: before they read what others publish, and again before anybody writes over it.
#ifndef KILN_COMPILER_SHARD_MEETINGS_H_
#define KILN_COMPILER_SHARD_MEETINGS_H_

#include "compiler/shard/program.h"

namespace kiln::shard {

// Adds the meetings of a program whose segments are complete, and makes what is published live
// until the next meeting of those who read it.
void PlanMeetings(Program* program);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_MEETINGS_H_
