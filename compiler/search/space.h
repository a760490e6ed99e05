// The space of a kernel's settings, for a search: which knobs there are, where the heuristic is in
// the space, which settings are next to one, and which are legal.
//
// A search compiles and measures only settings that Write accepts; none of these functions
// compiles anything. docs/design/search.md says how a search uses them.
#ifndef KILN_COMPILER_SEARCH_SPACE_H_
#define KILN_COMPILER_SEARCH_SPACE_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/forms/forms.h"
#include "compiler/search/knobs/setting.h"
#include "compiler/search/model/features.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// A knob of a stage, or of the kernel (kKernelPart).
struct PartKnob {
  int part = 0;
  KnobValues knob;
};

// Returns the kind of machine of a device: where a block has threads, lanes are threads.
inline Machine MachineOf(const drivers::Target& target) {
  return target.limits.threads_per_block > 1 ? Machine::kThreads : Machine::kLanes;
}

class Space {
 public:
  // Requires: the kernel and the target outlive the space.
  Space(const kernel::Kernel& kernel, const drivers::Target& target, Machine machine);
  Space(const Space&) = delete;

  // The starting point of a search.
  const Setting& heuristic() const { return heuristic_; }

  // Returns the knobs of the setting with their legal values. They depend on its forms and on its
  // leading axes (Neighbours), and on nothing else of it. Requires: Complete returned the setting.
  std::vector<PartKnob> Knobs(const Setting& setting) const;

  // Returns the schedule, or INVALID_ARGUMENT with the reason if the setting is not legal: a value
  // that is not among the legal ones, values that do not fit each other, a schedule that Apply
  // refuses, or more registers or memory than the target has.
  absl::StatusOr<schedule::Schedule> Write(const Setting& setting) const;

  // Returns the settings with one knob changed: a number to the next lower or higher value, an axis
  // or a form to any other. A new form, or a new leading axis (the first axis of a form), restarts
  // the other knobs of its part at the heuristic's values. A knob of all stages changes in all:
  // blocks of threads, and lanes if the grid gets or loses them. Some are not legal: see Write.
  // Requires: Complete returned the setting.
  std::vector<Setting> Neighbours(const Setting& setting) const;

  // Returns a setting with exactly the knobs of this space. Knobs that the setting lacks get the
  // heuristic's values; knobs and forms that do not exist here are left out, each with a reason.
  Setting Complete(const Setting& setting, std::vector<std::string>* ignored) const;

  // Returns the features of a schedule, for a cost model.
  absl::StatusOr<Features> FeaturesOf(const schedule::Schedule& schedule) const {
    return search::FeaturesOf(kernel_, schedule, target_);
  }

  // Returns the cost by the heuristic's model, comparable between settings of the same forms;
  // nullopt if some form has no model, or if the kernel's grid has lanes. Requires: the setting is
  // legal.
  std::optional<double> Estimate(const Setting& setting) const;

 private:
  std::optional<Values> Start(int part, const Values& values) const;
  std::vector<KnobValues> PartKnobs(int part, const Values& values) const;
  absl::Status CheckPart(int part, const Values& values) const;
  std::optional<Values> Changed(int part, const Values& values, Knob knob, int64_t value) const;
  void AlignBlocks(int part, Setting* setting) const;
  void AlignLanes(const Values& before, Setting* setting) const;
  Values CompletePart(int part, const Values& values, std::vector<std::string>* ignored) const;
  bool HasForm(int part, int64_t form) const;
  std::vector<int> Parts() const;

  const kernel::Kernel& kernel_;
  const drivers::Target& target_;
  const Machine machine_;
  Setting heuristic_;
  // The stages as the writers of forms see them, and the forms that each can have.
  schedule::Schedule scratch_;
  ScheduleWriter axes_;
  std::vector<StageView> views_;
  std::vector<std::vector<int64_t>> forms_;
};

// Returns the schedule of a setting that was stored as text, perhaps by another version of Kiln.
// Completes it (Space::Complete), and adds to `ignored` what this version does not use of it.
// INVALID_ARGUMENT: the text is not a setting of kSettingVersion, or Space::Write refuses it. Safe
// for untrusted text. Thread-safe.
absl::StatusOr<schedule::Schedule> WriteStored(const kernel::Kernel& kernel,
                                               const drivers::Target& target, Machine machine,
                                               std::string_view setting,
                                               std::vector<std::string>* ignored);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_SPACE_H_
