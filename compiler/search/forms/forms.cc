#include "compiler/search/forms/forms.h"

#include <algorithm>
#include <string>

#include "compiler/search/forms/block.h"
#include "compiler/search/forms/block_tile.h"
#include "compiler/search/forms/columns.h"
#include "compiler/search/forms/lanes.h"
#include "compiler/search/forms/matrix.h"
#include "compiler/search/forms/panel.h"
#include "compiler/search/forms/points.h"
#include "compiler/search/forms/scatter.h"
#include "compiler/search/forms/skinny.h"
#include "compiler/search/forms/thread.h"

namespace kiln::search {
namespace {

// Halves, doubles or neighbours of the heuristic's value, on each side.
constexpr int kStepsEachSide = 3;

constexpr FormRow kFormRows[] = {
    {.form = Form::kScalar,
     .machine = Machine::kLanes,
     .start = StartScalar,
     .knobs = ScalarKnobs,
     .write = WriteScalar,
     .estimate = EstimateLanes},
    {.form = Form::kSumLanes,
     .machine = Machine::kLanes,
     .start = StartSumLanes,
     .knobs = SumLanesKnobs,
     .write = WriteSumLanes,
     .estimate = EstimateLanes},
    {.form = Form::kPointLanes,
     .machine = Machine::kLanes,
     .start = StartPointLanes,
     .knobs = PointLanesKnobs,
     .write = WritePointLanes,
     .estimate = EstimateLanes},
    {.form = Form::kSquares,
     .machine = Machine::kLanes,
     .start = StartSquares,
     .knobs = SquaresKnobs,
     .check = CheckSquares,
     .write = WriteSquares,
     .estimate = EstimateLanes},
    {.form = Form::kColumnLanes,
     .machine = Machine::kLanes,
     .start = StartColumnLanes,
     .knobs = ColumnLanesKnobs,
     .check = CheckColumnLanes,
     .write = WriteColumnLanes,
     .estimate = EstimateLanes},
    {.form = Form::kScatter,
     .machine = Machine::kLanes,
     .start = StartScatter,
     .knobs = ScatterKnobs,
     .check = CheckScatter,
     .write = WriteScatter},
    {.form = Form::kRowByRow,
     .machine = Machine::kLanes,
     .start = StartRowByRow,
     .knobs = RowByRowKnobs,
     .check = CheckRowByRow,
     .write = WriteRowByRow,
     .estimate = EstimateRowByRow},
    {.form = Form::kDotProducts,
     .machine = Machine::kLanes,
     .start = StartDotProducts,
     .knobs = DotProductsKnobs,
     .check = CheckDotProducts,
     .write = WriteDotProducts,
     .estimate = EstimateDotProducts},
    {.form = Form::kPanel,
     .machine = Machine::kLanes,
     .start = StartPanel,
     .knobs = PanelKnobs,
     .check = CheckPanel,
     .write = WritePanel,
     .estimate = EstimatePanel},
    {.form = Form::kThread,
     .machine = Machine::kThreads,
     .start = StartThread,
     .knobs = ThreadKnobs,
     .check = CheckThread,
     .write = WriteThread,
     .fuses = false},
    {.form = Form::kBlockPoints,
     .machine = Machine::kThreads,
     .start = StartBlockPoints,
     .knobs = BlockPointsKnobs,
     .check = CheckBlockPoints,
     .write = WriteBlockPoints},
    {.form = Form::kBlockSum,
     .machine = Machine::kThreads,
     .start = StartBlockSum,
     .knobs = BlockSumKnobs,
     .check = CheckBlockSum,
     .write = WriteBlockSum},
    {.form = Form::kBlockTile,
     .machine = Machine::kThreads,
     .start = StartBlockTile,
     .knobs = BlockTileKnobs,
     .check = CheckBlockTile,
     .write = WriteBlockTile},
    {.form = Form::kMatrixTile,
     .machine = Machine::kThreads,
     .start = StartMatrixTile,
     .knobs = MatrixTileKnobs,
     .check = CheckMatrixTile,
     .write = WriteMatrixTile},
};

// Makes all numbers from `low` to `high` legal, of which a search tries `values`.
KnobValues Numbers(Knob knob, std::vector<int64_t> values, int64_t low, int64_t high) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return {knob, values, std::min(low, values.front()), std::max(high, values.back())};
}

}  // namespace

absl::Span<const FormRow> FormRows() { return kFormRows; }

const FormRow& RowOf(Form form) { return kFormRows[static_cast<size_t>(form)]; }

std::optional<Values> StartOf(const StageView& view, Form form, const int64_t* leading) {
  std::optional<Values> values = RowOf(form).start(view, leading);
  if (values) values->Set(Knob::kForm, static_cast<int64_t>(form));
  return values;
}

KnobValues Doubling(Knob knob, int64_t start, int64_t low, int64_t high) {
  std::vector<int64_t> values = {start};
  if (low <= high) values.push_back(low);
  int64_t less = start, more = start;
  for (int i = 0; i < kStepsEachSide; ++i) {
    less /= 2;
    more *= 2;
    if (less >= low) values.push_back(less);
    if (more <= high) values.push_back(more);
  }
  return Numbers(knob, std::move(values), low, high);
}

KnobValues Counting(Knob knob, int64_t start, int64_t low, int64_t high) {
  std::vector<int64_t> values = {start};
  if (low <= high) values.push_back(low);
  for (int64_t value = start - kStepsEachSide; value <= start + kStepsEachSide; ++value) {
    if (value >= low && value <= high) values.push_back(value);
  }
  return Numbers(knob, std::move(values), low, high);
}

KnobValues Powers(Knob knob, int64_t low, int64_t high) {
  KnobValues powers = {knob, {}, low, high, true};
  for (int64_t power = 1; power <= high; power *= 2) {
    if (power >= low) powers.values.push_back(power);
  }
  return powers;
}

KnobValues Switch(Knob knob, bool may_be_on) {
  return may_be_on ? Numbers(knob, {0, 1}, 0, 1) : Only(knob, 0);
}

KnobValues Only(Knob knob, int64_t value) { return Numbers(knob, {value}, value, value); }

KnobValues Axes(Knob knob, const StageView& view, const std::vector<int>& axes) {
  std::vector<int64_t> names = view.Names(axes);
  if (names.size() > kKnobValuesMax) names.resize(kKnobValuesMax);
  return {knob, std::move(names)};
}

absl::Status Unfit(std::string_view why) { return absl::InvalidArgumentError(std::string(why)); }

}  // namespace kiln::search
