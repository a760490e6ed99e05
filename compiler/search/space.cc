#include "compiler/search/space.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "compiler/ir/str_cat.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/plan.h"
#include "compiler/search/forms/grid_loops.h"
#include "compiler/search/heuristics/block_chooser.h"
#include "compiler/search/heuristics/heuristic.h"
#include "compiler/search/heuristics/stage_chooser.h"
#include "compiler/search/heuristics/thread_chooser.h"
#include "compiler/search/write_setting.h"

namespace kiln::search {
namespace {

// The most memory that a thread needs in addition to the arguments.
constexpr int64_t kScratchBytesMax = int64_t{64} << 20;

// Returns the knob whose value the other knobs of the part start from, or null.
const int64_t* LeadingAxis(const Values& values, Knob* knob) {
  for (const Knob axis : {Knob::kLaneAxis, Knob::kRowAxis, Knob::kThreadAxis}) {
    const auto found = values.all().find(axis);
    if (found == values.all().end()) continue;
    *knob = axis;
    return &found->second;
  }
  return nullptr;
}

std::string NameOf(int part) { return part == kKernelPart ? "kernel" : StrCat("stage ", part); }

absl::Status Illegal(int part, std::string_view why) {
  return absl::InvalidArgumentError(StrCat(NameOf(part), ": ", why));
}

absl::Status CheckValue(const KnobValues& legal, const Values& values) {
  const std::string_view name = RowOf(legal.knob).name;
  if (!values.Has(legal.knob)) return Unfit(StrCat(name, " is missing"));
  if (legal.Admits(values[legal.knob])) return absl::OkStatus();
  return Unfit(
      StrCat(name, " is ", PrintValue(legal.knob, values[legal.knob]), ", not ", legal.Print()));
}

// Returns the values that a search tries next to one.
std::vector<int64_t> Next(const KnobValues& legal, int64_t value) {
  std::vector<int64_t> next;
  if (RowOf(legal.knob).kind != KnobKind::kNumber) {
    absl::c_copy_if(legal.values, std::back_inserter(next),
                    [value](int64_t other) { return other != value; });
    return next;
  }
  const auto not_less = absl::c_lower_bound(legal.values, value);
  const auto more = std::upper_bound(not_less, legal.values.end(), value);
  if (not_less != legal.values.begin()) next.push_back(*(not_less - 1));
  if (more != legal.values.end()) next.push_back(*more);
  return next;
}

// The heuristic's value is always legal, even beyond what a search would try.
void AddValue(int64_t value, KnobValues* knob) {
  if (absl::c_linear_search(knob->values, value)) return;
  knob->values.push_back(value);
  if (RowOf(knob->knob).kind == KnobKind::kNumber) absl::c_sort(knob->values);
}

bool IsOfThread(const Values& values) { return values.form() == Form::kThread; }

// Where lanes are threads, either all stages have blocks of threads or none.
absl::Status CheckForms(const Setting& setting) {
  for (const auto& [part, values] : setting.parts) {
    const Values& first = setting.parts.begin()->second;
    if (IsOfThread(values) != IsOfThread(first))
      return Illegal(part, "only some stages have blocks");
  }
  return absl::OkStatus();
}

// Returns why the target cannot run the schedule, if so.
absl::Status CheckSchedule(const kernel::Kernel& kernel, const drivers::Target& target,
                           bool has_blocks, const schedule::Schedule& schedule) {
  if (has_blocks) return CheckBlocks(kernel, target, schedule);
  const auto applied = schedule::Apply(kernel, schedule);
  if (!applied.ok()) return applied.status();
  return applied->scratch_bytes > kScratchBytesMax ? Unfit("a thread needs too much memory")
                                                   : absl::OkStatus();
}

}  // namespace

Space::Space(const kernel::Kernel& kernel, const drivers::Target& target, Machine machine)
    : kernel_(kernel),
      target_(target),
      machine_(machine),
      heuristic_(machine == Machine::kLanes ? ChooseSetting(kernel, target)
                                            : ChooseThreadSetting(kernel, target)),
      axes_(kernel, &scratch_) {
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    views_.push_back(FuseStage(kernel, static_cast<int>(i), target, &axes_));
    std::vector<int64_t>& forms = forms_.emplace_back();
    for (const FormRow& row : FormRows()) {
      if (row.machine != machine || !row.start(views_.back(), nullptr)) continue;
      forms.push_back(static_cast<int64_t>(row.form));
    }
  }
}

