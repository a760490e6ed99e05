#include "compiler/search/thread_chooser.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/plan.h"
#include "compiler/search/block_chooser.h"
#include "compiler/search/contraction.h"
#include "compiler/search/partial_sums.h"
#include "compiler/search/schedule_writer.h"

namespace kiln::search {
namespace {

void MakeTasks(const std::vector<int>& axes, ScheduleWriter* writer) {
  for (const int axis : axes) writer->Bind(axis, schedule::Binding::kTask);
}

// Wider accesses do not pay off if they leave fewer than this many threads for each one that a unit
// keeps running.
constexpr int64_t kThreadsEach = 2;

// Returns how many neighbours along the last task axis a thread takes at once: as many as one
// instruction reads or writes, so that more memory accesses are in flight. Returns 1 if they are
// not adjacent in memory, or if too few threads would be left.
int64_t LanesFor(const kernel::Kernel& kernel, int stage, const std::vector<int>& tasks,
                 const ScheduleWriter& writer, const drivers::Target& target) {
  const kernel::Stage& of = kernel.stages[stage];
  if (tasks.empty() || !of.reduce_ranges.empty() || !of.ordered_ranges.empty()) return 1;
  int64_t lanes = target.limits.bytes_per_access;
  for (const kernel::Buffer& buffer : kernel.buffers) {
    lanes = std::min<int64_t>(lanes, target.limits.bytes_per_access / ir::SizeOf(buffer.dtype));
  }
  const int last = tasks.back();
  const ir::Node* range = writer[last].range;
  for (const kernel::Store& store : of.stores) {
    const kernel::Sum to = kernel::SumOf(store.index);
    const bool along = to.Coefficient(range) == 1 && store.valid == nullptr &&
                       std::all_of(to.terms.begin(), to.terms.end(), [range](const auto& term) {
                         return term.atom == range || !kernel::DependsOn(term.atom, range);
                       });
    if (!along || StepOf(store.value, range) > 1) return 1;
  }
  const int64_t wanted =
      kThreadsEach * target.limits.compute_units * target.limits.threads_per_unit;
  if (lanes < 2 || writer.extent(last) % lanes != 0 || writer.Product(tasks) / lanes < wanted) {
    return 1;
  }
  return lanes;
}

// `tasks`: the loops that become tasks.
void ChooseStageThreads(const kernel::Kernel& kernel, int stage, std::vector<int> tasks,
                        std::vector<int> points, const drivers::Target& target,
                        ScheduleWriter* writer) {
  if (const int64_t lanes = LanesFor(kernel, stage, tasks, *writer, target); lanes > 1) {
    const auto [outer, inner] = writer->Split(tasks.back(), lanes);
    tasks.back() = outer;
    writer->Bind(inner, schedule::Binding::kVector);
    points.push_back(inner);
  }
  MakeTasks(tasks, writer);
  std::vector<int> order = tasks;
  order.insert(order.end(), points.begin(), points.end());
  const bool scatters = !kernel.stages[stage].ordered_ranges.empty();
  const std::vector<int> serial =
      scatters ? writer->ordered_ranges(stage)
               : CutSums(writer->FuseAll(writer->reduce_ranges(stage)), writer);
  order.insert(order.end(), serial.begin(), serial.end());
  if (!order.empty()) writer->Order(stage, order);
}

}  // namespace

schedule::Schedule ChooseThreads(const kernel::Kernel& kernel, const drivers::Target& target) {
  if (auto blocks = ChooseBlocks(kernel, target)) return *std::move(blocks);
  schedule::Schedule schedule;
  ScheduleWriter writer(kernel, &schedule);
  const bool shared = schedule::SharesGrid(kernel);
  if (shared) {
    const std::vector<int> grid = writer.FuseAll(writer.grid());
    MakeTasks(grid, &writer);
    if (!grid.empty()) writer.Order(-1, grid);
  }
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    if (shared) {
      ChooseStageThreads(kernel, stage, {}, writer.ranges(stage), target, &writer);
      continue;
    }
    std::vector<int> tasks = writer.grid();
    tasks.insert(tasks.end(), writer.ranges(stage).begin(), writer.ranges(stage).end());
    ChooseStageThreads(kernel, stage, writer.FuseAll(tasks), {}, target, &writer);
  }
  return schedule;
}

}  // namespace kiln::search
