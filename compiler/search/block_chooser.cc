#include "compiler/search/block_chooser.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/partition/limits.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/plan.h"
#include "compiler/schedule/synchronize.h"
#include "compiler/search/block_tile.h"
#include "compiler/search/matrix_tile.h"
#include "compiler/search/partial_sums.h"
#include "compiler/search/schedule_writer.h"

namespace kiln::search {
namespace {

using schedule::Binding;

constexpr int64_t kBlockThreadsMax = 256;
constexpr int64_t kBlockThreadsMin = 32;
// The minimum number of points of a row, or terms of a sum, for threads to share it.
constexpr int64_t kSharedMin = 64;
// The same for a sum read across memory, which gains from sharing only if there are few sums.
constexpr int64_t kLongSharedSum = 256;

class BlockChooser {
 public:
  BlockChooser(const kernel::Kernel& kernel, const drivers::Target& target)
      : kernel_(kernel), target_(target), writer_(kernel, &schedule_) {}

  std::optional<schedule::Schedule> Choose() {
    if (target_.limits.threads_per_block < partition::kBlockThreadsNeeded) return std::nullopt;
    if (schedule::SharesGrid(kernel_)) {
      if (!RowsAreLong()) return std::nullopt;
      ChooseShared();
    } else {
      ChooseEach();
      if (!gains_) return std::nullopt;
    }
    auto applied = schedule::Apply(kernel_, schedule_);
    if (!applied.ok()) return std::nullopt;
    const schedule::LoopProgram program =
        schedule::Synchronize(*std::move(applied), target_.limits.threads_per_shuffle);
    if (program.shared_bytes > partition::SharedBytes(target_.limits) ||
        program.threads > target_.limits.threads_per_block ||
        RegisterBytes(program) > target_.limits.register_bytes_per_unit / 2 ||
        HasBarrierInBranch(program)) {
      return std::nullopt;
    }
    return std::move(schedule_);
  }

 private:
  // Returns whether a point of the grid has work for many threads.
  bool RowsAreLong() const {
    for (size_t stage = 0; stage < kernel_.stages.size(); ++stage) {
      const int number = static_cast<int>(stage);
      const int64_t points =
          writer_.Product(writer_.ranges(number)) * writer_.Product(writer_.reduce_ranges(number));
      if (points >= kSharedMin) return true;
    }
    return false;
  }

  void ChooseShared() {
    const std::vector<int> grid = writer_.FuseAll(writer_.grid());
    for (const int axis : grid) writer_.Bind(axis, Binding::kTask);
    if (!grid.empty()) writer_.Order(-1, grid);
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      const int stage = static_cast<int>(i);
      const std::vector<int> points = writer_.FuseAll(writer_.ranges(stage));
      if (writer_.Product(points) < kBlockThreadsMin && HasSum(stage)) {
        WriteSum(stage, points, Binding::kSerial);
      } else {
        WritePoints(stage, {}, points);
      }
    }
  }

  void ChooseEach() {
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      const int stage = static_cast<int>(i);
      std::vector<int> axes = writer_.grid();
      axes.insert(axes.end(), writer_.ranges(stage).begin(), writer_.ranges(stage).end());
      const std::vector<int> tasks = writer_.FuseAll(axes);
      const std::vector<int> reduce = writer_.FuseAll(writer_.reduce_ranges(stage));
      const kernel::Stage& of = kernel_.stages[i];
      if (const auto matrix = FindMatrixTile(of, writer_, tasks, reduce, target_)) {
        gains_ = true;
        WriteMatrixTile(stage, *matrix, &writer_);
      } else if (const auto tile = FindBlockTile(of, writer_, tasks, reduce, target_)) {
        gains_ = true;
        WriteBlockTile(stage, *tile, &writer_);
      } else if (SharesSum(stage, tasks, reduce)) {
        gains_ = true;
        WriteSumOver(stage, tasks, Binding::kTask, reduce);
      } else {
        WritePointsOver(stage, tasks, reduce);
      }
    }
  }

  bool HasSum(int stage) const {
    return writer_.Product(writer_.reduce_ranges(stage)) >= kBlockThreadsMin;
  }

  // Returns whether threads should share each sum of the stage, instead of each computing one.
  bool SharesSum(int stage, const std::vector<int>& tasks, const std::vector<int>& reduce) const {
    const int64_t terms = writer_.Product(reduce);
    if (reduce.empty() || terms < kSharedMin) return false;
    if (RunsAlongMemory(stage, reduce.back())) return true;
    const int64_t wanted = int64_t{target_.limits.compute_units} * target_.limits.threads_per_unit;
    return terms >= kLongSharedSum && writer_.Product(tasks) < wanted;
  }

