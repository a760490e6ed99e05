#include "compiler/search/forms/lanes.h"

#include <algorithm>

#include "compiler/search/stage/lane_chooser.h"
#include "compiler/search/stage/task_split.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// Sums of at most this many points and total operations are unrolled completely.
constexpr int64_t kUnrolledPoints = 16;
constexpr int64_t kUnrolledOperations = 160;
// The same for the values that a search may try.
constexpr int64_t kTriedPoints = 64;
// The maximum number of sums in registers at once.
constexpr int64_t kAccumulators = 8;
constexpr int64_t kVectorsStart = 4;
// Outputs of at least this size use non-temporal stores.
constexpr int64_t kStreamedBytes = int64_t{32} << 20;

int64_t BytesWritten(const kernel::Kernel& kernel) {
  int64_t bytes = 0;
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.memory == kernel::Memory::kGlobal && buffer.access == kernel::Access::kWrite) {
      bytes += buffer.elements * ir::SizeOf(buffer.dtype);
    }
  }
  return bytes;
}

}  // namespace

bool UnrollsSum(const StageView& view, const StageWork& work) {
  const int64_t points = view.axes.Product(view.reduce);
  return points <= kUnrolledPoints && points * work.inside_operations <= kUnrolledOperations;
}

int64_t StartTasks(const StageView& view, double cost) {
  return view.shared ? 1 : TasksFor(cost, view.target);
}

KnobValues TasksKnob(const StageView& view, const Values& start) {
  if (view.shared) return Only(Knob::kTasks, 1);
  return Doubling(Knob::kTasks, start[Knob::kTasks], 1, view.axes.Product(view.parallel));
}

int64_t StartVectors(const StageView& view, const StageWork& work, int lane_axis, int lanes) {
  int64_t vectors = 1;
  while (vectors < kVectorsStart && 2 * vectors * lanes <= view.axes.extent(lane_axis) &&
         2 * vectors * work.reductions <= kAccumulators) {
    vectors *= 2;
  }
  return vectors;
}

KnobValues LanesKnob(const StageView& view, const StageWork& work, int lane_axis) {
  const int lanes = LanesFor(view, work, lane_axis);
  return Powers(Knob::kLanes, std::max(lanes / 4, 2), lanes);
}

bool MayBeNonTemporal(const StageView& view) {
  const std::vector<kernel::Store>& stores = view.stage().stores;
  return std::all_of(stores.begin(), stores.end(), [&view](const kernel::Store& store) {
    return view.kernel.buffers[store.buffer].memory == kernel::Memory::kGlobal;
  });
}

bool StartNonTemporal(const StageView& view) {
  return MayBeNonTemporal(view) && BytesWritten(view.kernel) >= kStreamedBytes;
}

bool HasSharedSteps(const StageView& view, const StageWork& work, const std::vector<int>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](int axis) { return SharedSteps(work, view.axes[axis].range) > 1; });
}

std::vector<int> AxesWithout(const std::vector<int>& axes, int axis) {
  std::vector<int> others;
  for (const int other : axes) {
    if (other != axis) others.push_back(other);
  }
  return others;
}

std::vector<int> ShareSteps(const StageView& view, const Values& values,
                            const std::vector<int>& axes, ScheduleWriter* writer,
                            std::vector<int>* inner) {
  if (values[Knob::kSharedSteps] == 0) return axes;
  const StageWork work = WorkOf(view.stage());
  std::vector<int> outer;
  for (const int axis : axes) {
    const int64_t steps = SharedSteps(work, view.axes[axis].range);
    if (steps == 1 || view.axes.extent(axis) % steps != 0) {
      outer.push_back(axis);
      continue;
    }
    const auto [rest, few] = writer->Split(axis, steps);
    writer->Bind(few, Binding::kUnroll);
    outer.push_back(rest);
    inner->push_back(few);
  }
  return outer;
}

void AppendAxes(const std::vector<int>& axes, std::vector<int>* order) {
  order->insert(order->end(), axes.begin(), axes.end());
}

void FinishLanes(const StageView& view, const Values& values, const std::vector<int>& order,
                 ScheduleWriter* writer) {
  if (!order.empty()) writer->Order(view.number, order);
  if (values[Knob::kNonTemporal] == 1) writer->Stream(view.number);
}

