#include "compiler/search/skinny_chooser.h"

#include <algorithm>
#include <tuple>

#include "compiler/search/register_tile.h"

namespace kiln::search {
namespace {

using schedule::Binding;

constexpr int64_t kRowsMax = 48;
constexpr int64_t kDotProductRowsMax = 16;
// Steps of the sum between two visits to the partial results in the cache.
constexpr int64_t kStepsAtOnce = 16;
// Bytes of partial results that stay in the cache meanwhile.
constexpr int64_t kPartialBytes = 64 << 10;

class Chooser {
 public:
  Chooser(int stage, const Contraction& contraction, const drivers::Target& target,
          ScheduleWriter* writer)
      : stage_(stage), contraction_(contraction), target_(target), writer_(*writer) {
    const int bytes = ir::SizeOf(contraction.factor[0]->dtype());
    element_bytes_ = std::max<int64_t>(bytes, 1);
    lanes_ = std::max<int64_t>(target.limits.vector_bytes / element_bytes_, 1);
  }

  bool Choose() {
    for (int large = 0; large < 2; ++large) {
      const std::vector<int>& rows = contraction_.only[1 - large];
      const int64_t bytes = writer_.Product(contraction_.only[large]) *
                            writer_.Product(contraction_.reduce) *
                            writer_.Product(contraction_.batch) * element_bytes_;
      if (lanes_ < 2 || bytes <= target_.limits.private_cache_bytes ||
          writer_.Product(rows) > kRowsMax || rows.size() > 1 ||
          !IsWidenedLoad(contraction_.factor[large]) ||
          !IsWidenedLoad(contraction_.factor[1 - large])) {
        continue;
      }
      if (const int axis = UnitAxis(large, contraction_.only[large]); axis >= 0) {
        return WriteRowByRow(large, axis);
      }
      if (const int axis = UnitAxis(large, contraction_.reduce);
          axis >= 0 && writer_.Product(rows) <= kDotProductRowsMax) {
        return WriteDotProducts(large, axis);
      }
    }
    return false;
  }

 private:
  // Returns the axis along which the large factor is contiguous, if it is long enough, or -1.
  int UnitAxis(int large, const std::vector<int>& axes) const {
    for (int axis : axes) {
      if (StepOf(contraction_.factor[large], writer_[axis].range) == 1 &&
          writer_.extent(axis) >= 8 * lanes_) {
        return axis;
      }
    }
    return -1;
  }

  void AddTasks(const std::vector<int>& axes, int but, std::vector<int>* order) {
    for (int axis : axes) {
      if (axis == but) continue;
      writer_.Bind(axis, Binding::kTask);
      order->push_back(axis);
    }
  }

  // Returns how many results along `axis` belong to one task, as a multiple of `block`.
  int64_t ChunkOf(int axis, int64_t chunk_max, int64_t block) const {
    const int64_t tasks = 4 * std::max<int64_t>(target_.limits.compute_units, 1);
    const int64_t share = std::min((writer_.extent(axis) + tasks - 1) / tasks, chunk_max);
    return std::max<int64_t>((share + block - 1) / block, 1) * block;
  }

  // Cuts the rows axis into register tiles. Returns the outer loop and the unrolled one, or -1 for
  // both.
  std::pair<int, int> TileRows(const std::vector<int>& rows, int64_t tile) {
    if (rows.empty()) return {-1, -1};
    const auto [outer, inner] = writer_.Split(rows[0], tile);
    writer_.Bind(inner, Binding::kUnroll);
    return {outer, inner};
  }

  static void Append(std::vector<int>* order, std::initializer_list<int> axes) {
    for (int axis : axes) {
      if (axis >= 0) order->push_back(axis);
    }
  }

  // Puts lanes along the results: a few rows of the large factor at a time are added to all results
  // of the task.
  bool WriteRowByRow(int large, int lane_axis) {
    const std::vector<int>& rows = contraction_.only[1 - large];
    const int64_t count = writer_.Product(rows);
    const RegisterTile tile =
        ChooseTile((writer_.extent(lane_axis) + lanes_ - 1) / lanes_, 4, count, 1, target_);
    const int64_t block = tile.vectors * lanes_;
    std::vector<int> order;
    AddTasks(contraction_.batch, -1, &order);
    AddTasks(contraction_.only[large], lane_axis, &order);
    const int64_t chunk_max =
        std::max(kPartialBytes / element_bytes_ / std::max<int64_t>(count, 4), block);
    const auto [task, within] = writer_.Split(lane_axis, ChunkOf(lane_axis, chunk_max, block));
    writer_.Bind(task, Binding::kTask);
    order.push_back(task);
    const auto [blocks, block_axis] = writer_.Split(within, block);
    int vectors = -1;
    int lane = block_axis;
    if (tile.vectors > 1) {
      std::tie(vectors, lane) = writer_.Split(block_axis, lanes_);
      writer_.Bind(vectors, Binding::kUnroll);
    }
    writer_.Bind(lane, Binding::kVector);
    const std::vector<int>& sums = contraction_.reduce;
    order.insert(order.end(), sums.begin(), sums.end() - 1);
    const auto [steps, step] = writer_.Split(sums.back(), kStepsAtOnce);
    const auto [row_tiles, row] = TileRows(rows, tile.rows);
    Append(&order, {steps, blocks, row_tiles, step, row, vectors, lane});
    writer_.Order(stage_, order);
    return true;
  }

  // Puts lanes along the sum: each result is a dot product of contiguous memory.
  bool WriteDotProducts(int large, int lane_axis) {
    const std::vector<int>& rows = contraction_.only[1 - large];
    const std::vector<int>& columns = contraction_.only[large];
    if (columns.empty()) return false;
    const int64_t row_tile = std::clamp<int64_t>(writer_.Product(rows), 1,
                                                 std::max(target_.limits.vector_registers / 4, 1));
    // Registers hold the sums, a vector for each row and each column, and one more.
    const int64_t column_tile = std::clamp<int64_t>(
        (target_.limits.vector_registers - 1 - row_tile) / (row_tile + 1), 1, 8);
    std::vector<int> order;
    AddTasks(contraction_.batch, -1, &order);
    AddTasks(columns, columns.back(), &order);
    const auto [task, within] =
        writer_.Split(columns.back(), ChunkOf(columns.back(), INT64_MAX, column_tile));
    writer_.Bind(task, Binding::kTask);
    order.push_back(task);
    const auto [column_tiles, column] = writer_.Split(within, column_tile);
    writer_.Bind(column, Binding::kUnroll);
    const auto [row_tiles, row] = TileRows(rows, row_tile);
    const auto [steps, lane] = writer_.Split(lane_axis, lanes_);
    writer_.Bind(lane, Binding::kVector);
    Append(&order, {column_tiles, row_tiles});
    for (int axis : contraction_.reduce) {
      if (axis != lane_axis) order.push_back(axis);
    }
    Append(&order, {steps, row, column, lane});
    writer_.Order(stage_, order);
    return true;
  }

  const int stage_;
  const Contraction& contraction_;
  const drivers::Target& target_;
  ScheduleWriter& writer_;
  int64_t element_bytes_ = 4;
  int64_t lanes_ = 1;
};

}  // namespace

bool ChooseSkinny(int stage, const Contraction& contraction, const drivers::Target& target,
                  ScheduleWriter* writer) {
  return Chooser(stage, contraction, target, writer).Choose();
}

}  // namespace kiln::search
