#include "server/tuner/setting_store.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/search/knobs/setting.h"
#include "proto/coding/coding.h"
#include "server/log/log.h"

namespace kiln::tuner {
namespace {

// The version of the table's columns. Entries have a version of their own, because a table of an
// earlier version is dropped.
constexpr int64_t kTableVersion = 1;
constexpr uint64_t kEntryVersion = 1;

std::string KeyOf(const std::string& kernel, const std::string& hardware, int version) {
  ByteWriter key;
  key.Text(hardware);
  key.Number(static_cast<uint64_t>(version));
  key.Bytes(kernel);
  return key.Take();
}

std::string KeyOf(const TunedSetting& setting) {
  return KeyOf(setting.kernel, setting.hardware, setting.version);
}

std::string Encode(const TunedSetting& setting) {
  ByteWriter entry;
  entry.Number(kEntryVersion);
  entry.Text(setting.kernel);
  entry.Text(setting.hardware);
  entry.Number(static_cast<uint64_t>(setting.version));
  entry.Text(setting.setting);
  entry.Real(setting.seconds_before);
  entry.Real(setting.seconds_after);
  entry.Real(setting.roofline_seconds);
  entry.Signed(absl::ToUnixSeconds(setting.measured));
  entry.Number(static_cast<uint64_t>(setting.width));
  return entry.Take();
}

// An entry of a later version, or one that this version would not write, counts as missing.
std::optional<TunedSetting> Decode(std::string_view bytes) {
  ByteReader entry(bytes);
  if (entry.Number() != kEntryVersion) return std::nullopt;
  constexpr uint64_t kIntMax = std::numeric_limits<int>::max();
  TunedSetting setting;
  setting.kernel = entry.Text();
  setting.hardware = entry.Text();
  const uint64_t version = entry.Number();
  setting.setting = entry.Text();
  setting.seconds_before = entry.Real();
  setting.seconds_after = entry.Real();
  setting.roofline_seconds = entry.Real();
  setting.measured = absl::FromUnixSeconds(entry.Signed());
  const uint64_t width = entry.Number();
  if (!entry.AtEnd() || version > kIntMax || width > kIntMax) return std::nullopt;
  setting.version = static_cast<int>(version);
  setting.width = static_cast<int>(width);
  if (!Check(setting).ok()) return std::nullopt;
  return setting;
}

}  // namespace

SettingStore::SettingStore(Options options)
    : table_({.folder = std::move(options.folder),
              .name = "settings",
              .title = "setting store",
              .noun = "setting",
              .loss = "its kernel has the heuristic's schedule",
              .version = kTableVersion,
              .bytes_max = options.bytes_max,
              .rows_max = options.entries_max,
              .now = std::move(options.now)}) {}

std::string StoredHardware(const std::string& hardware, const std::string& owner) {
  return owner.empty() ? hardware : absl::StrCat(hardware, ";user=", owner);
}

std::optional<std::string> SettingStore::SettingFor(const std::string& kernel,
                                                    const drivers::Target& target,
                                                    const std::string& owner) {
  std::optional<TunedSetting> found = Find(kernel, target.HardwareKey(), owner);
  if (!found || found->setting.empty()) return std::nullopt;
  return std::move(found->setting);
}

std::optional<TunedSetting> SettingStore::Find(const std::string& kernel,
                                               const std::string& hardware,
                                               const std::string& owner) {
  std::optional<std::string> bytes;
  table_.Get(KeyOf(kernel, StoredHardware(hardware, owner), search::kSettingVersion), &bytes);
  std::optional<TunedSetting> found = bytes ? Decode(*bytes) : std::nullopt;
  return found || owner.empty() ? found : Find(kernel, hardware);
}

absl::Status SettingStore::Put(const TunedSetting& setting) {
  if (absl::Status legal = Check(setting); !legal.ok()) return legal;
  return table_.Put(KeyOf(setting), Encode(setting));
}

absl::StatusOr<SettingStore::Exported> SettingStore::Export() {
  std::vector<TunedSetting> settings;
  const absl::Status read = table_.ForEach([&settings](std::string_view bytes) {
    if (std::optional<TunedSetting> setting = Decode(bytes))
      settings.push_back(*std::move(setting));
  });
  if (!read.ok()) return read;
  const int count = static_cast<int>(settings.size());
  return Exported{.text = PrintSettings(std::move(settings)), .settings = count};
}

absl::StatusOr<SettingStore::Imported> SettingStore::Import(std::string_view text) {
  const absl::StatusOr<std::vector<TunedSetting>> settings = ParseSettings(text);
  if (!settings.ok()) return settings.status();
  Imported imported;
  std::vector<std::pair<std::string, int*>> stored;  // keys, and where they count
  for (const TunedSetting& setting : *settings) {
    std::string key = KeyOf(setting);
    std::optional<std::string> bytes;
    table_.Get(key, &bytes);
    const std::optional<TunedSetting> known = bytes ? Decode(*bytes) : std::nullopt;
    if (known && known->seconds_after <= setting.seconds_after) {
      ++imported.kept;
      continue;
    }
    if (absl::Status put = Put(setting); !put.ok()) return put;
    int* const count = known ? &imported.replaced : &imported.added;
    ++*count;
    stored.emplace_back(std::move(key), count);
  }
  for (const auto& [key, count] : stored) {
    std::optional<std::string> bytes;
    table_.Get(key, &bytes);
    if (bytes) continue;
    --*count;
    ++imported.dropped;
  }
  log::Info("settings_imported", {{"added", absl::StrCat(imported.added)},
                                  {"replaced", absl::StrCat(imported.replaced)},
                                  {"kept", absl::StrCat(imported.kept)},
                                  {"dropped", absl::StrCat(imported.dropped)}});
  return imported;
}

SettingStore::Statistics SettingStore::GetStatistics() {
  const cache::SealedTable::Statistics rows = table_.GetStatistics();
  return {.path = table_.path(), .entries = rows.rows, .bytes = rows.bytes};
}

}  // namespace kiln::tuner
