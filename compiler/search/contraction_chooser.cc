#include "compiler/search/contraction_chooser.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <utility>

#include "compiler/schedule/linear.h"
#include "compiler/search/register_tile.h"
#include "compiler/search/skinny_chooser.h"

namespace kiln::search {
namespace {

using ir::Node;
using schedule::Binding;

// Fewer multiplications than this run well enough without panels.
constexpr int64_t kLeastWork = 32768;
// Cycles to copy one element: along the memory's order, and across it.
constexpr double kCopyCycles = 0.2;
constexpr double kGatherCycles = 1.2;
// Rows against which a packed panel pays for having been packed.
constexpr int64_t kLeastRows = 12;
constexpr int64_t kTaskRows = 256;
// Multiplications in a row in the code, and steps of the sum that they belong to.
constexpr int64_t kMostUnrolled = 160;
constexpr int64_t kMostSteps = 8;
constexpr int64_t kLongSum = 256;

// One way to lay a contraction over lanes and rows.
struct Way {
  int packed = 0;  // the factor that is packed; the other one is broadcast
  int lane_axis = -1;
  int row_axis = -1;
  int more_row_axis = -1;
  bool stage_rows = false;
  RegisterTile tile;
  int64_t row_chunks = 1;  // tasks that rows are divided among
  double cycles = 0;
};

// What tasks of unequal length and threads of unequal speed cost when there is one task for each
// thread.
constexpr double kImbalance = 0.1;

class Chooser {
 public:
  Chooser(const kernel::Stage& stage, int number, const drivers::Target& target, AxisBook* book,
          Contraction contraction)
      : stage_(stage),
        number_(number),
        target_(target),
        book_(*book),
        contraction_(std::move(contraction)) {
    const int bytes = ir::SizeOf(contraction_.factor[0]->dtype());
    element_bytes_ = bytes;
    lanes_ = std::max(target.vector_bytes / std::max(bytes, 1), 1);
  }

  bool Choose() {
    if (Work() < kLeastWork || lanes_ < 2) return false;
    std::optional<Way> best;
    for (int packed = 0; packed < 2; ++packed) {
      for (int axis : contraction_.only[packed]) {
        std::optional<Way> way = Try(packed, axis);
        if (way && (!best || way->cycles < best->cycles)) best = way;
      }
    }
    if (!best) return false;
    Write(*best);
    return true;
  }

 private:
  int64_t Product(const std::vector<int>& axes) const {
    int64_t product = 1;
    for (int axis : axes) product *= book_.extent(axis);
    return product;
  }
  int64_t Work() const {
    return Product(contraction_.only[0]) * Product(contraction_.only[1]) *
           Product(contraction_.batch) * Product(contraction_.reduce);
  }
  const Node* Range(int axis) const { return book_[axis].range; }

  std::optional<Way> Try(int packed, int lane_axis) const {
    const std::vector<int>& rows = contraction_.only[1 - packed];
    const int64_t total_rows = Product(rows);
    if (total_rows < kLeastRows) return std::nullopt;
    Way best;
    best.cycles = -1;
    for (int row : rows) {
      for (int more : rows) {
        for (int most_vectors : {4, 2, 1}) {
          Way way = Arrange(packed, lane_axis, row, more == row ? -1 : more, most_vectors);
          way.cycles = Cycles(way);
          const int64_t most_chunks = std::min<int64_t>(RowTiles(way), 4 * target_.compute_units);
          for (int64_t chunks = 2; chunks <= most_chunks; chunks *= 2) {
            Way divided = way;
            divided.row_chunks = chunks;
            divided.cycles = Cycles(divided);
            if (divided.cycles < way.cycles) way = divided;
          }
          if (best.cycles < 0 || way.cycles < best.cycles) best = way;
        }
      }
    }
    if (best.cycles < 0) return std::nullopt;
    return best;
  }

  Way Arrange(int packed, int lane_axis, int row, int more, int most_vectors) const {
    Way way;
    way.packed = packed;
    way.lane_axis = lane_axis;
    way.row_axis = row;
    way.more_row_axis = more;
    way.stage_rows = !IsPlainLoad(contraction_.factor[1 - packed]);
    way.tile = ChooseTile(LaneVectors(lane_axis), most_vectors, book_.extent(row),
                          more < 0 ? 1 : book_.extent(more), target_.vector_registers);
    if (way.tile.more_rows == 1) way.more_row_axis = -1;
    return way;
  }

