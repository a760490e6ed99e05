// Divides a stage into tasks.
#ifndef KILN_COMPILER_SEARCH_STAGE_TASK_SPLIT_H_
#define KILN_COMPILER_SEARCH_STAGE_TASK_SPLIT_H_

#include <cstdint>
#include <vector>

#include "compiler/search/stage/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Returns the number of tasks for work of this many vector instructions: enough for threads to
// share it evenly, none so small that scheduling it costs more than its work, and none so long that
// other users wait for its end.
int64_t TasksFor(double cost, const drivers::Target& target);

// Appends the axes to the order, outermost first. The outer ones become tasks until there are
// `tasks` of them; one axis may be split for this. Returns how many tasks are still missing.
int64_t AppendTasks(const std::vector<int>& axes, int64_t tasks, ScheduleWriter* writer,
                    std::vector<int>* order);

// Splits the axis into at most `tasks` chunks, each a multiple of `unit` except the last, and
// appends them as tasks. Returns the axis inside a chunk.
int AppendChunks(int axis, int64_t tasks, int64_t unit, ScheduleWriter* writer,
                 std::vector<int>* order);

// Returns how many tasks AppendTasks would return, without writing anything.
int64_t TasksLeft(const std::vector<int>& axes, int64_t tasks, const ScheduleWriter& writer);

// Returns the length of a chunk of AppendChunks; the extent, if it would not split the axis.
int64_t ChunkExtent(int64_t extent, int64_t tasks, int64_t unit);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_TASK_SPLIT_H_
