// The result of a search for a kernel's schedule, and the file format in which such results move
// between machines (docs/formats/settings.md).
#ifndef KILN_SERVER_TUNER_TUNED_SETTING_H_
#define KILN_SERVER_TUNER_TUNED_SETTING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kiln::tuner {

struct TunedSetting {
  // Canonical (compiler::CompiledKernel::ir); ends with a line feed.
  std::string kernel;
  std::string hardware;  // drivers::Target::HardwareKey, on which it was measured
  int version = 1;       // search::kSettingVersion of `setting`
  // As text, which ends with a line feed. Empty: nothing was faster than the heuristic's.
  std::string setting;
  // Seconds of one launch with the heuristic's schedule, and with this one.
  double seconds_before = 0;
  double seconds_after = 0;
  double roofline_seconds = 0;              // the least that the hardware allows; 0: unknown
  absl::Time measured = absl::UnixEpoch();  // whole seconds
  int width = 0;  // of the beam; 0: no search for this kernel has ended by itself

  bool operator==(const TunedSetting&) const = default;
};

inline constexpr size_t kKernelBytesMax = 1 << 20;
inline constexpr size_t kSettingBytesMax = 64 << 10;
inline constexpr size_t kHardwareBytesMax = 1 << 10;

// INVALID_ARGUMENT: a text is empty, too large or does not end with a line feed, or a number is out
// of range.
absl::Status Check(const TunedSetting& setting);

// Requires: Check accepts each setting. The order does not matter: the text is sorted.
std::string PrintSettings(std::vector<TunedSetting> settings);

// INVALID_ARGUMENT, "line N: …", if the text is not exactly what PrintSettings writes, apart from
// the order and the form of numbers. Each returned setting is one that Check accepts. Safe for
// untrusted text.
absl::StatusOr<std::vector<TunedSetting>> ParseSettings(std::string_view text);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_TUNED_SETTING_H_