  int64_t LaneVectors(int axis) const { return (book_.extent(axis) + lanes_ - 1) / lanes_; }
  // Pieces into which the outermost row axis can be cut.
  int64_t RowTiles(const Way& way) const {
    const int axis = contraction_.only[1 - way.packed][0];
    const int64_t tile = axis == way.row_axis        ? way.tile.rows
                         : axis == way.more_row_axis ? way.tile.more_rows
                                                     : 1;
    return (book_.extent(axis) + tile - 1) / tile;
  }
  int64_t Tasks(const Way& way) const {
    const int64_t others =
        Product(contraction_.only[way.packed]) / book_.extent(way.lane_axis) * way.row_chunks;
    const int64_t vectors = LaneVectors(way.lane_axis);
    return others * Product(contraction_.batch) *
           ((vectors + way.tile.vectors - 1) / way.tile.vectors);
  }

  // Until the last of all threads is ready.
  double Cycles(const Way& way) const {
    // The tile's estimate is for all rows of its two axes and all lanes.
    double repeats = static_cast<double>(Work()) /
                     static_cast<double>(book_.extent(way.lane_axis) * book_.extent(way.row_axis));
    if (way.more_row_axis >= 0) repeats /= static_cast<double>(book_.extent(way.more_row_axis));
    double cycles = repeats * way.tile.cycles * Locality(way) +
                    PackingCycles(way.packed, way.lane_axis) * static_cast<double>(way.row_chunks) +
                    StoringCycles(way.lane_axis);
    if (way.stage_rows) cycles += StagingCycles(1 - way.packed);
    const int64_t units = std::max(target_.compute_units, 1);
    const int64_t tasks = Tasks(way);
    const int64_t rounds = (tasks + units - 1) / units;
    cycles *= static_cast<double>(rounds) / static_cast<double>(tasks);
    return units == 1 ? cycles
                      : cycles * (1 + kImbalance * static_cast<double>(units) /
                                          static_cast<double>(tasks));
  }

  // A factor that small differences in speed are worth less than: rows should be neighbours in
  // memory, and what is staged for one outer row should be used up before the next.
  double Locality(const Way& way) const {
    const std::vector<int>& rows = contraction_.only[1 - way.packed];
    const Node* other = contraction_.factor[1 - way.packed];
    int64_t least = INT64_MAX;
    for (int axis : rows) least = std::min(least, StepOf(other, Range(axis)));
    double penalty = 1;
    if (StepOf(other, Range(way.row_axis)) > least) penalty += 0.02;
    const bool tiles_outermost = way.row_axis == rows[0] || way.more_row_axis == rows[0];
    if (rows.size() > 1 && tiles_outermost) penalty += way.stage_rows ? 0.2 : 0.02;
    return penalty;
  }

  double SizeOf(int factor) const {
    return static_cast<double>(Product(contraction_.only[factor]) * Product(contraction_.batch) *
                               Product(contraction_.reduce));
  }
  double PackingCycles(int packed, int lane_axis) const {
    const bool contiguous = StepOf(contraction_.factor[packed], Range(lane_axis)) == 1;
    return SizeOf(packed) * (contiguous ? kCopyCycles : kGatherCycles);
  }
  double StagingCycles(int factor) const {
    // Windows overlap: only their union is staged, which the product of extents overstates; half of
    // it is a fair guess.
    return SizeOf(factor) * kCopyCycles / 8;
  }
  double StoringCycles(int lane_axis) const {
    const double outputs =
        static_cast<double>(Product(contraction_.only[0]) * Product(contraction_.only[1]) *
                            Product(contraction_.batch));
    bool contiguous = true;
    for (const kernel::Store& store : stage_.stores) {
      contiguous &= schedule::Linearise(store.index).Coefficient(Range(lane_axis)) == 1;
    }
    return outputs * (contiguous ? kCopyCycles : kGatherCycles);
  }

