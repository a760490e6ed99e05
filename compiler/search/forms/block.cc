#include "compiler/search/forms/block.h"

#include <algorithm>

#include "compiler/search/forms/lanes.h"
#include "compiler/search/forms/partial_sums.h"

namespace kiln::search {
namespace {

using schedule::Binding;

constexpr int64_t kBlockThreadsMax = 256;

// Returns the threads that the heuristic gives a loop.
int64_t StartThreads(const StageView& view, int64_t extent) {
  const int64_t threads_max =
      std::min<int64_t>(kBlockThreadsMax, view.target.limits.threads_per_block);
  int64_t threads = kBlockThreadsMin;
  while (threads * 2 <= std::min(threads_max, extent)) threads *= 2;
  return threads;
}

KnobValues ThreadsKnob(const StageView& view) {
  return Powers(Knob::kThreads, kBlockThreadsMin,
                std::max<int64_t>(view.target.limits.threads_per_block, kBlockThreadsMin));
}

// A stage without tasks of its own runs within one.
Binding OuterBinding(const StageView& view) {
  return view.shared ? Binding::kSerial : Binding::kTask;
}

int64_t SumLength(const StageView& view) {
  return view.reduce.empty() ? 1 : view.axes.extent(view.reduce.back());
}

int64_t PieceOf(const StageView& view, int axis, int64_t threads) {
  return (view.axes.extent(axis) + threads - 1) / threads;
}

}  // namespace

std::optional<Values> StartBlockPoints(const StageView& view, const int64_t* /*leading*/) {
  const int64_t threads =
      view.parallel.empty() ? 1 : StartThreads(view, view.axes.extent(view.parallel.back()));
  const bool scatters = !view.stage().ordered_ranges.empty();
  return Values{{Knob::kThreads, threads},
                {Knob::kPartialSums, scatters ? 1 : StartPartialSums(SumLength(view))}};
}

std::vector<KnobValues> BlockPointsKnobs(const StageView& view, const Values& /*start*/) {
  return {view.parallel.empty() ? Only(Knob::kThreads, 1) : ThreadsKnob(view),
          PartialSumsKnob(SumLength(view))};
}

void WriteBlockPoints(const StageView& view, const Values& values, ScheduleWriter* writer) {
  std::vector<int> order = view.parallel;
  if (!order.empty()) {
    const auto [outer, inner] = writer->Split(order.back(), values[Knob::kThreads]);
    order.back() = outer;
    for (const int axis : order) writer->Bind(axis, OuterBinding(view));
    writer->Bind(inner, Binding::kThread);
    order.push_back(inner);
  }
  const bool scatters = !view.stage().ordered_ranges.empty();
  AppendAxes(scatters ? view.axes.ordered_ranges(view.number)
                      : CutSums(view.reduce, values[Knob::kPartialSums], writer),
             &order);
  if (!order.empty()) writer->Order(view.number, order);
}

std::optional<Values> StartBlockSum(const StageView& view, const int64_t* leading) {
  if (view.reduce.empty()) return std::nullopt;
  // The shared axis is the one along memory, unless it is too short.
  int axis = view.reduce.back();
  for (const int other : view.reduce) {
    const bool longer = view.axes.extent(other) > view.axes.extent(axis);
    if (view.axes.extent(axis) < kBlockThreadsMin && longer) axis = other;
  }
  if (leading != nullptr) axis = view.Find(view.reduce, *leading);
  const int64_t threads = StartThreads(view, view.axes.extent(axis));
  const bool even = view.axes.extent(axis) % threads == 0;
  return Values{{Knob::kThreadAxis, view.axes.RangeOf(axis)},
                {Knob::kThreads, threads},
                {Knob::kPartialSums, even ? StartPartialSums(PieceOf(view, axis, threads)) : 1}};
}

std::vector<KnobValues> BlockSumKnobs(const StageView& view, const Values& start) {
  const int axis = view.Find(view.reduce, start[Knob::kThreadAxis]);
  return {Axes(Knob::kThreadAxis, view, view.reduce), ThreadsKnob(view),
          PartialSumsKnob(PieceOf(view, axis, kBlockThreadsMin))};
}

absl::Status CheckBlockSum(const StageView& view, const Values& values) {
  if (values[Knob::kPartialSums] == 1) return absl::OkStatus();
  const int axis = view.Find(view.reduce, values[Knob::kThreadAxis]);
  if (view.axes.extent(axis) % values[Knob::kThreads] != 0) {
    return Unfit("threads that end early have no last partial sum");
  }
  if (values[Knob::kPartialSums] > PieceOf(view, axis, values[Knob::kThreads])) {
    return Unfit("there are more partial sums than terms");
  }
  return absl::OkStatus();
}

void WriteBlockSum(const StageView& view, const Values& values, ScheduleWriter* writer) {
  for (const int axis : view.parallel) writer->Bind(axis, OuterBinding(view));
  std::vector<int> order = view.parallel;
  const int shared = view.Find(view.reduce, values[Knob::kThreadAxis]);
  std::vector<int> reduce = AxesWithout(view.reduce, shared);
  const auto [outer, inner] = writer->Split(shared, values[Knob::kThreads]);
  writer->Bind(inner, Binding::kThread);
  reduce.push_back(outer);
  AppendAxes(CutSums(reduce, values[Knob::kPartialSums], writer), &order);
  order.push_back(inner);
  writer->Order(view.number, order);
}

}  // namespace kiln::search
