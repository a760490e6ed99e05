// Settings that are installed with the daemon.
#ifndef KILN_SERVER_TUNER_SHIPPED_SETTINGS_H_
#define KILN_SERVER_TUNER_SHIPPED_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "server/tuner/tuned_setting.h"

namespace kiln::tuner {

// Bounds; what is beyond them is left out, with a line in the log.
inline constexpr int64_t kShippedFileBytesMax = int64_t{4} << 20;
inline constexpr size_t kShippedSettingsMax = 2000;

// Returns the folder of this program's installation: ../share/kiln/settings from its own.
std::string ShippedSettingsFolder();

// Returns the settings of all files "*.settings" of the folder (PrintSettings) that are for this
// hardware and of search::kSettingVersion, with the width 0: nothing was searched on this machine
// yet. Of two for one kernel the one in the file whose name comes first counts. A file with a
// mistake is left out, with a line in the log. An empty name, or a folder that does not exist:
// none.
std::vector<TunedSetting> ReadShippedSettings(const std::string& folder,
                                              const std::set<std::string>& hardware);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_SHIPPED_SETTINGS_H_
