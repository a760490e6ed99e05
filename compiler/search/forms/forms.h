// The forms that a stage's loops may have. A form is a row: the heuristic's values for its knobs,
// their legal values, and the one function that writes values as directives.
#ifndef KILN_COMPILER_SEARCH_FORMS_FORMS_H_
#define KILN_COMPILER_SEARCH_FORMS_FORMS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/search/knobs/knob.h"
#include "compiler/search/knobs/setting.h"
#include "compiler/search/stage/schedule_writer.h"
#include "compiler/search/stage/view.h"

namespace kiln::search {

enum class Machine : uint8_t {
  kLanes,    // cores with vector registers; a task is one thread
  kThreads,  // lanes are threads
};

struct FormRow {
  Form form;
  Machine machine;
  // Returns the heuristic's values for this form, or nullopt if the stage cannot have it. If
  // `leading` is not null, the form's first axis (kLaneAxis, kRowAxis or kThreadAxis) is that one.
  std::optional<Values> (*start)(const StageView& view, const int64_t* leading);
  // Returns the legal values of all knobs except kForm.
  std::vector<KnobValues> (*knobs)(const StageView& view, const Values& start);
  // Returns INVALID_ARGUMENT: why legal values do not fit each other. Null: all do.
  absl::Status (*check)(const StageView& view, const Values& values) = nullptr;
  // Requires: each value is legal, and they fit each other.
  void (*write)(const StageView& view, const Values& values, ScheduleWriter* writer);
  // Returns the cost that the heuristic minimizes; comparable for one stage and one form. Null:
  // the heuristic has no model.
  double (*estimate)(const StageView& view, const Values& values) = nullptr;
  // Whether `write` gets fused loops.
  bool fuses = true;
};
absl::Span<const FormRow> FormRows();
const FormRow& RowOf(Form form);
// Returns the heuristic's values with the form itself, or nullopt as FormRow::start.
std::optional<Values> StartOf(const StageView& view, Form form, const int64_t* leading = nullptr);

// All numbers in [low, high] are legal; tried are `low`, `start`, and its halves and doubles.
KnobValues Doubling(Knob knob, int64_t start, int64_t low, int64_t high);
// All numbers in [low, high] are legal; tried are `low`, `start`, and the numbers near it.
KnobValues Counting(Knob knob, int64_t start, int64_t low, int64_t high);
// Powers of two within [low, high].
KnobValues Powers(Knob knob, int64_t low, int64_t high);
// 0 and 1, or only 0.
KnobValues Switch(Knob knob, bool may_be_on);
KnobValues Only(Knob knob, int64_t value);
// Axes, as the view names them.
KnobValues Axes(Knob knob, const StageView& view, const std::vector<int>& axes);

absl::Status Unfit(std::string_view why);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_FORMS_H_
