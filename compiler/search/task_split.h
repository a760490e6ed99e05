// How many tasks a stage becomes, and which loops they are.
#ifndef KILN_COMPILER_SEARCH_TASK_SPLIT_H_
#define KILN_COMPILER_SEARCH_TASK_SPLIT_H_

#include <cstdint>
#include <vector>

#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// For work of so many vector instructions: enough for threads to share evenly, none so small that
// handing it out costs more than doing it, and none so long that other users wait for its end.
int64_t TasksFor(double cost, const drivers::Target& target);

// Appends the axes to the order, outermost first; the outer ones become tasks until there are
// `tasks` of them, one is split for it. Returns how many tasks are still wanted.
int64_t AppendTasks(const std::vector<int>& axes, int64_t tasks, ScheduleWriter* writer,
                    std::vector<int>* order);

// Splits the axis into `tasks` chunks, or fewer, each a multiple of `unit` but for the last; they
// are appended as tasks. Returns the axis inside a chunk.
int AppendChunks(int axis, int64_t tasks, int64_t unit, ScheduleWriter* writer,
                 std::vector<int>* order);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_TASK_SPLIT_H_
