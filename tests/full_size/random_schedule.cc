#include "tests/full_size/random_schedule.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/proof/prove.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/plan.h"
#include "compiler/search/contraction/contraction.h"
#include "compiler/search/stage/schedule_writer.h"

namespace kiln::full_size {
namespace {

using schedule::Binding;
using schedule::StageOperand;

constexpr int kDraftsMax = 40;
// The maximum scratch of a thread, and the maximum number of copies of a body's code.
constexpr int64_t kScratchBytesMax = 32 << 20;
constexpr int64_t kUnrolledMax = 64;

class Draft {
 public:
  Draft(const kernel::Kernel& kernel, int lanes, std::mt19937_64& random,
        schedule::Schedule* schedule)
      : kernel_(kernel), lanes_(lanes), random_(random), writer_(kernel, schedule) {}

  void Write() {
    const bool shared = schedule::SharesGrid(kernel_);
    bool grid_lanes = false;
    if (shared) {
      std::vector<Loop> loops = LoopsOf(MaybeFused(writer_.grid()), false, false);
      grid_lanes = Arrange(-1, loops, true, OneIn(2));
    }
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      WriteStage(static_cast<int>(i), shared, !grid_lanes);
    }
  }

 private:
  struct Loop {
    int axis = 0;
    bool reduce = false;
    bool ordered = false;
    bool splits = true;      // may be split
    std::vector<int> after;  // axes that must precede it
    Binding binding = Binding::kSerial;
  };

