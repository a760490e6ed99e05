#include "compiler/search/stage_chooser.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "compiler/schedule/plan.h"
#include "compiler/search/contraction_chooser.h"
#include "compiler/search/lane_chooser.h"
#include "compiler/search/scatter_chooser.h"
#include "compiler/search/stage_cost.h"
#include "compiler/search/task_split.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// Reductions of at most this many points and total operations are unrolled completely.
constexpr int64_t kUnrolledPoints = 16;
constexpr int64_t kUnrolledOperations = 160;
// The maximum number of sums in registers at once.
constexpr int64_t kAccumulators = 8;
// The steps of a block that is copied at once if the two sides of a copy are contiguous along
// different axes, so that whole cache lines are used while they are cached.
constexpr int64_t kBlock = 32;
// The maximum number of operations for each point if such blocks are squares transposed in
// registers.
constexpr int64_t kSquareOperations = 12;
// The number of rows that are added up at once, where columns are summed.
constexpr int64_t kRows = 8;
// The minimum number of columns that a task sums: the pieces of rows are long enough for
// prefetchers.
constexpr int64_t kColumns = 256;
// The maximum number of columns, whose sums still fit the first-level cache.
constexpr int64_t kColumnsMax = 2048;
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

class StageChooser {
 public:
  StageChooser(const kernel::Kernel& kernel, int number, const drivers::Target& target,
               std::vector<int> parallel, std::vector<int> reduce, ScheduleWriter* writer)
      : kernel_(kernel),
        stage_(kernel.stages[number]),
        number_(number),
        shared_(schedule::SharesGrid(kernel)),
        target_(target),
        parallel_(std::move(parallel)),
        reduce_(std::move(reduce)),
        work_(WorkOf(stage_)),
        writer_(*writer) {}

  // `grid_lanes`: a loop of the grid already has the lanes.
  void Choose(bool grid_lanes) {
    // Arithmetic uses four bytes or more; values that are only moved fill a vector with as few as
    // two.
    const bool moves = work_.inside_operations + work_.outside_operations == 0;
    const int bytes = std::max(work_.widest, moves ? 2 : 4);
    lanes_ = grid_lanes ? 1 : std::max(target_.limits.vector_bytes / bytes, 1);
    const LaneChoice choice =
        ChooseLanes(work_, parallel_, reduce_, lanes_, target_.costs.instructions, writer_);
    vector_ = choice.axis;
    cost_ = choice.cost;
    if (vector_ < 0) {
      ChooseScalar();
    } else if (absl::c_linear_search(reduce_, vector_)) {
      ChooseReduceLanes();
    } else {
      ChooseParallelLanes();
    }
    if (!order_.empty()) writer_.Order(number_, order_);
    if (!absl::c_linear_search(reduce_, vector_) && WritesGlobalOnly() &&
        BytesWritten(kernel_) >= kStreamedBytes) {
      writer_.Stream(number_);
    }
  }

 private:
  bool WritesGlobalOnly() const {
    return std::all_of(stage_.stores.begin(), stage_.stores.end(), [this](const auto& store) {
      return kernel_.buffers[store.buffer].memory == kernel::Memory::kGlobal;
    });
  }

  int64_t Tasks() const { return shared_ ? 1 : TasksFor(cost_, target_); }

  void ChooseScalar() {
    AppendTasks(parallel_, Tasks(), &writer_, &order_);
    if (UnrollsReduction()) {
      for (int axis : reduce_) writer_.Bind(axis, Binding::kUnroll);
    }
    Append(reduce_);
  }

  bool UnrollsReduction() const {
    const int64_t points = writer_.Product(reduce_);
    return points <= kUnrolledPoints && points * work_.inside_operations <= kUnrolledOperations;
  }

  std::vector<int> Others(const std::vector<int>& axes) const {
    std::vector<int> others;
    for (int axis : axes) {
      if (axis != vector_) others.push_back(axis);
    }
    return others;
  }

  // Splits axes of which several steps read the same element; the steps go to `inner`.
  std::vector<int> ShareSteps(const std::vector<int>& axes, std::vector<int>* inner) {
    std::vector<int> outer;
    for (int axis : axes) {
      const int64_t steps = SharedSteps(work_, writer_[axis].range);
      if (steps == 1 || writer_.extent(axis) % steps != 0) {
        outer.push_back(axis);
        continue;
      }
      const auto [rest, few] = writer_.Split(axis, steps);
      writer_.Bind(few, Binding::kUnroll);
      outer.push_back(rest);
      inner->push_back(few);
    }
    return outer;
  }

  void Append(const std::vector<int>& axes) {
    order_.insert(order_.end(), axes.begin(), axes.end());
  }

  // Returns how many vectors of sums are computed in parallel.
  int64_t VectorsAtOnce() const {
    int64_t vectors = 1;
    while (vectors < 4 && 2 * vectors * lanes_ <= writer_.extent(vector_) &&
           2 * vectors * work_.reductions <= kAccumulators) {
      vectors *= 2;
    }
    return vectors;
  }

  // Puts lanes along a reduction: several vectors of sums, added up at the end.
  void ChooseReduceLanes() {
    AppendTasks(parallel_, Tasks(), &writer_, &order_);
    std::vector<int> steps;
    Append(ShareSteps(Others(reduce_), &steps));
    const int64_t copies = VectorsAtOnce();
    auto [outer, lane] = writer_.Split(vector_, lanes_ * copies);
    order_.push_back(outer);
    Append(steps);
    if (copies > 1) {
      const auto [copy, lane_of_copy] = writer_.Split(lane, lanes_);
      writer_.Bind(copy, Binding::kUnroll);
      writer_.Partial(copy);
      order_.push_back(copy);
      lane = lane_of_copy;
    }
    writer_.Bind(lane, Binding::kVector);
    order_.push_back(lane);
  }

