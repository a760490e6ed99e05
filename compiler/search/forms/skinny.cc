#include "compiler/search/forms/skinny.h"

#include <algorithm>
#include <tuple>

#include "compiler/search/contraction/contraction.h"
#include "compiler/search/contraction/register_tile.h"
#include "compiler/search/forms/lanes.h"

namespace kiln::search {
namespace {

using schedule::Binding;

constexpr int64_t kSkinnyRowsMax = 48;
constexpr int64_t kDotProductRowsMax = 16;
constexpr int kSkinnyVectorsMax = 4;
constexpr int64_t kDotColumnsMax = 8;
// Steps of the sum between two visits to the partial results in the cache.
constexpr int64_t kStepsAtOnce = 16;
// The same for so few rows that memory is the limit: it is read in longer pieces of fewer rows, and
// tasks are longer.
constexpr int64_t kFewRows = 4;
constexpr int64_t kStepsOfFewRows = 8;
constexpr int64_t kTriedStepsAtOnce = 64;
constexpr int64_t kTasksPerUnit = 4;
// Cycles for adding up the lanes of a result, and for a visit to a vector of partial results.
constexpr double kHorizontalCycles = 12;
constexpr double kVisitCycles = 1.5;
// Bytes of partial results that stay in the cache meanwhile.
constexpr int64_t kPartialBytes = 64 << 10;

// The factor that is read once, and the axis along which it is contiguous.
struct Large {
  Form form = Form::kRowByRow;
  int factor = 0;
  int axis = -1;
};

class Finder {
 public:
  Finder(const StageView& view, const Contraction& contraction)
      : view_(view), contraction_(contraction), lanes_(Lanes(view, contraction)) {}

  static int64_t ElementBytes(const Contraction& contraction) {
    return std::max<int64_t>(ir::SizeOf(contraction.factor[0]->dtype()), 1);
  }
  static int64_t Lanes(const StageView& view, const Contraction& contraction) {
    return std::max<int64_t>(view.target.limits.vector_bytes / ElementBytes(contraction), 1);
  }

  // Returns the heuristic's choice among factors that exceed the caches.
  std::optional<Large> Prefer() const {
    for (const int factor : {0, 1}) {
      if (Bytes(factor) <= view_.target.limits.private_cache_bytes || !IsSkinny(factor)) continue;
      if (const auto large = RowByRow(factor, nullptr)) return large;
      if (UnitAxis(factor, contraction_.reduce, nullptr) < 0 ||
          view_.axes.Product(contraction_.only[1 - factor]) > kDotProductRowsMax) {
        continue;
      }
      return DotProducts(factor, nullptr);
    }
    return std::nullopt;
  }

  // Returns the choice for one form, whatever the size.
  std::optional<Large> Find(Form form, const int64_t* leading) const {
    const auto preferred = Prefer();
    if (preferred && preferred->form == form &&
        (leading == nullptr || view_.axes.RangeOf(preferred->axis) == *leading)) {
      return preferred;
    }
    for (const int factor : {0, 1}) {
      if (!IsSkinny(factor)) continue;
      const auto large =
          form == Form::kRowByRow ? RowByRow(factor, leading) : DotProducts(factor, leading);
      if (large) return large;
    }
    return std::nullopt;
  }