  bool OneIn(uint64_t n) { return random_() % n == 0; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  std::vector<int> MaybeFused(const std::vector<int>& axes) {
    return OneIn(3) ? axes : writer_.FuseAll(axes);
  }

  static std::vector<Loop> LoopsOf(const std::vector<int>& axes, bool reduce, bool ordered) {
    std::vector<Loop> loops;
    for (int axis : axes) {
      loops.push_back({axis, reduce, ordered, true, {}});
      if (ordered && loops.size() > 1) loops.back().after = {loops[loops.size() - 2].axis};
    }
    return loops;
  }

  void WriteStage(int stage, bool shared, bool may_have_lanes) {
    std::vector<int> parallel = writer_.ranges(stage);
    if (!shared) parallel.insert(parallel.begin(), writer_.grid().begin(), writer_.grid().end());
    parallel = MaybeFused(parallel);
    const std::vector<int> reduce = MaybeFused(writer_.reduce_ranges(stage));
    const auto contraction =
        search::FindContraction(kernel_.stages[stage], writer_, parallel, reduce);
    std::vector<int> whole = parallel;
    whole.insert(whole.end(), reduce.begin(), reduce.end());
    std::vector<Loop> loops = LoopsOf(parallel, false, false);
    for (const Loop& loop : LoopsOf(reduce, true, false)) loops.push_back(loop);
    for (const Loop& loop : LoopsOf(writer_.ordered_ranges(stage), false, true)) {
      loops.push_back(loop);
    }
    Arrange(stage, loops, !shared, may_have_lanes && !OneIn(8));
    if (contraction.has_value()) {
      for (int operand : {0, 1}) {
        if (!OneIn(3)) StageFactor(stage, operand, *contraction, whole);
      }
    }
    if (OneIn(6)) writer_.Stream(stage);
    if (OneIn(3)) writer_.Skip(stage);
    if (OneIn(6)) Prefetch(stage);
  }

  void Prefetch(int stage) {
    schedule::Prefetch prefetch;
    prefetch.stage = stage;
    prefetch.buffer = static_cast<int>(Below(static_cast<int64_t>(kernel_.buffers.size())));
    prefetch.steps = 1 + Below(20);
    std::vector<int> axes = writer_.ranges(stage);
    axes.insert(axes.end(), writer_.grid().begin(), writer_.grid().end());
    if (axes.empty() || kernel_.buffers[prefetch.buffer].memory != kernel::Memory::kGlobal) return;
    prefetch.axis = axes[Below(static_cast<int64_t>(axes.size()))];
    writer_.Prefetch(prefetch);
  }

  // Splits the axis's loop in two; returns the position of the inner one.
  size_t Split(std::vector<Loop>& loops, size_t i, int64_t factor) {
    const Loop whole = loops[i];
    const auto [outer, inner] = writer_.Split(whole.axis, factor);
    for (Loop& loop : loops) {
      auto found = std::find(loop.after.begin(), loop.after.end(), whole.axis);
      if (found == loop.after.end()) continue;
      *found = outer;
      loop.after.push_back(inner);
    }
    loops[i].axis = outer;
    loops[i].splits = false;
    Loop part = whole;
    part.axis = inner;
    part.after.push_back(outer);
    loops.push_back(part);
    return loops.size() - 1;
  }

  // Splits, binds and orders the loops of a stage, or of the grid. Returns true if there are lanes
  // now.
  bool Arrange(int stage, std::vector<Loop> loops, bool may_have_tasks, bool wants_lanes) {
    if (loops.empty()) return false;
    for (int splits = static_cast<int>(Below(4)); splits > 0; --splits) {
      const auto i = static_cast<size_t>(Below(static_cast<int64_t>(loops.size())));
      const int64_t extent = writer_.extent(loops[i].axis);
      if (!loops[i].splits || extent < 2) continue;
      constexpr int64_t kFactors[] = {2, 3, 4, 5, 7, 8, 16, 24, 32, 64, 100};
      Split(loops, i, std::min(kFactors[Below(std::size(kFactors))], extent));
    }
    const bool has_lanes = wants_lanes && BindLanes(loops);
    BindUnrolled(loops);
    if (may_have_tasks) BindTasks(loops);
    SetOrder(stage, loops);
    return has_lanes;
  }

  bool BindLanes(std::vector<Loop>& loops) {
    const auto i = static_cast<size_t>(Below(static_cast<int64_t>(loops.size())));
    if (!loops[i].splits || loops[i].ordered) return false;
    int64_t lanes = lanes_;
    while (lanes > 2 && OneIn(4)) lanes /= 2;
    const size_t lane = Split(loops, i, lanes);
    loops[lane].binding = Binding::kVector;
    writer_.Bind(loops[lane].axis, Binding::kVector);
    return true;
  }

  void BindUnrolled(std::vector<Loop>& loops) {
    int64_t copies = 1;
    const size_t count = loops.size();
    for (size_t k = 0; k < count; ++k) {
      if (loops[k].binding != Binding::kSerial || loops[k].ordered || !OneIn(3)) continue;
      size_t i = k;
      if (writer_.extent(loops[k].axis) > 8) {
        if (!loops[k].splits) continue;
        i = Split(loops, k, 2 + Below(5));
      }
      copies *= writer_.extent(loops[i].axis);
      if (copies > kUnrolledMax) return;
      loops[i].binding = Binding::kUnroll;
      writer_.Bind(loops[i].axis, Binding::kUnroll);
      if (loops[i].reduce && OneIn(2)) writer_.Partial(loops[i].axis);
    }
  }

  // A task's loop may only follow tasks.
  void BindTasks(std::vector<Loop>& loops) {
    for (Loop& loop : loops) {
      if (loop.binding != Binding::kSerial || loop.reduce || loop.ordered || !OneIn(2)) continue;
      const bool follows_loops =
          std::any_of(loops.begin(), loops.end(), [&loop](const Loop& other) {
            return other.binding != Binding::kTask &&
                   std::find(loop.after.begin(), loop.after.end(), other.axis) != loop.after.end();
          });
      if (follows_loops) continue;
      loop.binding = Binding::kTask;
      writer_.Bind(loop.axis, Binding::kTask);
    }
  }

  // Tasks first, then any loop that may come next. Lanes and unrolled loops are mostly inside.
  void SetOrder(int stage, std::vector<Loop> loops) {
    const bool inside = !OneIn(4);
    std::vector<int> order;
    order_.clear();
    while (!loops.empty()) {
      std::vector<size_t> next;
      int best = 3;
      for (size_t i = 0; i < loops.size(); ++i) {
        const bool ready =
            std::all_of(loops[i].after.begin(), loops[i].after.end(), [&order](int axis) {
              return std::find(order.begin(), order.end(), axis) != order.end();
            });
        if (!ready) continue;
        const bool is_loop = loops[i].binding == Binding::kSerial;
        const int rank = loops[i].binding == Binding::kTask ? 0 : is_loop || !inside ? 1 : 2;
        if (rank < best) {
          best = rank;
          next.clear();
        }
        if (rank == best) next.push_back(i);
      }
      const size_t chosen = next[Below(static_cast<int64_t>(next.size()))];
      order.push_back(loops[chosen].axis);
      order_.push_back(loops[chosen]);
      loops.erase(loops.begin() + static_cast<int64_t>(chosen));
    }
    writer_.Order(stage, order);
  }

  // Before all loops, or in one that has only tasks and loops around it.
  void StageFactor(int stage, int operand, const search::Contraction& contraction,
                   std::vector<int> axes) {
    std::shuffle(axes.begin(), axes.end(), random_);
    StageOperand staged;
    staged.stage = stage;
    staged.operand = operand;
    staged.lanes = OneIn(3) ? 2 : lanes_;
    staged.layout = search::StagedLayout(contraction.factor[operand], writer_, axes, contraction);
    if (staged.layout.empty()) return;
    std::vector<int> places = {-1};
    for (const Loop& loop : order_) {
      if (loop.binding == Binding::kTask) continue;
      if (loop.binding != Binding::kSerial) break;
      places.push_back(loop.axis);
    }
    staged.at = places[Below(static_cast<int64_t>(places.size()))];
    writer_.Stage(staged);
  }

  const kernel::Kernel& kernel_;
  const int lanes_;
  std::mt19937_64& random_;
  search::ScheduleWriter writer_;
  std::vector<Loop> order_;  // of the most recently written stage
};

}  // namespace

RandomSchedules RandomSchedule(const kernel::Kernel& kernel, int lanes, std::mt19937_64& random) {
  RandomSchedules result;
  for (; result.refused < kDraftsMax; ++result.refused) {
    result.schedule.directives.clear();
    Draft(kernel, lanes, random, &result.schedule).Write();
    const auto program = schedule::Apply(kernel, result.schedule);
    if (!program.ok() || program->scratch_bytes > kScratchBytesMax) continue;
    // As in production, a schedule that the proof refuses is not run.
    if (proof::Prove(kernel, result.schedule, *program).ok()) return result;
    ++result.disproved;
  }
  result.schedule.directives.clear();
  return result;
}

}  // namespace kiln::full_size