  // The loops, from the outermost: tasks (batch, blocks of lanes, blocks of rows), outer sums,
  // rows, inner sums, the tile.
  void Write(const Way& way) {
    const std::vector<int>& packed_axes = contraction_.only[way.packed];
    const std::vector<int>& row_axes = contraction_.only[1 - way.packed];
    const Node* packed = contraction_.factor[way.packed];
    const Node* rows = contraction_.factor[1 - way.packed];

    // Lanes.
    const int64_t block = static_cast<int64_t>(way.tile.vectors) * lanes_;
    auto [lane_outer, lane_block] = book_.Split(way.lane_axis, block);
    int vectors = -1;
    int lane = lane_block;
    if (way.tile.vectors > 1) std::tie(vectors, lane) = book_.Split(lane_block, lanes_);
    book_.Bind(lane, Binding::kVector);
    if (vectors >= 0) book_.Bind(vectors, Binding::kUnroll);

    // The sums: the innermost axes whose panel fits the cache stay inside.
    const int64_t most_panel = target_.private_cache_bytes / 4 / element_bytes_ / block;
    std::vector<int> outer_sums, inner_sums, layout_sums = contraction_.reduce;
    SplitSums(most_panel, &outer_sums, &inner_sums);

    // Tasks.
    std::vector<int> order;
    auto add_task = [&](int axis) {
      book_.Bind(axis, Binding::kTask);
      order.push_back(axis);
    };
    for (int axis : contraction_.batch) add_task(axis);
    for (int axis : packed_axes) {
      if (axis != way.lane_axis) add_task(axis);
    }
    // Row blocks come before lane blocks, so that neighbouring tasks share rows in the cache.
    std::vector<int> row_loops;
    const int row_task = ChunkRows(way, row_axes, !outer_sums.empty(), &row_loops);
    if (row_task >= 0) add_task(row_task);
    add_task(lane_outer);

    const int packed_at = outer_sums.empty() ? -1 : outer_sums.back();
    const size_t outer_rows = outer_sums.empty() ? 0 : RowsOutside(way, row_task >= 0);
    order.insert(order.end(), row_loops.begin(), row_loops.begin() + outer_rows);
    order.insert(order.end(), outer_sums.begin(), outer_sums.end());
    const std::vector<int> all_rows = row_loops;
    row_loops.erase(row_loops.begin(), row_loops.begin() + outer_rows);
    order.insert(order.end(), row_loops.begin(), row_loops.end());
    UnrollSteps(way, &inner_sums);
    order.insert(order.end(), inner_sums.begin(), inner_sums.end());
    if (more_rows_inner_ >= 0) order.push_back(more_rows_inner_);
    order.push_back(rows_inner_);
    if (vectors >= 0) order.push_back(vectors);
    order.push_back(lane);
    book_.Order(number_, order);

    schedule::StageOperand panel;
    panel.stage = number_;
    panel.operand = way.packed;
    panel.at = packed_at;
    panel.lanes = lanes_;
    panel.layout = StagedLayout(packed, book_, layout_sums, contraction_, -1);
    panel.layout.push_back({{1, way.lane_axis}});
    book_.Stage(panel);
    if (way.stage_rows) StageRows(way, rows, packed_at, all_rows, outer_rows);
  }

  void SplitSums(int64_t most, std::vector<int>* outer, std::vector<int>* inner) {
    const std::vector<int>& reduce = contraction_.reduce;
    int64_t product = 1;
    size_t i = reduce.size();
    for (; i > 0 && product * book_.extent(reduce[i - 1]) <= most; --i) {
      product *= book_.extent(reduce[i - 1]);
      inner->insert(inner->begin(), reduce[i - 1]);
    }
    if (i == 0) return;
    const int64_t room = most / product;
    // An axis that fits only in part is split into blocks of nearly equal size.
    if (room >= 16 && inner->empty()) {
      const int64_t extent = book_.extent(reduce[i - 1]);
      const int64_t blocks = (extent + room - 1) / room;
      const int64_t size = ((extent + blocks - 1) / blocks + 7) / 8 * 8;
      const auto [blocks_axis, within] = book_.Split(reduce[i - 1], size);
      outer->insert(outer->begin(), blocks_axis);
      inner->insert(inner->begin(), within);
      --i;
    }
    for (; i > 0; --i) outer->insert(outer->begin(), reduce[i - 1]);
  }

  // Repeats the innermost step of the sum, within bounds for the size of the code.
  void UnrollSteps(const Way& way, std::vector<int>* sums) {
    const int64_t size = way.tile.vectors * way.tile.rows * way.tile.more_rows;
    const int64_t extent = book_.extent(sums->back());
    const int64_t most = std::min(kMostUnrolled / size, kMostSteps);
    if (extent <= most) {
      book_.Bind(sums->back(), Binding::kUnroll);
      return;
    }
    int64_t steps = std::min<int64_t>(most, 4);
    // A ragged end is more code: only for long sums.
    while (steps > 1 && extent % steps != 0 && extent < kLongSum) --steps;
    if (steps < 2) return;
    const auto [outer, inner] = book_.Split(sums->back(), steps);
    book_.Bind(inner, Binding::kUnroll);
    sums->back() = outer;
    sums->push_back(inner);
  }