 private:
  int64_t Bytes(int factor) const {
    return view_.axes.Product(contraction_.only[factor]) * view_.axes.Product(contraction_.reduce) *
           view_.axes.Product(contraction_.batch) * ElementBytes(contraction_);
  }
  bool IsSkinny(int factor) const {
    const std::vector<int>& rows = contraction_.only[1 - factor];
    return lanes_ >= 2 && view_.axes.Product(rows) <= kSkinnyRowsMax && rows.size() <= 1 &&
           IsWidenedLoad(contraction_.factor[factor]) &&
           IsWidenedLoad(contraction_.factor[1 - factor]);
  }
  std::optional<Large> RowByRow(int factor, const int64_t* leading) const {
    const int axis = UnitAxis(factor, contraction_.only[factor], leading);
    if (axis < 0) return std::nullopt;
    return Large{Form::kRowByRow, factor, axis};
  }
  std::optional<Large> DotProducts(int factor, const int64_t* leading) const {
    const int axis = UnitAxis(factor, contraction_.reduce, leading);
    if (axis < 0 || contraction_.only[factor].empty()) return std::nullopt;
    return Large{Form::kDotProducts, factor, axis};
  }
  // Returns the axis along which the factor is contiguous, if it is long enough, or -1.
  int UnitAxis(int factor, const std::vector<int>& axes, const int64_t* leading) const {
    for (const int axis : axes) {
      if (leading != nullptr && view_.axes.RangeOf(axis) != *leading) continue;
      if (StepOf(contraction_.factor[factor], view_.axes[axis].range) == 1 &&
          view_.axes.extent(axis) >= 8 * lanes_) {
        return axis;
      }
    }
    return -1;
  }

