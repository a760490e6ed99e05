#include "compiler/search/forms/block.h"

#include <algorithm>
#include <tuple>

#include "compiler/kernel/index_sum.h"
#include "compiler/search/contraction/contraction.h"
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

// Returns how many terms a thread adds up, if it takes `elements` neighbours at a time.
int64_t PieceOf(const StageView& view, int axis, int64_t threads, int64_t elements) {
  return (view.axes.extent(axis) + threads * elements - 1) / (threads * elements);
}

// Returns whether all elements of the stage that neighbours along the axis access are adjacent, or
// the same.
bool RunsAlong(const StageView& view, int axis) {
  const ir::Node* range = view.axes[axis].range;
  if (range == nullptr || !view.stage().ordered_ranges.empty()) return false;
  return std::all_of(view.stage().stores.begin(), view.stage().stores.end(),
                     [&](const kernel::Store& store) {
                       return StepOf(store.value, range) <= 1 && store.valid == nullptr &&
                              kernel::SumOf(store.index).Coefficient(range) <= 1;
                     });
}

// Returns how many neighbours along the axis a thread can read or write by one instruction. Returns
// 1 if they are not adjacent in memory.
int64_t ElementsMax(const StageView& view, int axis) {
  int64_t elements = view.target.limits.bytes_per_access;
  for (const kernel::Buffer& buffer : view.kernel.buffers) {
    elements =
        std::min<int64_t>(elements, view.target.limits.bytes_per_access / ir::SizeOf(buffer.dtype));
  }
  return elements > 1 && RunsAlong(view, axis) ? elements : 1;
}

// Returns the heuristic's choice: wide accesses, if threads remain for all units of a row.
int64_t StartElements(const StageView& view, int axis) {
  const int64_t elements = ElementsMax(view, axis);
  const int64_t extent = view.axes.extent(axis);
  return extent % elements == 0 && extent / elements >= kBlockThreadsMin ? elements : 1;
}

absl::Status CheckElements(const StageView& view, int axis, const Values& values) {
  return view.axes.extent(axis) % values[Knob::kElements] == 0
             ? absl::OkStatus()
             : Unfit("the last thread would have fewer elements");
}

// Splits an axis among threads, each with some neighbours at a time. Returns the loop around the
// threads, that of the threads, and the one over a thread's neighbours, or -1.
struct ThreadSplit {
  int outer, thread, own = -1;
};
ThreadSplit SplitAmongThreads(int axis, const Values& values, ScheduleWriter* writer) {
  const int64_t threads = values[Knob::kThreads];
  const int64_t elements = values[Knob::kElements];
  ThreadSplit split;
  std::tie(split.outer, split.thread) = writer->Split(axis, threads * elements);
  if (elements > 1) {
    std::tie(split.thread, split.own) = writer->Split(split.thread, elements);
    writer->Bind(split.own, Binding::kUnroll);
  }
  writer->Bind(split.thread, Binding::kThread);
  return split;
}

}  // namespace

std::optional<Values> StartBlockPoints(const StageView& view, const int64_t* /*leading*/) {
  const int64_t elements = view.parallel.empty() ? 1 : StartElements(view, view.parallel.back());
  const int64_t threads =
      view.parallel.empty() ? 1
                            : StartThreads(view, view.axes.extent(view.parallel.back()) / elements);
  const bool scatters = !view.stage().ordered_ranges.empty();
  const int64_t sums = scatters ? 1 : StartPartialSums(SumLength(view));
  return Values{{Knob::kThreads, threads},
                {Knob::kElements, elements},
                {Knob::kPartialSums, std::max<int64_t>(1, sums / elements)}};
}

absl::Status CheckBlockPoints(const StageView& view, const Values& values) {
  return view.parallel.empty() ? absl::OkStatus()
                               : CheckElements(view, view.parallel.back(), values);
}

std::vector<KnobValues> BlockPointsKnobs(const StageView& view, const Values& /*start*/) {
  return {view.parallel.empty() ? Only(Knob::kThreads, 1) : ThreadsKnob(view),
          Powers(Knob::kElements, 1,
                 view.parallel.empty() ? 1 : ElementsMax(view, view.parallel.back())),
          PartialSumsKnob(SumLength(view))};
}

void WriteBlockPoints(const StageView& view, const Values& values, ScheduleWriter* writer) {
  std::vector<int> order = view.parallel;
  int own = -1;
  if (!order.empty()) {
    const ThreadSplit split = SplitAmongThreads(order.back(), values, writer);
    order.back() = split.outer;
    for (const int axis : order) writer->Bind(axis, OuterBinding(view));
    order.push_back(split.thread);
    own = split.own;
  }
  const bool scatters = !view.stage().ordered_ranges.empty();
  AppendAxes(scatters ? view.axes.ordered_ranges(view.number)
                      : CutSums(view.reduce, values[Knob::kPartialSums], writer),
             &order);
  if (own >= 0) order.push_back(own);
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
  const int64_t elements = StartElements(view, axis);
  const int64_t threads = StartThreads(view, view.axes.extent(axis) / elements);
  const bool even = view.axes.extent(axis) % (threads * elements) == 0;
  const int64_t sums = even ? StartPartialSums(PieceOf(view, axis, threads, elements)) : 1;
  return Values{{Knob::kThreadAxis, view.axes.RangeOf(axis)},
                {Knob::kThreads, threads},
                {Knob::kElements, elements},
                {Knob::kPartialSums, std::max<int64_t>(1, sums / elements)}};
}

std::vector<KnobValues> BlockSumKnobs(const StageView& view, const Values& start) {
  const int axis = view.Find(view.reduce, start[Knob::kThreadAxis]);
  return {Axes(Knob::kThreadAxis, view, view.reduce), ThreadsKnob(view),
          Powers(Knob::kElements, 1, ElementsMax(view, axis)),
          PartialSumsKnob(PieceOf(view, axis, kBlockThreadsMin, 1))};
}

absl::Status CheckBlockSum(const StageView& view, const Values& values) {
  const int axis = view.Find(view.reduce, values[Knob::kThreadAxis]);
  if (absl::Status status = CheckElements(view, axis, values); !status.ok()) return status;
  if (values[Knob::kPartialSums] == 1) return absl::OkStatus();
  const int64_t together = values[Knob::kThreads] * values[Knob::kElements];
  if (view.axes.extent(axis) % together != 0) {
    return Unfit("threads that end early have no last partial sum");
  }
  if (values[Knob::kPartialSums] >
      PieceOf(view, axis, values[Knob::kThreads], values[Knob::kElements])) {
    return Unfit("there are more partial sums than terms");
  }
  return absl::OkStatus();
}

void WriteBlockSum(const StageView& view, const Values& values, ScheduleWriter* writer) {
  for (const int axis : view.parallel) writer->Bind(axis, OuterBinding(view));
  std::vector<int> order = view.parallel;
  const int shared = view.Find(view.reduce, values[Knob::kThreadAxis]);
  std::vector<int> reduce = AxesWithout(view.reduce, shared);
  const ThreadSplit split = SplitAmongThreads(shared, values, writer);
  reduce.push_back(split.outer);
  AppendAxes(CutSums(reduce, values[Knob::kPartialSums], writer), &order);
  order.push_back(split.thread);
  if (split.own >= 0) {
    writer->Partial(split.own);
    order.push_back(split.own);
  }
  writer->Order(view.number, order);
}

}  // namespace kiln::search