  // Orders the row loops and cuts a task axis off the outermost one; -1: none.
  int ChunkRows(const Way& way, const std::vector<int>& row_axes, bool sums_in_scratch,
                std::vector<int>* loops) {
    const int64_t total = Product(row_axes);
    int64_t chunks = way.row_chunks;
    if (sums_in_scratch && row_axes.size() == 1) {
      chunks = std::max(chunks, (total + 2 * kTaskRows - 1) / (2 * kTaskRows));
    }
    int task = -1;
    bool first = true;
    for (int axis : row_axes) {
      const bool tiled = axis == way.row_axis || axis == way.more_row_axis;
      const int64_t tile = axis == way.row_axis        ? way.tile.rows
                           : axis == way.more_row_axis ? way.tile.more_rows
                                                       : 1;
      int rest = axis;
      const int64_t tiles = (book_.extent(axis) + tile - 1) / tile;
      if (first && chunks > 1 && tiles > 1) {
        const int64_t parts = std::min(chunks, tiles);
        int within;
        std::tie(task, within) = book_.Split(axis, (tiles + parts - 1) / parts * tile);
        rest = within;
      }
      first = false;
      if (!tiled) {
        loops->push_back(rest);
        continue;
      }
      const auto [outer, inner] = book_.Split(rest, tile);
      book_.Bind(inner, Binding::kUnroll);
      loops->push_back(outer);
      (axis == way.row_axis ? rows_inner_ : more_rows_inner_) = inner;
    }
    return task;
  }

  // How many of the row loops stand outside the outer sums, so that the sums of all rows inside fit
  // the cache.
  size_t RowsOutside(const Way& way, bool first_is_cut) const {
    const std::vector<int>& rows = contraction_.only[1 - way.packed];
    const int64_t most =
        target_.private_cache_bytes / 4 / (way.tile.vectors * lanes_ * element_bytes_);
    int64_t inside = Product(rows) / (first_is_cut ? way.row_chunks : 1);
    size_t outside = 0;
    for (; outside + 1 < rows.size() && inside > most; ++outside) {
      inside /= std::max<int64_t>(book_.extent(rows[outside]), 1);
    }
    return outside;
  }

  // Rows that are not plain loads are computed into scratch, for as many points as the cache holds.
  void StageRows(const Way& way, const Node* rows, int packed_at, const std::vector<int>& loops,
                 size_t outer_rows) {
    std::vector<int> axes = contraction_.batch;
    const std::vector<int>& row_axes = contraction_.only[1 - way.packed];
    axes.insert(axes.end(), row_axes.begin(), row_axes.end());
    axes.insert(axes.end(), contraction_.reduce.begin(), contraction_.reduce.end());
    schedule::StageOperand staged;
    staged.stage = number_;
    staged.operand = 1 - way.packed;
    staged.lanes = lanes_;
    staged.layout = StagedLayout(rows, book_, axes, contraction_, -1);
    // In front of all row loops, or inside as many as it takes.
    staged.at = packed_at;
    for (size_t open = outer_rows; open <= loops.size(); ++open) {
      if (open > outer_rows) staged.at = loops[open - 1];
      const double bytes = StagedElements(way, staged.layout, open) * element_bytes_;
      if (bytes <= static_cast<double>(target_.private_cache_bytes) / 2) break;
    }
    book_.Stage(staged);
  }

  // Elements of the layout with the first `open` row loops open; batch axes are tasks.
  double StagedElements(const Way& way,
                        const std::vector<schedule::StageOperand::Dimension>& layout,
                        size_t open) const {
    double elements = 1;
    for (const schedule::StageOperand::Dimension& dimension : layout) {
      int64_t size = 1;
      for (const schedule::StageOperand::Term& term : dimension) {
        size += std::abs(term.coefficient) * (OpenExtent(way, term.axis, open) - 1);
      }
      elements *= static_cast<double>(size);
    }
    return elements;
  }
  int64_t OpenExtent(const Way& way, int axis, size_t open) const {
    auto is_in = [axis](const std::vector<int>& axes) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    if (is_in(contraction_.batch)) return 1;
    const std::vector<int>& row_axes = contraction_.only[1 - way.packed];
    for (size_t i = 0; i < row_axes.size() && i < open; ++i) {
      if (row_axes[i] != axis) continue;
      return axis == way.row_axis        ? way.tile.rows
             : axis == way.more_row_axis ? way.tile.more_rows
                                         : 1;
    }
    return book_.extent(axis);
  }

  const kernel::Stage& stage_;
  const int number_;
  const drivers::Target& target_;
  AxisBook& book_;
  const Contraction contraction_;
  int element_bytes_ = 4;
  int lanes_ = 1;
  int rows_inner_ = -1;
  int more_rows_inner_ = -1;
};

}  // namespace

bool ChooseContraction(const kernel::Kernel& kernel, int stage, const std::vector<int>& parallel,
                       const std::vector<int>& reduce, const drivers::Target& target,
                       AxisBook* book) {
  std::optional<Contraction> contraction =
      FindContraction(kernel.stages[stage], *book, parallel, reduce);
  if (!contraction) return false;
  if (ChooseSkinny(stage, *contraction, target, book)) return true;
  return Chooser(kernel.stages[stage], stage, target, book, *std::move(contraction)).Choose();
}

}  // namespace kiln::search
