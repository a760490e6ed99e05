#include "compiler/search/knobs/knob.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"

namespace kiln::search {
namespace {

constexpr std::string_view kFormNames[] = {
    "scalar",       "sum_lanes",  "point_lanes",  "squares",     "column_lanes",
    "scatter",      "row_by_row", "dot_products", "panel",       "thread",
    "block_points", "block_sum",  "block_tile",   "matrix_tile",
};

constexpr KnobRow kKnobRows[] = {
    {Knob::kForm, "form", KnobKind::kForm, "the pattern of the stage's loops"},
    {Knob::kLaneAxis, "lane_axis", KnobKind::kAxis,
     "the loop that lanes run along; of a contraction, so also the factor that is packed"},
    {Knob::kLaneLoops, "lane_loops", KnobKind::kNumber,
     "loops that lanes run along as if they were one: the lane axis, and those before it"},
    {Knob::kLanes, "lanes", KnobKind::kNumber, "lanes of a vector"},
    {Knob::kVectors, "vectors", KnobKind::kNumber, "vectors of sums in registers at once"},
    {Knob::kFactor, "factor", KnobKind::kNumber, "the factor that is read once"},
    {Knob::kRowAxis, "row_axis", KnobKind::kAxis, "the loop that gives the rows of tiles"},
    {Knob::kRows, "rows", KnobKind::kNumber, "rows of a tile"},
    {Knob::kMoreRowAxis, "more_row_axis", KnobKind::kAxis, "a second loop that gives rows"},
    {Knob::kMoreRows, "more_rows", KnobKind::kNumber, "rows of a tile along the second loop"},
    {Knob::kColumnAxis, "column_axis", KnobKind::kAxis, "the loop that gives the columns of tiles"},
    {Knob::kColumns, "columns", KnobKind::kNumber, "columns of a tile"},
    {Knob::kThreadRows, "thread_rows", KnobKind::kNumber,
     "rows of one thread's part of a tile, or of one subgroup's"},
    {Knob::kThreadColumns, "thread_columns", KnobKind::kNumber,
     "columns of one thread's part of a tile, or of one subgroup's"},
    {Knob::kThreadAxis, "thread_axis", KnobKind::kAxis, "the loop that a block's threads share"},
    {Knob::kThreads, "threads", KnobKind::kNumber, "threads of a block"},
    {Knob::kElements, "elements", KnobKind::kNumber,
     "neighbouring elements that a thread reads and writes at once"},
    {Knob::kTerms, "terms", KnobKind::kNumber,
     "terms of the sum for which factors are packed or staged, or between visits to partial sums"},
    {Knob::kUnrolledTerms, "unrolled_terms", KnobKind::kNumber, "terms of the sum in one step"},
    {Knob::kSumOrder, "sum_order", KnobKind::kNumber,
     "0: the loops of the sum as in the kernel; 1: the longest steps of the rows outermost; 2: the "
     "loops outermost on which tests for padding depend"},
    {Knob::kSkipPadding, "skip_padding", KnobKind::kNumber,
     "1: terms whose factor is padding for a whole tile are left out"},
    {Knob::kInstructionTerms, "instruction_terms", KnobKind::kNumber,
     "terms that one matrix instruction adds up"},
    {Knob::kPartialSums, "partial_sums", KnobKind::kNumber,
     "sums that a thread's sum is split into"},
    {Knob::kUnrollSum, "unroll_sum", KnobKind::kNumber, "1: the whole sum is unrolled"},
    {Knob::kSharedSteps, "shared_steps", KnobKind::kNumber,
     "1: steps that read the same element are adjacent and unrolled"},
    {Knob::kBlock, "block", KnobKind::kNumber,
     "steps of a block along the loop that is contiguous elsewhere; 1: no blocks"},
    {Knob::kPanelLoops, "panel_loops", KnobKind::kNumber,
     "the packed factor's other loops, the innermost ones, whose panels are packed together"},
    {Knob::kOuterRows, "outer_rows", KnobKind::kNumber,
     "loops of rows outside the loops of panels"},
    {Knob::kStagedRows, "staged_rows", KnobKind::kNumber,
     "loops of rows around the copy of the other factor's rows; -1: rows are read in place"},
    {Knob::kCopyLanes, "copy_lanes", KnobKind::kNumber,
     "neighbouring elements of one copy to shared memory"},
    {Knob::kCopiesAhead, "copies_ahead", KnobKind::kNumber,
     "steps by which copies to shared memory run ahead"},
    {Knob::kTasks, "tasks", KnobKind::kNumber, "tasks that the loops are divided into"},
    {Knob::kTaskResults, "task_results", KnobKind::kNumber, "results along the lanes of one task"},
    {Knob::kRowChunks, "row_chunks", KnobKind::kNumber, "tasks that the rows are divided into"},
    {Knob::kLaneChunks, "lane_chunks", KnobKind::kNumber,
     "tasks that the loop of the lanes is divided into"},
    {Knob::kTaskOrder, "task_order", KnobKind::kNumber,
     "0: tasks in the heuristic's usual order of loops; 1: the last loop of tasks comes first"},
    {Knob::kNonTemporal, "non_temporal", KnobKind::kNumber, "1: stores bypass the caches"},
    {Knob::kPrefetch, "prefetch", KnobKind::kNumber,
     "rows between a prefetch and its use; 0: none"},
};

constexpr std::string_view kNone = "none";

absl::StatusOr<int64_t> ParseForm(std::string_view text) {
  for (size_t i = 0; i < std::size(kFormNames); ++i) {
    if (kFormNames[i] == text) return static_cast<int64_t>(i);
  }
  return absl::InvalidArgumentError(StrCat("unknown form '", text, "'"));
}

absl::StatusOr<int64_t> ParseAxis(std::string_view text) {
  if (text == kNone) return -1;
  int64_t value;
  if (text.empty() || text[0] != 'r' || !absl::SimpleAtoi(View(text.substr(1)), &value) ||
      value < 0) {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' is neither a range such as r0 nor none"));
  }
  return value;
}

}  // namespace

absl::Span<const KnobRow> KnobRows() { return kKnobRows; }

const KnobRow& RowOf(Knob knob) { return kKnobRows[static_cast<size_t>(knob)]; }

const KnobRow* FindKnob(std::string_view name) {
  for (const KnobRow& row : kKnobRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string PrintValue(Knob knob, int64_t value) {
  const KnobKind kind = RowOf(knob).kind;
  if (kind == KnobKind::kForm) return std::string(kFormNames[value]);
  if (kind == KnobKind::kNumber) return StrCat(value);
  return value < 0 ? std::string(kNone) : StrCat("r", value);
}

absl::StatusOr<int64_t> ParseValue(Knob knob, std::string_view text) {
  const KnobKind kind = RowOf(knob).kind;
  if (kind == KnobKind::kForm) return ParseForm(text);
  if (kind == KnobKind::kAxis) return ParseAxis(text);
  int64_t value;
  if (absl::SimpleAtoi(View(text), &value)) return value;
  return absl::InvalidArgumentError(StrCat("'", text, "' is not an integer"));
}

bool KnobValues::Admits(int64_t value) const {
  if (absl::c_linear_search(values, value)) return true;
  return value >= low && value <= high && (!powers || (value & (value - 1)) == 0);
}

std::string KnobValues::Print() const {
  if (low < high) return StrCat(powers ? "a power of two " : "", "from ", low, " to ", high);
  return absl::StrJoin(values, " or ", [this](std::string* out, int64_t value) {
    out->append(PrintValue(knob, value));
  });
}

}  // namespace kiln::search
