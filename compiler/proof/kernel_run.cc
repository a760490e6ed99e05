#include "compiler/proof/kernel_run.h"

#include "compiler/ir/str_cat.h"

namespace kiln::proof {

using schedule::Axis;

Value UnwrittenLocal(int buffer, ir::DType dtype) { return InputElement(0, buffer, dtype, -1); }

std::vector<KernelRun::Root> KernelRun::RootsOf(int stage, bool reduce, bool ordered,
                                                const Samples& samples) const {
  std::vector<Root> roots;
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Axis& axis = plan_.axes[i];
    if (axis.parent >= 0 || axis.fused_into >= 0 || axis.stage != stage) continue;
    if (axis.reduce != reduce || axis.ordered != ordered) continue;
    const int number = static_cast<int>(i);
    roots.push_back({number, sampler_.ValuesOf(number, samples)});
  }
  return roots;
}

void KernelRun::ForEach(absl::Span<const Root> roots, absl::FunctionRef<void()> visit) {
  if (roots.empty()) return visit();
  for (const int64_t value : roots[0].values) {
    Set(roots[0].axis, value);
    ForEach(roots.subspan(1), visit);
  }
}

// Among fused ranges, the inner one varies fastest.
void KernelRun::Set(int number, int64_t value) {
  if (const ir::Node* range = plan_.axes[number].range; range != nullptr) {
    SetRange(range, value);
    return;
  }
  int outer = -1, inner = -1;
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    if (plan_.axes[i].fused_into != number) continue;
    (plan_.axes[i].fused_as_inner ? inner : outer) = static_cast<int>(i);
  }
  const int64_t extent = plan_.axes[inner].extent;
  Set(outer, value / extent);
  Set(inner, value % extent);
}

const Memory& KernelRun::Run(const Samples& samples, uint64_t seed) {
  seed_ = seed;
  globals_.clear();
  const auto run_stages = [&] {
    locals_.clear();
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      const int number = static_cast<int>(i);
      reduce_ = RootsOf(number, true, false, samples);
      ForEach(RootsOf(number, false, false, samples), [&] {
        ForEach(RootsOf(number, false, true, samples), [&] { RunStage(kernel_.stages[i]); });
      });
    }
  };
  ForEach(RootsOf(-1, false, false, samples), run_stages);
  return globals_;
}

void KernelRun::RunStage(const kernel::Stage& stage) {
  for (const kernel::Store& store : stage.stores) {
    if (store.valid != nullptr && Evaluate(store.valid) == 0) continue;
    const Element element = {store.buffer, Evaluate(store.index)};
    const Value value = Evaluate(store.value);
    if (kernel_.buffers[store.buffer].memory == kernel::Memory::kLocal) {
      locals_[element] = value;
      continue;
    }
    Written& written = globals_[element];
    written.value = value;
    ++written.times;
    if (watched_ != nullptr && *watched_ == element) watched_point_ = Point();
  }
}

Value KernelRun::Load(int buffer, ir::DType dtype, int64_t index) {
  const kernel::Buffer& from = kernel_.buffers[buffer];
  if (from.memory == kernel::Memory::kLocal) {
    const auto found = locals_.find({buffer, index});
    // A point that was not sampled may have written it, so both runs use the same value.
    return found == locals_.end() ? UnwrittenLocal(buffer, dtype) : found->second;
  }
  // A scatter continues from the values it has combined so far.
  if (from.access == kernel::Access::kUpdate) {
    if (const auto found = globals_.find({buffer, index}); found != globals_.end()) {
      return found->second.value;
    }
  }
  return InputElement(seed_, buffer, dtype, index);
}

void KernelRun::ForEachPoint(absl::Span<const ir::Node* const>, absl::FunctionRef<void()> visit) {
  ForEach(reduce_, visit);
}

std::string KernelRun::Point() {
  std::string text;
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const ir::Node* range = plan_.axes[i].range;
    if (range == nullptr || plan_.axes[i].reduce) continue;
    StrAppend(&text, text.empty() ? "" : " ", "r", range->attr<ir::RangeAttr>().id, "=",
              ValueOf(range));
  }
  return text;
}

std::string KernelRun::PointOf(const Element& element, const Samples& samples) {
  // Runs again, since points are only needed for messages.
  watched_ = &element;
  watched_point_.clear();
  Run(samples, seed_);
  watched_ = nullptr;
  return watched_point_;
}

}  // namespace kiln::proof
