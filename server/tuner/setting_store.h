// The results of searches on disk: `settings.sqlite`, a sealed table (cache/sealed_table.h) beside
// the kernel cache. docs/formats/settings.md specifies it. The rates of each kind of hardware, and
// the number of the last change, are in `tuning.sqlite`.
//
// A setting is found by the canonical kernel, the hardware and the version of settings, and not by
// the version of Kiln, whose kernels are binaries: a new version keeps what was measured. Losing
// the file, or a part of it, costs searches and never a result.
#ifndef KILN_SERVER_TUNER_SETTING_STORE_H_
#define KILN_SERVER_TUNER_SETTING_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "drivers/interface/target.h"
#include "server/cache/sealed_table.h"
#include "server/tuner/device_rates.h"
#include "server/tuner/neighbours.h"
#include "server/tuner/tuned_setting.h"

namespace kiln::tuner {

// Returns the hardware under which a setting is stored that only this user may use; `hardware`
// itself if `owner` is empty.
std::string StoredHardware(const std::string& hardware, const std::string& owner);

// Thread-safe. Several daemons may share a folder.
class SettingStore {
 public:
  static constexpr size_t kEarlierSettingsMax = 8;

  struct Options {
    std::string folder;  // created if it does not exist
    // The settings that were not used for the longest time are evicted first.
    int64_t entries_max = 20'000;
    // The exported text then fits a message of the largest size that the daemon takes.
    int64_t bytes_max = int64_t{32} << 20;
    std::function<absl::Time()> now;  // for the times of use
    // Settings that were there before the first change (shipped_settings.h). One that is stored for
    // the same kernel and hardware goes before them, also one that says that the heuristic's
    // schedule is the fastest here. They are not in the table, and are not exported.
    std::vector<TunedSetting> shipped = {};
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
    int dropped = 0;   // the store was full, and kept what it had; they are in no other number
  };

  explicit SettingStore(Options options);

  // Returns the setting for compiler::Options::tuned; nullopt if there is none, or if nothing was
  // faster than the heuristic's.
  //
  // `owner`, where programs are not shared: the user who compiles. A setting that was found for
  // that user goes first, then one for all; other users' do not count.
  std::optional<std::string> SettingFor(const std::string& kernel, const drivers::Target& target,
                                        const std::string& owner = "");

  // Each change of a setting that compilations use has a number, higher than those of all earlier
  // changes, also of earlier daemons: the time in microseconds since 1970, or the number after the
  // last one's if that is higher. 1: there was none.
  uint64_t last_change() const { return last_change_.load(std::memory_order_acquire); }

  // Returns what SettingFor returned after this change and before the next one. At most
  // kEarlierSettingsMax replaced settings of a kernel are kept for each owner and for none; those
  // whose settings are all newer count as if they had none.
  std::optional<std::string> SettingAt(const std::string& kernel, const drivers::Target& target,
                                       const std::string& owner, uint64_t change);

  // Returns everything about the kernel on this hardware, in the compiler's version of settings.
  std::optional<TunedSetting> Find(const std::string& kernel, const std::string& hardware,
                                   const std::string& owner = "");

  // Returns the setting of the stored kernel that is most similar to this one, on the same hardware
  // and in the compiler's version of settings, of this owner or of none: as text, for a search to
  // start from; nullopt if none is similar (similar_kernels.h) and has a setting. The first call
  // reads all settings, a page at a time, so that compilations can look up theirs in between; later
  // ones look into an index in memory (neighbours.h), with the store's bounds. Settings that other
  // daemons store in the folder meanwhile are not found.
  std::optional<std::string> NearestSetting(const std::string& kernel, const std::string& hardware,
                                            const std::string& owner = "")
      ABSL_LOCKS_EXCLUDED(neighbours_mutex_);

  // Replaces what is stored for the kernel, hardware and version of `setting`. INVALID_ARGUMENT:
  // Check refuses it. FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE: it was not stored
  // (SealedTable::Put).
  absl::Status Put(const TunedSetting& setting);

  // The rates of this hardware; nullopt: they were not measured.
  std::optional<DeviceRates> FindRates(const std::string& hardware);
  // Replaces them. Errors: those of Put, without INVALID_ARGUMENT.
  absl::Status PutRates(const std::string& hardware, const DeviceRates& rates);

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
  uint64_t Now() const;
  // The setting that is shipped, in the compiler's version of settings; null: none.
  const TunedSetting* FindShipped(const std::string& kernel, const std::string& hardware) const;
  // Returns whether another row fits without taking the place of one.
  bool HasRoomFor(const TunedSetting& setting);

  // The last change, and rates by hardware.
  cache::SealedTable facts_;
  cache::SealedTable table_;
  const std::function<absl::Time()> now_;
  const absl::flat_hash_map<std::string, TunedSetting> shipped_;  // by key
  const int64_t entries_max_;
  const int64_t bytes_max_;
  std::atomic<uint64_t> last_change_{1};
  // Held while a row is replaced: it depends on the one that was there.
  absl::Mutex put_mutex_;
  absl::Mutex neighbours_mutex_ ABSL_ACQUIRED_AFTER(put_mutex_);
  // Null until the first NearestSetting.
  std::unique_ptr<Neighbours> neighbours_ ABSL_GUARDED_BY(neighbours_mutex_);
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_SETTING_STORE_H_
