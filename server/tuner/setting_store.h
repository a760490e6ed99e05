// The results of searches on disk: `settings.sqlite`, a sealed table (cache/sealed_table.h) beside
// the kernel cache. docs/formats/settings.md specifies it.
//
// A setting is found by the canonical kernel, the hardware and the version of settings, and not by
// the version of Kiln, whose kernels are binaries: a new version keeps what was measured. Losing
// the file, or a part of it, costs searches and never a result.
#ifndef KILN_SERVER_TUNER_SETTING_STORE_H_
#define KILN_SERVER_TUNER_SETTING_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "drivers/interface/target.h"
#include "server/cache/sealed_table.h"
#include "server/tuner/tuned_setting.h"

namespace kiln::tuner {

// Returns the hardware under which a setting is stored that only this user may use; `hardware`
// itself if `owner` is empty.
std::string StoredHardware(const std::string& hardware, const std::string& owner);

// Thread-safe. Several daemons may share a folder.
class SettingStore {
 public:
  struct Options {
    std::string folder;  // created if it does not exist
    // The settings that were not used for the longest time are evicted first.
    int64_t entries_max = 20'000;
    // The exported text then fits a message of the largest size that the daemon takes.
    int64_t bytes_max = int64_t{32} << 20;
    std::function<absl::Time()> now;  // for the times of use
  };
  struct Statistics {
    std::string path;
    int64_t entries = 0;
    int64_t bytes = 0;
  };
  // Numbers of settings of an imported text.
  struct Imported {
    int added = 0;
    int replaced = 0;  // the imported one is faster than the one that was there
    int kept = 0;      // the one that was there is at least as fast
    int dropped = 0;   // the store was full; they are in none of the other numbers
  };

  explicit SettingStore(Options options);

  // Returns the setting for compiler::Options::tuned; nullopt if there is none, or if nothing was
  // faster than the heuristic's.
  //
  // `owner`, where programs are not shared: the user who compiles. A setting that was found for
  // that user goes first, then one for all; other users' do not count.
  std::optional<std::string> SettingFor(const std::string& kernel, const drivers::Target& target,
                                        const std::string& owner = "");

  // Returns everything about the kernel on this hardware, in the compiler's version of settings.
  std::optional<TunedSetting> Find(const std::string& kernel, const std::string& hardware,
                                   const std::string& owner = "");

  // Replaces what is stored for the kernel, hardware and version of `setting`. INVALID_ARGUMENT:
  // Check refuses it. FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE: it was not stored
  // (SealedTable::Put).
  absl::Status Put(const TunedSetting& setting);

  struct Exported {
    std::string text;  // PrintSettings
    int settings = 0;
  };

  // Returns all settings. UNAVAILABLE: the table cannot be read.
  absl::StatusOr<Exported> Export();

  // Stores the settings of a text from Export, except those for which one is stored that is at
  // least as fast. Settings of other hardware and other versions are stored, too.
  // INVALID_ARGUMENT, "line N: …": nothing was imported. Other errors are those of Put; some
  // settings may have been imported then.
  absl::StatusOr<Imported> Import(std::string_view text);

  Statistics GetStatistics();

 private:
  cache::SealedTable table_;
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_SETTING_STORE_H_