std::vector<int> Space::Parts() const {
  std::vector<int> parts;
  if (machine_ == Machine::kLanes && schedule::SharesGrid(kernel_)) parts.push_back(kKernelPart);
  for (size_t i = 0; i < views_.size(); ++i) parts.push_back(static_cast<int>(i));
  return parts;
}

bool Space::HasForm(int part, int64_t form) const {
  return absl::c_linear_search(forms_[static_cast<size_t>(part)], form);
}

// Returns the heuristic's values for the form and the leading axis of `values`.
std::optional<Values> Space::Start(int part, const Values& values) const {
  Knob knob;
  const int64_t* leading = LeadingAxis(values, &knob);
  if (part == kKernelPart) return StartGrid(kernel_, target_, leading);
  return StartOf(views_[static_cast<size_t>(part)], values.form(), leading);
}

// Requires: Start returns values.
std::vector<KnobValues> Space::PartKnobs(int part, const Values& values) const {
  const Values start = *Start(part, values);
  std::vector<KnobValues> knobs;
  if (part == kKernelPart) {
    knobs = GridKnobs(kernel_, target_, start);
  } else {
    knobs = RowOf(values.form()).knobs(views_[static_cast<size_t>(part)], start);
    knobs.insert(knobs.begin(), {Knob::kForm, forms_[static_cast<size_t>(part)]});
  }
  for (KnobValues& knob : knobs) AddValue(start[knob.knob], &knob);
  return knobs;
}

std::vector<PartKnob> Space::Knobs(const Setting& setting) const {
  std::vector<PartKnob> all;
  for (const auto& [part, values] : setting.parts) {
    for (KnobValues& knob : PartKnobs(part, values)) all.push_back({part, std::move(knob)});
  }
  return all;
}

absl::Status Space::CheckPart(int part, const Values& values) const {
  if (part != kKernelPart && (!values.Has(Knob::kForm) || !HasForm(part, values[Knob::kForm]))) {
    return Unfit("the loops cannot have this form");
  }
  if (!Start(part, values)) return Unfit("no loop of this form has this leading axis");
  const std::vector<KnobValues> knobs = PartKnobs(part, values);
  for (const KnobValues& knob : knobs) {
    if (absl::Status status = CheckValue(knob, values); !status.ok()) return status;
  }
  if (values.all().size() != knobs.size()) return Unfit("it has knobs of another form");
  if (part == kKernelPart) return CheckGrid(values);
  const FormRow& row = RowOf(values.form());
  if (row.check == nullptr) return absl::OkStatus();
  return row.check(views_[static_cast<size_t>(part)], values);
}

absl::StatusOr<schedule::Schedule> Space::Write(const Setting& setting) const {
  const std::vector<int> parts = Parts();
  if (!absl::c_equal(parts, setting.parts,
                     [](int part, const auto& entry) { return part == entry.first; })) {
    return absl::InvalidArgumentError("the setting has other parts than the kernel");
  }
  for (const auto& [part, values] : setting.parts) {
    const absl::Status status = CheckPart(part, values);
    if (!status.ok()) return Illegal(part, std::string(status.message()));
  }
  const bool threads = machine_ == Machine::kThreads;
  absl::Status status = threads ? CheckForms(setting) : absl::OkStatus();
  if (!status.ok()) return status;
  schedule::Schedule schedule = WriteSetting(kernel_, target_, setting);
  const bool has_blocks = threads && !IsOfThread(setting.parts.at(0));
  status = CheckSchedule(kernel_, target_, has_blocks, schedule);
  if (!status.ok()) return status;
  return schedule;
}

std::optional<Values> Space::Changed(int part, const Values& values, Knob knob,
                                     int64_t value) const {
  if (knob == Knob::kForm) {
    return StartOf(views_[static_cast<size_t>(part)], static_cast<Form>(value));
  }
  Values changed = values;
  changed.Set(knob, value);
  Knob leading;
  if (LeadingAxis(values, &leading) != nullptr && leading == knob) return Start(part, changed);
  return changed;
}

