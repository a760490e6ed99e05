// Values for the knobs of a kernel: everything that decides its schedule.
//
// Text, one line for the kernel's own knobs and one for each stage:
//
//   setting 1
//   kernel lane_axis=none tasks=64 prefetch=1
//   stage 0 form=sum_lanes lane_axis=r1 lanes=16 vectors=4 shared_steps=1 tasks=1
//
// Settings are stored for years. The number in the first line is kSettingVersion; it grows if the
// format, or the meaning of a knob, changes. New knobs do not change it: an older reader
// ignores them, and a newer reader gives a knob that is missing the heuristic's value.
#ifndef KILN_COMPILER_SEARCH_KNOBS_SETTING_H_
#define KILN_COMPILER_SEARCH_KNOBS_SETTING_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/search/knobs/knob.h"

namespace kiln::search {

// The values of one stage, or of the kernel.
class Values {
 public:
  Values() = default;
  Values(std::initializer_list<std::pair<const Knob, int64_t>> values) : values_(values) {}

  bool Has(Knob knob) const { return values_.count(knob) > 0; }
  // Requires: the knob has a value.
  int64_t operator[](Knob knob) const { return values_.find(knob)->second; }
  void Set(Knob knob, int64_t value) { values_[knob] = value; }
  const std::map<Knob, int64_t>& all() const { return values_; }
  // Requires: the values are those of a stage.
  Form form() const { return static_cast<Form>((*this)[Knob::kForm]); }

  bool operator==(const Values&) const = default;

 private:
  std::map<Knob, int64_t> values_;
};

inline constexpr int kSettingVersion = 1;

inline constexpr int kKernelPart = -1;

struct Setting {
  // By the number of the stage; kKernelPart: the kernel's own knobs, if it has some.
  std::map<int, Values> parts;

  bool operator==(const Setting&) const = default;
};

std::string Print(const Setting& setting);

struct ParsedSetting {
  Setting setting;
  std::vector<std::string> ignored;  // a reason for each knob that was left out
};
// Returns INVALID_ARGUMENT, which names the line, if the text is not a setting, or one of another
// format. Ignores unknown knobs and knobs whose values cannot be read. Does not check that the
// setting fits a kernel: Space does. Lines that begin with "#" are comments. Safe for untrusted
// text.
absl::StatusOr<ParsedSetting> ParseSetting(std::string_view text);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_KNOBS_SETTING_H_
