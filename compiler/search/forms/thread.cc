#include "compiler/search/forms/thread.h"

#include <algorithm>

#include "compiler/kernel/index_sum.h"
#include "compiler/search/contraction/contraction.h"
#include "compiler/search/forms/partial_sums.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// Wider accesses do not pay off if they leave fewer than this many threads for each one that a unit
// keeps running.
constexpr int64_t kThreadsEach = 2;

// Returns whether all elements that neighbours along the range write and read are adjacent.
bool RunsAlong(const kernel::Stage& stage, const ir::Node* range) {
  return std::all_of(stage.stores.begin(), stage.stores.end(), [range](const auto& store) {
    const kernel::Sum to = kernel::SumOf(store.index);
    return to.Coefficient(range) == 1 && store.valid == nullptr &&
           std::all_of(to.terms.begin(), to.terms.end(),
                       [range](const auto& term) {
                         return term.atom == range || !kernel::DependsOn(term.atom, range);
                       }) &&
           StepOf(store.value, range) <= 1;
  });
}

// Returns how many neighbours along the last axis one instruction reads or writes: the most that a
// thread takes at once, so that more memory accesses are in flight. Returns 1 if they are not
// adjacent in memory.
int64_t ElementsMax(const StageView& view) {
  const kernel::Stage& stage = view.stage();
  if (view.shared || view.parallel.empty() || !stage.reduce_ranges.empty() ||
      !stage.ordered_ranges.empty()) {
    return 1;
  }
  int64_t elements = view.target.limits.bytes_per_access;
  for (const kernel::Buffer& buffer : view.kernel.buffers) {
    elements =
        std::min<int64_t>(elements, view.target.limits.bytes_per_access / ir::SizeOf(buffer.dtype));
  }
  if (!RunsAlong(stage, view.axes[view.parallel.back()].range)) return 1;
  return std::max<int64_t>(elements, 1);
}

int64_t StartElements(const StageView& view) {
  const int64_t elements = ElementsMax(view);
  const drivers::Limits& limits = view.target.limits;
  const int64_t wanted = kThreadsEach * limits.compute_units * limits.threads_per_unit;
  if (elements < 2 || view.axes.extent(view.parallel.back()) % elements != 0 ||
      view.axes.Product(view.parallel) / elements < wanted) {
    return 1;
  }
  return elements;
}

int64_t SumExtent(const StageView& view) {
  return view.reduce.empty() ? 1 : view.axes.extent(view.reduce.back());
}

}  // namespace

std::optional<Values> StartThread(const StageView& view, const int64_t* /*leading*/) {
  return Values{{Knob::kElements, StartElements(view)},
                {Knob::kPartialSums, StartPartialSums(SumExtent(view))}};
}

std::vector<KnobValues> ThreadKnobs(const StageView& view, const Values& /*start*/) {
  return {Powers(Knob::kElements, 1, ElementsMax(view)), PartialSumsKnob(SumExtent(view))};
}

absl::Status CheckThread(const StageView& view, const Values& values) {
  const int64_t elements = values[Knob::kElements];
  if (elements > 1 && view.axes.extent(view.parallel.back()) % elements != 0) {
    return Unfit("the last thread would have fewer elements");
  }
  return absl::OkStatus();
}

void WriteThread(const StageView& view, const Values& values, ScheduleWriter* writer) {
  std::vector<int> tasks, points;
  if (view.shared) {
    points = view.parallel;
  } else {
    tasks = writer->FuseAll(view.parallel);
  }
  if (values[Knob::kElements] > 1) {
    const auto [outer, inner] = writer->Split(tasks.back(), values[Knob::kElements]);
    tasks.back() = outer;
    writer->Bind(inner, Binding::kVector);
    points.push_back(inner);
  }
  for (const int axis : tasks) writer->Bind(axis, Binding::kTask);
  std::vector<int> order = tasks;
  order.insert(order.end(), points.begin(), points.end());
  const bool scatters = !view.stage().ordered_ranges.empty();
  const std::vector<int> serial =
      scatters ? view.axes.ordered_ranges(view.number)
               : CutSums(writer->FuseAll(view.reduce), values[Knob::kPartialSums], writer);
  order.insert(order.end(), serial.begin(), serial.end());
  if (!order.empty()) writer->Order(view.number, order);
}

}  // namespace kiln::search
