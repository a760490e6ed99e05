#include "tests/numerics/random/threads.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/plan.h"
#include "compiler/search/contraction/contraction.h"
#include "compiler/search/stage/schedule_writer.h"

namespace kiln::numerics {
namespace {

using schedule::Binding;

constexpr int kDraftsMax = 30;
constexpr int kThreadsMax = 256;
constexpr int64_t kSharedBytesMax = 48 << 10;
constexpr int64_t kUnrolledMax = 5;

class ThreadDraft {
 public:
  ThreadDraft(const kernel::Kernel& kernel, std::mt19937_64& random, schedule::Schedule* schedule)
      : kernel_(kernel), random_(random), writer_(kernel, schedule) {}

  void Write() {
    const bool shared = schedule::SharesGrid(kernel_);
    if (shared && !writer_.grid().empty()) {
      const std::vector<int> grid = MaybeFused(writer_.grid());
      for (const int axis : grid) {
        if (!OneIn(4)) break;  // tasks precede other loops
        writer_.Bind(axis, Binding::kTask);
      }
      writer_.Order(-1, grid);
    }
    for (size_t i = 0; i < kernel_.stages.size(); ++i) WriteStage(static_cast<int>(i), shared);
  }

 private:
  bool OneIn(uint64_t n) { return random_() % n == 0; }
  template <typename T>
  T Any(std::initializer_list<T> of) {
    return of.begin()[random_() % of.size()];
  }
  std::vector<int> MaybeFused(const std::vector<int>& axes) {
    return OneIn(3) ? axes : writer_.FuseAll(axes);
  }

  void WriteStage(int stage, bool shared) {
    std::vector<int> parallel = writer_.ranges(stage);
    if (!shared) parallel.insert(parallel.begin(), writer_.grid().begin(), writer_.grid().end());
    parallel = MaybeFused(parallel);
    const std::vector<int> reduce = MaybeFused(writer_.reduce_ranges(stage));
    const auto contraction =
        search::FindContraction(kernel_.stages[stage], writer_, parallel, reduce);
    std::vector<int> whole = parallel;
    whole.insert(whole.end(), reduce.begin(), reduce.end());
    tasks_.clear();
    loops_.clear();
    threads_.clear();
    unrolled_.clear();
    for (const int axis : parallel) DrawParallel(axis, !shared);
    // All loops of a sum that threads share precede the threads.
    sum_ = -1;
    for (const int axis : reduce) DrawReduce(axis);
    const bool sum_first = sum_ >= 0 || OneIn(2);
    std::vector<int> order = tasks_;
    auto add = [&order](const std::vector<int>& axes) {
      order.insert(order.end(), axes.begin(), axes.end());
    };
    const std::vector<int>& ordered = writer_.ordered_ranges(stage);
    // Also loops inside of threads, where legal.
    if (sum_ < 0 && OneIn(2)) {
      loops_.insert(loops_.end(), threads_.begin(), threads_.end());
      threads_.clear();
      std::shuffle(loops_.begin(), loops_.end(), random_);
    }
    const int last_outside = sum_first && !sums_.empty() ? sums_.back() : -1;
    add(loops_);
    if (sum_first) add(sums_);
    add(threads_);
    if (sum_ >= 0) order.push_back(sum_);
    if (!sum_first) add(sums_);
    add(ordered);
    add(unrolled_);
    sums_.clear();
    if (!order.empty()) writer_.Order(stage, order);
    if (!contraction.has_value()) return;
    for (const int operand : {0, 1}) {
      if (OneIn(3)) continue;
      schedule::StageOperand staged;
      staged.stage = stage;
      staged.operand = operand;
      staged.at = OneIn(3) ? -1 : last_outside;
      staged.lanes = Any<int>({1, 1, 4});
      staged.layout =
          search::StagedLayout(contraction->factor[operand], writer_, whole, *contraction);
      if (staged.layout.empty()) continue;
      writer_.Stage(staged);
      if (staged.at >= 0 && OneIn(2)) writer_.Ahead(staged.at);
    }
  }

  void DrawParallel(int axis, bool may_be_task) {
    // Stages that share a grid are never padded.
    if (may_be_task && OneIn(4)) writer_.Pad(axis, Any<int64_t>({2, 4, 8, 16}));
    const int64_t extent = writer_.extent(axis);
    int inner = axis;
    if (extent > 1 && !OneIn(3)) {
      const auto parts = writer_.Split(axis, std::min(extent, Any<int64_t>({2, 3, 4, 5, 8, 16})));
      inner = parts.second;
      if (may_be_task && OneIn(2)) {
        writer_.Bind(parts.first, Binding::kTask);
        tasks_.push_back(parts.first);
      } else if (OneIn(3) && extent <= 64) {
        writer_.Bind(parts.first, Binding::kThread);
        threads_.push_back(parts.first);
      } else {
        loops_.push_back(parts.first);
      }
    }
    if (writer_.extent(inner) <= 64 && !OneIn(3)) {
      writer_.Bind(inner, Binding::kThread);
      threads_.push_back(inner);
    } else if (writer_.extent(inner) <= kUnrolledMax && OneIn(2)) {
      writer_.Bind(inner, Binding::kUnroll);
      unrolled_.push_back(inner);
    } else {
      loops_.push_back(inner);
    }
  }

  void DrawReduce(int axis) {
    int inner = axis;
    if (writer_.extent(axis) > 1 && !OneIn(3)) {
      const auto parts = writer_.Split(axis, Any<int64_t>({2, 4, 8, 16}));
      sums_.push_back(parts.first);
      inner = parts.second;
      if (sum_ < 0 && OneIn(2)) {
        writer_.Bind(inner, Binding::kThread);
        sum_ = inner;
        return;
      }
    }
    if (writer_.extent(inner) <= kUnrolledMax && OneIn(2)) {
      writer_.Bind(inner, Binding::kUnroll);
      if (OneIn(2)) writer_.Partial(inner);
    }
    sums_.push_back(inner);
  }

  const kernel::Kernel& kernel_;
  std::mt19937_64& random_;
  search::ScheduleWriter writer_;
  std::vector<int> tasks_, loops_, threads_, unrolled_, sums_;
  int sum_ = -1;
};

}  // namespace

std::optional<schedule::Schedule> RandomThreads(const kernel::Kernel& kernel,
                                                std::mt19937_64& random) {
  for (int draft = 0; draft < kDraftsMax; ++draft) {
    schedule::Schedule schedule;
    ThreadDraft(kernel, random, &schedule).Write();
    const auto program = schedule::Apply(kernel, schedule);
    if (program.ok() && program->threads > 1 && program->threads <= kThreadsMax &&
        program->shared_bytes <= kSharedBytesMax) {
      return schedule;
    }
  }
  return std::nullopt;
}

}  // namespace kiln::numerics