  void ChooseParallelLanes() {
    if (reduce_.empty() || UnrollsReduction()) {
      ChoosePointLanes();
    } else {
      ChooseColumnLanes();
    }
  }

  // Gives each lane its own point, with few steps of reduction or none.
  void ChoosePointLanes() {
    std::vector<int> others = Others(parallel_);
    std::vector<int> steps;
    const int near = ContiguousElsewhere(work_, vector_, others, writer_);
    if (near >= 0) others.erase(std::find(others.begin(), others.end(), near));
    if (near >= 0 && CanTranspose(near)) return ChooseSquares(near, others);
    others = ShareSteps(others, &steps);
    int64_t tasks = Tasks();
    int rest = vector_;
    int block = -1;
    if (near >= 0) {
      const auto [blocks, inside] = writer_.Split(near, std::min(kBlock, writer_.extent(near)));
      others.push_back(blocks);
      block = inside;
    }
    tasks = AppendTasks(others, tasks, &writer_, &order_);
    if (tasks > 1) rest = AppendChunks(vector_, tasks, lanes_, &writer_, &order_);
    const auto [outer, lane] = writer_.Split(rest, lanes_);
    order_.push_back(outer);
    if (block >= 0) order_.push_back(block);
    Append(steps);
    writer_.Bind(lane, Binding::kVector);
    order_.push_back(lane);
    for (int axis : reduce_) {
      writer_.Bind(axis, Binding::kUnroll);
      order_.push_back(axis);
    }
  }

  // Squares of lanes by lanes are transposed in registers: the code is repeated for each row.
  bool CanTranspose(int near) const {
    return reduce_.empty() && writer_.extent(near) >= lanes_ && writer_.extent(vector_) >= lanes_ &&
           work_.outside_operations <= kSquareOperations;
  }

  // The innermost loop of squares runs along memory: rows of lines that the prefetchers follow.
  void ChooseSquares(int near, const std::vector<int>& others) {
    const int64_t tasks = AppendTasks(others, Tasks(), &writer_, &order_);
    const int rest = tasks > 1 ? AppendChunks(vector_, tasks, lanes_, &writer_, &order_) : vector_;
    const auto [outer, lane] = writer_.Split(rest, lanes_);
    const auto [squares, row] = writer_.Split(near, lanes_);
    writer_.Bind(row, Binding::kUnroll);
    writer_.Bind(lane, Binding::kVector);
    Append({outer, squares, row, lane});
  }

  // Each lane sums a column: several rows at once, whose sums are in registers, while the columns'
  // sums are in the first-level cache.
  void ChooseColumnLanes() {
    const int64_t copies = VectorsAtOnce();
    int64_t tasks = AppendTasks(Others(parallel_), Tasks(), &writer_, &order_);
    int rest = vector_;
    const int64_t columns = writer_.extent(vector_);
    tasks = std::min(tasks, std::max<int64_t>(columns / kColumns, target_.limits.compute_units));
    if (shared_) tasks = 1;
    const int64_t chunks_min = (columns + kColumnsMax - 1) / kColumnsMax;
    if (!shared_ && std::max(tasks, chunks_min) > 1) {
      // Tasks come before all loops.
      std::vector<int> chunks;
      rest = AppendChunks(vector_, std::max(tasks, chunks_min), lanes_ * copies, &writer_, &chunks);
      order_.insert(tasks > 1 ? order_.end() : order_.begin(), chunks.begin(), chunks.end());
    }
    const auto [outer, block] = writer_.Split(rest, lanes_ * copies);
    const auto [copy, lane] = writer_.Split(block, lanes_);
    writer_.Bind(copy, Binding::kUnroll);
    writer_.Bind(lane, Binding::kVector);
    const int row = reduce_.back();
    if (writer_.extent(outer) > 1 && writer_.extent(row) > kRows &&
        writer_.extent(rest) <= 2 * kColumnsMax) {
      const auto [row_outer, row_inner] = writer_.Split(row, kRows);
      reduce_.pop_back();
      Append(reduce_);
      Append({row_outer, outer, row_inner, copy, lane});
    } else {
      order_.push_back(outer);
      Append(reduce_);
      Append({copy, lane});
    }
  }

  const kernel::Kernel& kernel_;
  const kernel::Stage& stage_;
  const int number_;
  const bool shared_;
  const drivers::Target& target_;
  std::vector<int> parallel_;
  std::vector<int> reduce_;
  const StageWork work_;
  ScheduleWriter& writer_;
  int lanes_ = 1;
  int vector_ = -1;
  double cost_ = 0;
  std::vector<int> order_;
};

}  // namespace

void ChooseStage(const kernel::Kernel& kernel, int number, const drivers::Target& target,
                 bool grid_lanes, ScheduleWriter* writer) {
  const bool shared = schedule::SharesGrid(kernel);
  std::vector<int> parallel = writer->ranges(number);
  if (!shared) parallel.insert(parallel.begin(), writer->grid().begin(), writer->grid().end());
  parallel = writer->FuseAll(parallel);
  if (!kernel.stages[number].ordered_ranges.empty()) {
    return ChooseScatter(kernel, number, parallel, target, writer);
  }
  std::vector<int> reduce = writer->FuseAll(writer->reduce_ranges(number));
  if (!shared && ChooseContraction(kernel, number, parallel, reduce, target, writer)) return;
  StageChooser(kernel, number, target, std::move(parallel), std::move(reduce), writer)
      .Choose(grid_lanes);
}

}  // namespace kiln::search