// Gives the other stages blocks if this one has them, or takes theirs.
void Space::AlignBlocks(int part, Setting* setting) const {
  const bool of_thread = IsOfThread(setting->parts.at(part));
  for (auto& [other, values] : setting->parts) {
    if (IsOfThread(values) == of_thread) continue;
    values = *StartOf(views_[static_cast<size_t>(other)],
                      of_thread ? Form::kThread : Form::kBlockPoints);
  }
}

// Restarts all stages if the grid has got lanes, so that they have none, or has lost them.
void Space::AlignLanes(const Values& before, Setting* setting) const {
  const bool grid_lanes = setting->parts.at(kKernelPart)[Knob::kLaneAxis] >= 0;
  if (grid_lanes == (before[Knob::kLaneAxis] >= 0)) return;
  for (const StageView& view : views_) {
    setting->parts[view.number] = *StartOf(view, ChooseStageForm(view, grid_lanes));
  }
}

std::vector<Setting> Space::Neighbours(const Setting& setting) const {
  std::vector<Setting> neighbours;
  for (const auto& [part, knob] : Knobs(setting)) {
    const Values& values = setting.parts.at(part);
    for (const int64_t value : Next(knob, values[knob.knob])) {
      const auto changed = Changed(part, values, knob.knob, value);
      if (!changed) continue;
      neighbours.push_back(setting);
      neighbours.back().parts[part] = *changed;
      if (machine_ == Machine::kThreads) AlignBlocks(part, &neighbours.back());
      if (part == kKernelPart) AlignLanes(values, &neighbours.back());
    }
  }
  return neighbours;
}

Values Space::CompletePart(int part, const Values& values,
                           std::vector<std::string>* ignored) const {
  auto ignore = [&](Knob knob, std::string_view why) {
    ignored->push_back(StrCat(NameOf(part), ": ", RowOf(knob).name, "=",
                              PrintValue(knob, values[knob]), ": ", why));
  };
  Knob leading = Knob::kForm;
  std::optional<Values> start;
  if (part == kKernelPart || (values.Has(Knob::kForm) && HasForm(part, values[Knob::kForm]))) {
    LeadingAxis(values, &leading);
    start = Start(part, values);
  }
  if (!start) {
    // Without its form, or the loops of it, the other knobs mean nothing.
    if (values.Has(leading)) {
      ignore(leading, "the loops do not have this, so the rest is ignored");
    } else {
      ignored->push_back(StrCat(NameOf(part), ": it names no form, so the rest is ignored"));
    }
    return heuristic_.parts.at(part);
  }
  for (const auto& [knob, value] : values.all()) {
    if (start->Has(knob)) {
      start->Set(knob, value);
    } else {
      ignore(knob, "the form has no such knob");
    }
  }
  return *start;
}

Setting Space::Complete(const Setting& setting, std::vector<std::string>* ignored) const {
  Setting complete;
  for (const int part : Parts()) {
    const auto found = setting.parts.find(part);
    complete.parts[part] = found == setting.parts.end()
                               ? heuristic_.parts.at(part)
                               : CompletePart(part, found->second, ignored);
  }
  for (const auto& [part, values] : setting.parts) {
    if (complete.parts.count(part) > 0) continue;
    ignored->push_back(StrCat(NameOf(part), ": the kernel has no such part"));
  }
  return complete;
}

std::optional<double> Space::Estimate(const Setting& setting) const {
  double sum = 0;
  for (const auto& [part, values] : setting.parts) {
    if (part == kKernelPart) {
      if (values[Knob::kLaneAxis] >= 0) return std::nullopt;
      continue;
    }
    const FormRow& row = RowOf(values.form());
    if (row.estimate == nullptr) return std::nullopt;
    sum += row.estimate(views_[static_cast<size_t>(part)], values);
  }
  return sum;
}

absl::StatusOr<schedule::Schedule> WriteStored(const kernel::Kernel& kernel,
                                               const drivers::Target& target, Machine machine,
                                               std::string_view setting,
                                               std::vector<std::string>* ignored) {
  absl::StatusOr<ParsedSetting> parsed = ParseSetting(setting);
  if (!parsed.ok()) return parsed.status();
  *ignored = std::move(parsed->ignored);
  const Space space(kernel, target, machine);
  return space.Write(space.Complete(parsed->setting, ignored));
}

}  // namespace kiln::search