  // Returns whether neighbours along the axis are adjacent in memory that the stage reads.
  bool RunsAlongMemory(int stage, int axis) const {
    for (const kernel::Store& store : kernel_.stages[stage].stores) {
      if (StepOf(store.value, writer_[axis].range) == 1) return true;
    }
    return false;
  }

  void WriteSum(int stage, const std::vector<int>& points, Binding binding) {
    WriteSumOver(stage, points, binding, writer_.FuseAll(writer_.reduce_ranges(stage)));
  }

  // Distributes each point's sum over a block's threads; adjacent threads have adjacent terms.
  void WriteSumOver(int stage, const std::vector<int>& points, Binding binding,
                    std::vector<int> reduce) {
    for (const int axis : points) writer_.Bind(axis, binding);
    std::vector<int> order = points;
    // The shared axis is the one along memory, unless it is too short.
    int shared = reduce.back();
    for (const int axis : reduce) {
      const bool longer = writer_.extent(axis) > writer_.extent(shared);
      if (writer_.extent(shared) < kBlockThreadsMin && longer) shared = axis;
    }
    reduce.erase(std::find(reduce.begin(), reduce.end(), shared));
    const int64_t threads = ThreadsFor(writer_.extent(shared));
    const bool even = writer_.extent(shared) % threads == 0;
    const auto [outer, inner] = writer_.Split(shared, threads);
    writer_.Bind(inner, Binding::kThread);
    reduce.push_back(outer);
    // Where some threads end early, they have no last partial sum.
    const std::vector<int> serial = even ? CutSums(reduce, &writer_) : reduce;
    order.insert(order.end(), serial.begin(), serial.end());
    order.push_back(inner);
    writer_.Order(stage, order);
  }

  void WritePoints(int stage, const std::vector<int>& tasks, const std::vector<int>& points) {
    std::vector<int> axes = tasks;
    axes.insert(axes.end(), points.begin(), points.end());
    Write(stage, axes, Binding::kSerial, writer_.FuseAll(writer_.reduce_ranges(stage)));
  }
  void WritePointsOver(int stage, const std::vector<int>& tasks, const std::vector<int>& reduce) {
    Write(stage, tasks, Binding::kTask, reduce);
  }

  // Each thread computes its own points; adjacent threads have adjacent points.
  void Write(int stage, std::vector<int> points, Binding outer_binding,
             const std::vector<int>& reduce) {
    std::vector<int> order;
    if (!points.empty()) {
      const int last = points.back();
      points.pop_back();
      const auto [outer, inner] = writer_.Split(last, ThreadsFor(writer_.extent(last)));
      points.push_back(outer);
      for (const int axis : points) writer_.Bind(axis, outer_binding);
      writer_.Bind(inner, Binding::kThread);
      order = points;
      order.push_back(inner);
    }
    const bool scatters = !kernel_.stages[stage].ordered_ranges.empty();
    const std::vector<int> serial =
        scatters ? writer_.ordered_ranges(stage) : CutSums(reduce, &writer_);
    order.insert(order.end(), serial.begin(), serial.end());
    if (!order.empty()) writer_.Order(stage, order);
  }

  // Returns the register bytes, over all threads of a block, of the schedule's sums and tiles. The
  // rest of the computation needs some registers as well.
  static int64_t RegisterBytes(const schedule::LoopProgram& program) {
    int64_t bytes = 0;
    for (const schedule::LoopBuffer& buffer : program.buffers) {
      if (buffer.space != schedule::Space::kRegister) continue;
      bytes += buffer.elements * ir::SizeOf(buffer.dtype);
    }
    return bytes * program.threads;
  }

  int64_t ThreadsFor(int64_t places) const {
    const int64_t threads_max =
        std::min<int64_t>(kBlockThreadsMax, target_.limits.threads_per_block);
    int64_t threads = kBlockThreadsMin;
    while (threads * 2 <= std::min(threads_max, places)) threads *= 2;
    return threads;
  }

  const kernel::Kernel& kernel_;
  const drivers::Target& target_;
  schedule::Schedule schedule_;
  ScheduleWriter writer_;
  bool gains_ = false;
};

}  // namespace

std::optional<schedule::Schedule> ChooseBlocks(const kernel::Kernel& kernel,
                                               const drivers::Target& target) {
  return BlockChooser(kernel, target).Choose();
}

}  // namespace kiln::search