double EstimateLanes(const StageView& view, const Values& values) {
  std::vector<int> all = view.parallel;
  AppendAxes(view.reduce, &all);
  const int axis = values.Has(Knob::kLaneAxis) ? view.Find(all, values[Knob::kLaneAxis]) : -1;
  const int64_t lanes = axis < 0 ? 1 : values[Knob::kLanes];
  return CostAlong(view, WorkOf(view.stage()), axis, static_cast<int>(lanes));
}

std::optional<Values> StartScalar(const StageView& view, const int64_t* /*leading*/) {
  if (!view.stage().ordered_ranges.empty()) return std::nullopt;
  const StageWork work = WorkOf(view.stage());
  return Values{{Knob::kTasks, StartTasks(view, CostAlong(view, work, -1, 1))},
                {Knob::kUnrollSum, !view.reduce.empty() && UnrollsSum(view, work)},
                {Knob::kNonTemporal, StartNonTemporal(view)}};
}

std::vector<KnobValues> ScalarKnobs(const StageView& view, const Values& start) {
  const int64_t points = view.axes.Product(view.reduce);
  return {TasksKnob(view, start),
          Switch(Knob::kUnrollSum, !view.reduce.empty() && points <= kTriedPoints),
          Switch(Knob::kNonTemporal, MayBeNonTemporal(view))};
}

void WriteScalar(const StageView& view, const Values& values, ScheduleWriter* writer) {
  std::vector<int> order;
  AppendTasks(view.parallel, values[Knob::kTasks], writer, &order);
  if (values[Knob::kUnrollSum] == 1) {
    for (const int axis : view.reduce) writer->Bind(axis, Binding::kUnroll);
  }
  AppendAxes(view.reduce, &order);
  FinishLanes(view, values, order, writer);
}

std::optional<Values> StartSumLanes(const StageView& view, const int64_t* leading) {
  if (!view.stage().ordered_ranges.empty()) return std::nullopt;
  const StageWork work = WorkOf(view.stage());
  const LaneChoice choice = BestLanes(view, work, true, leading);
  if (choice.axis < 0) return std::nullopt;
  const int lanes = LanesFor(view, work, choice.axis);
  const std::vector<int> others = AxesWithout(view.reduce, choice.axis);
  return Values{{Knob::kLaneAxis, view.axes.RangeOf(choice.axis)},
                {Knob::kLanes, lanes},
                {Knob::kVectors, StartVectors(view, work, choice.axis, lanes)},
                {Knob::kSharedSteps, HasSharedSteps(view, work, others)},
                {Knob::kTasks, StartTasks(view, choice.cost)},
                {Knob::kNonTemporal, 0}};
}

std::vector<KnobValues> SumLanesKnobs(const StageView& view, const Values& start) {
  const StageWork work = WorkOf(view.stage());
  return {Axes(Knob::kLaneAxis, view, LaneAxes(view, work, true)),
          LanesKnob(view, work, view.Find(view.reduce, start[Knob::kLaneAxis])),
          Powers(Knob::kVectors, 1, kAccumulators),
          Switch(Knob::kSharedSteps, HasSharedSteps(view, work, view.reduce)),
          TasksKnob(view, start),
          Only(Knob::kNonTemporal, 0)};
}

void WriteSumLanes(const StageView& view, const Values& values, ScheduleWriter* writer) {
  const int vector = view.Find(view.reduce, values[Knob::kLaneAxis]);
  const int64_t lanes = values[Knob::kLanes];
  const int64_t vectors = values[Knob::kVectors];
  std::vector<int> order, steps;
  AppendTasks(view.parallel, values[Knob::kTasks], writer, &order);
  AppendAxes(ShareSteps(view, values, AxesWithout(view.reduce, vector), writer, &steps), &order);
  auto [outer, lane] = writer->Split(vector, lanes * vectors);
  order.push_back(outer);
  AppendAxes(steps, &order);
  if (vectors > 1) {
    const auto [copy, lane_of_copy] = writer->Split(lane, lanes);
    writer->Bind(copy, Binding::kUnroll);
    writer->Partial(copy);
    order.push_back(copy);
    lane = lane_of_copy;
  }
  writer->Bind(lane, Binding::kVector);
  order.push_back(lane);
  FinishLanes(view, values, order, writer);
}

}  // namespace kiln::search