  const StageView& view_;
  const Contraction& contraction_;
  const int64_t lanes_;
};

// Returns how many results along `axis` belong to one task, as a multiple of `block`.
int64_t StartResults(const StageView& view, int axis, int64_t results_max, int64_t block,
                     int64_t tasks_per_unit = kTasksPerUnit) {
  const int64_t tasks = tasks_per_unit * std::max<int64_t>(view.target.limits.compute_units, 1);
  const int64_t share = std::min((view.axes.extent(axis) + tasks - 1) / tasks, results_max);
  return std::max<int64_t>((share + block - 1) / block, 1) * block;
}

// Legal are multiples of the block.
KnobValues ResultsKnob(const StageView& view, int axis, const Values& start, int64_t block) {
  const int64_t blocks = start[Knob::kTaskResults] / block;
  const int64_t blocks_max = (view.axes.extent(axis) + block - 1) / block;
  KnobValues knob = Doubling(Knob::kTaskResults, blocks, 1, blocks_max);
  for (int64_t& value : knob.values) value *= block;
  knob.high *= block;
  return knob;
}

void AddTasks(const std::vector<int>& axes, ScheduleWriter* writer, std::vector<int>* order) {
  for (const int axis : axes) writer->Bind(axis, Binding::kTask);
  AppendAxes(axes, order);
}

// Cuts the rows axis into register tiles. Returns the outer loop and the unrolled one, or -1 for
// both.
std::pair<int, int> TileRows(const std::vector<int>& rows, int64_t tile, ScheduleWriter* writer) {
  if (rows.empty()) return {-1, -1};
  const auto [outer, inner] = writer->Split(rows[0], tile);
  writer->Bind(inner, Binding::kUnroll);
  return {outer, inner};
}

void AppendLoops(std::initializer_list<int> axes, std::vector<int>* order) {
  for (const int axis : axes) {
    if (axis >= 0) order->push_back(axis);
  }
}

int FactorAlong(const StageView& view, const Contraction& contraction, const Values& values) {
  return view.Find(contraction.only[0], values[Knob::kLaneAxis]) >= 0 ? 0 : 1;
}

std::optional<Contraction> ContractionOf(const StageView& view) {
  if (view.shared || view.reduce.empty()) return std::nullopt;
  return FindContraction(view.stage(), view.axes, view.parallel, view.reduce);
}

// Legal are axes along which a factor is contiguous; another choice starts from it.
std::vector<int> UnitAxes(const StageView& view, Form form) {
  const auto contraction = ContractionOf(view);
  const Finder finder(view, *contraction);
  std::vector<int> axes;
  std::vector<int> all = view.parallel;
  AppendAxes(view.reduce, &all);
  for (const int axis : all) {
    const int64_t name = view.axes.RangeOf(axis);
    if (finder.Find(form, &name)) axes.push_back(axis);
  }
  return axes;
}

// Returns how many results there are for one along `axis`, whatever the row.
int64_t OtherResults(const StageView& view, const Contraction& contraction, int large, int axis) {
  return view.axes.Product(contraction.batch) * view.axes.Product(contraction.only[large]) /
         view.axes.extent(axis);
}

// Returns by how many threads the time is shortened.
double SharedBy(const StageView& view, int64_t tasks) {
  const int64_t units = std::max(view.target.limits.compute_units, 1);
  return static_cast<double>(tasks) / static_cast<double>((tasks + units - 1) / units);
}

}  // namespace

std::optional<Form> PreferSkinny(const StageView& view) {
  const auto contraction = ContractionOf(view);
  if (!contraction) return std::nullopt;
  const auto large = Finder(view, *contraction).Prefer();
  if (!large) return std::nullopt;
  return large->form;
}

std::optional<SkinnyCost> CheapestSkinny(const StageView& view) {
  std::optional<SkinnyCost> best;
  const auto consider = [&](Form form, const std::optional<Values>& start, auto estimate) {
    if (!start) return;
    const double cycles = estimate(view, *start);
    if (!best || cycles < best->cycles) best = SkinnyCost{form, cycles};
  };
  consider(Form::kRowByRow, StartRowByRow(view, nullptr), EstimateRowByRow);
  consider(Form::kDotProducts, StartDotProducts(view, nullptr), EstimateDotProducts);
  return best;
}

double EstimateRowByRow(const StageView& view, const Values& values) {
  const auto contraction = ContractionOf(view);
  const int large = FactorAlong(view, *contraction, values);
  const int lane_axis = view.Find(view.parallel, values[Knob::kLaneAxis]);
  const int64_t lanes = values[Knob::kLanes], extent = view.axes.extent(lane_axis);
  const int64_t vectors = (extent + lanes - 1) / lanes;
  const int64_t rows = view.axes.Product(contraction->only[1 - large]);
  const RegisterTile tile = {static_cast<int>(values[Knob::kVectors]), values[Knob::kRows]};
  const auto terms = static_cast<double>(view.axes.Product(contraction->reduce));
  const double visits = std::max(terms / static_cast<double>(values[Knob::kTerms]), 1.0);
  const double cycles = terms * TileCycles(tile, vectors, rows, 1, view.target) +
                        visits * static_cast<double>(vectors * rows) * kVisitCycles;
  const int64_t others = OtherResults(view, *contraction, large, lane_axis);
  return cycles * static_cast<double>(others) /
         SharedBy(view, others * ((extent - 1) / values[Knob::kTaskResults] + 1));
}

double EstimateDotProducts(const StageView& view, const Values& values) {
  const auto contraction = ContractionOf(view);
  const auto large = static_cast<int>(values[Knob::kFactor]);
  const int lane_axis = view.Find(view.reduce, values[Knob::kLaneAxis]);
  const int column_axis = contraction->only[large].back();
  const int64_t lanes = values[Knob::kLanes], columns = view.axes.extent(column_axis);
  const int64_t rows = view.axes.Product(contraction->only[1 - large]);
  const int64_t steps = view.axes.Product(contraction->reduce) / view.axes.extent(lane_axis) *
                        ((view.axes.extent(lane_axis) + lanes - 1) / lanes);
  const RegisterTile tile = {static_cast<int>(values[Knob::kColumns]), values[Knob::kRows]};
  const double cycles =
      static_cast<double>(steps) * TileCycles(tile, columns, rows, 1, view.target) +
      static_cast<double>(columns * rows) * kHorizontalCycles;
  const int64_t others = OtherResults(view, *contraction, large, column_axis);
  return cycles * static_cast<double>(others) /
         SharedBy(view, others * ((columns - 1) / values[Knob::kTaskResults] + 1));
}

std::optional<Values> StartRowByRow(const StageView& view, const int64_t* leading) {
  const auto contraction = ContractionOf(view);
  if (!contraction) return std::nullopt;
  const auto large = Finder(view, *contraction).Find(Form::kRowByRow, leading);
  if (!large) return std::nullopt;
  const int64_t lanes = Finder::Lanes(view, *contraction);
  const int64_t bytes = Finder::ElementBytes(*contraction);
  const int64_t count = view.axes.Product(contraction->only[1 - large->factor]);
  const RegisterTile tile = ChooseTile((view.axes.extent(large->axis) + lanes - 1) / lanes,
                                       kSkinnyVectorsMax, count, 1, view.target);
  const int64_t block = tile.vectors * lanes;
  const bool few = count <= kFewRows;
  const int64_t results_max = std::max(kPartialBytes / bytes / std::max<int64_t>(count, 4), block);
  return Values{{Knob::kLaneAxis, view.axes.RangeOf(large->axis)},
                {Knob::kLanes, lanes},
                {Knob::kVectors, tile.vectors},
                {Knob::kRows, tile.rows},
                {Knob::kTerms, few ? kStepsOfFewRows : kStepsAtOnce},
                {Knob::kTaskResults,
                 StartResults(view, large->axis, results_max, block, few ? 2 : kTasksPerUnit)}};
}

std::vector<KnobValues> RowByRowKnobs(const StageView& view, const Values& start) {
  const auto contraction = ContractionOf(view);
  const int factor = FactorAlong(view, *contraction, start);
  const int axis = view.Find(view.parallel, start[Knob::kLaneAxis]);
  const int64_t rows = view.axes.Product(contraction->only[1 - factor]);
  const int64_t block = start[Knob::kLanes] * start[Knob::kVectors];
  return {Axes(Knob::kLaneAxis, view, UnitAxes(view, Form::kRowByRow)),
          Powers(Knob::kLanes, std::max<int64_t>(start[Knob::kLanes] / 2, 2), start[Knob::kLanes]),
          Counting(Knob::kVectors, start[Knob::kVectors], 1, kSkinnyVectorsMax),
          Counting(Knob::kRows, start[Knob::kRows], 1, rows),
          Powers(Knob::kTerms, 1, kTriedStepsAtOnce),
          ResultsKnob(view, axis, start, block)};
}

absl::Status CheckRowByRow(const StageView& view, const Values& values) {
  const int64_t sums = values[Knob::kVectors] * values[Knob::kRows];
  if (sums + values[Knob::kVectors] >= view.target.limits.vector_registers) {
    return Unfit("the tile does not fit the registers");
  }
  if (values[Knob::kTaskResults] % (values[Knob::kVectors] * values[Knob::kLanes]) != 0) {
    return Unfit("a task does not have whole tiles");
  }
  return absl::OkStatus();
}

void WriteRowByRow(const StageView& view, const Values& values, ScheduleWriter* writer) {
  const auto contraction = ContractionOf(view);
  const int large = FactorAlong(view, *contraction, values);
  const int lane_axis = view.Find(view.parallel, values[Knob::kLaneAxis]);
  std::vector<int> order;
  AddTasks(contraction->batch, writer, &order);
  AddTasks(AxesWithout(contraction->only[large], lane_axis), writer, &order);
  const auto [task, within] = writer->Split(lane_axis, values[Knob::kTaskResults]);
  AddTasks({task}, writer, &order);
  const auto [blocks, block] = writer->Split(within, values[Knob::kVectors] * values[Knob::kLanes]);
  int vectors = -1;
  int lane = block;
  if (values[Knob::kVectors] > 1) {
    std::tie(vectors, lane) = writer->Split(block, values[Knob::kLanes]);
    writer->Bind(vectors, Binding::kUnroll);
  }
  writer->Bind(lane, Binding::kVector);
  const std::vector<int>& sums = contraction->reduce;
  AppendAxes(AxesWithout(sums, sums.back()), &order);
  const auto [steps, step] = writer->Split(sums.back(), values[Knob::kTerms]);
  const auto [row_tiles, row] = TileRows(contraction->only[1 - large], values[Knob::kRows], writer);
  AppendLoops({steps, blocks, row_tiles, step, row, vectors, lane}, &order);
  writer->Order(view.number, order);
}

std::optional<Values> StartDotProducts(const StageView& view, const int64_t* leading) {
  const auto contraction = ContractionOf(view);
  if (!contraction) return std::nullopt;
  const auto large = Finder(view, *contraction).Find(Form::kDotProducts, leading);
  if (!large) return std::nullopt;
  const int64_t registers = view.target.limits.vector_registers;
  const int64_t rows = std::clamp<int64_t>(view.axes.Product(contraction->only[1 - large->factor]),
                                           1, std::max<int64_t>(registers / 4, 1));
  // Registers hold the sums, a vector for each row and each column, and one more.
  const int64_t columns =
      std::clamp<int64_t>((registers - 1 - rows) / (rows + 1), 1, kDotColumnsMax);
  const int column_axis = contraction->only[large->factor].back();
  return Values{{Knob::kLaneAxis, view.axes.RangeOf(large->axis)},
                {Knob::kLanes, Finder::Lanes(view, *contraction)},
                {Knob::kFactor, large->factor},
                {Knob::kRows, rows},
                {Knob::kColumns, columns},
                {Knob::kTaskResults, StartResults(view, column_axis, INT64_MAX, columns)}};
}

std::vector<KnobValues> DotProductsKnobs(const StageView& view, const Values& start) {
  const auto contraction = ContractionOf(view);
  const int64_t factor = start[Knob::kFactor];
  const int64_t rows = view.axes.Product(contraction->only[1 - factor]);
  const int column_axis = contraction->only[factor].back();
  return {Axes(Knob::kLaneAxis, view, UnitAxes(view, Form::kDotProducts)),
          Powers(Knob::kLanes, std::max<int64_t>(start[Knob::kLanes] / 2, 2), start[Knob::kLanes]),
          Only(Knob::kFactor, factor),
          Counting(Knob::kRows, start[Knob::kRows], 1, rows),
          Counting(Knob::kColumns, start[Knob::kColumns], 1, kDotColumnsMax),
          ResultsKnob(view, column_axis, start, start[Knob::kColumns])};
}

absl::Status CheckDotProducts(const StageView& view, const Values& values) {
  const int64_t rows = values[Knob::kRows], columns = values[Knob::kColumns];
  if ((rows + 1) * (columns + 1) > std::max(view.target.limits.vector_registers, 4)) {
    return Unfit("the tile does not fit the registers");
  }
  if (values[Knob::kTaskResults] % columns != 0) return Unfit("a task does not have whole tiles");
  return absl::OkStatus();
}

void WriteDotProducts(const StageView& view, const Values& values, ScheduleWriter* writer) {
  const auto contraction = ContractionOf(view);
  const int64_t large = values[Knob::kFactor];
  const int lane_axis = view.Find(view.reduce, values[Knob::kLaneAxis]);
  const std::vector<int>& columns = contraction->only[large];
  std::vector<int> order;
  AddTasks(contraction->batch, writer, &order);
  AddTasks(AxesWithout(columns, columns.back()), writer, &order);
  const auto [task, within] = writer->Split(columns.back(), values[Knob::kTaskResults]);
  AddTasks({task}, writer, &order);
  const auto [column_tiles, column] = writer->Split(within, values[Knob::kColumns]);
  writer->Bind(column, Binding::kUnroll);
  const auto [row_tiles, row] = TileRows(contraction->only[1 - large], values[Knob::kRows], writer);
  const auto [steps, lane] = writer->Split(lane_axis, values[Knob::kLanes]);
  writer->Bind(lane, Binding::kVector);
  AppendLoops({column_tiles, row_tiles}, &order);
  AppendAxes(AxesWithout(contraction->reduce, lane_axis), &order);
  AppendLoops({steps, row, column, lane}, &order);
  writer->Order(view.number, order);
}

}  // namespace kiln::search
