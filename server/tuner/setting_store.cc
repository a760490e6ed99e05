#include "server/tuner/setting_store.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/search/knobs/setting.h"
#include "proto/coding/coding.h"
#include "server/log/log.h"

namespace kiln::tuner {
namespace {

// The version of the table's columns. Entries have a version of their own, because a table of an
// earlier version is dropped.
constexpr int64_t kTableVersion = 1;
constexpr uint64_t kEntryVersion = 2;
constexpr int64_t kFactsMax = 1000;
// Also bounds the log beside the table, to which each change adds.
constexpr int64_t kFactsBytesMax = 1 << 20;
constexpr uint64_t kLastChangeVersion = 201;

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

// No setting has the version 0.
std::string KeyOfRates(const std::string& hardware) { return KeyOf("rates", hardware, 0); }

std::string KeyOfLastChange() { return KeyOf("last change", "", 0); }

std::string EncodeLastChange(uint64_t change) {
  ByteWriter entry;
  entry.Number(kLastChangeVersion);
  entry.Number(change);
  return entry.Take();
}
std::optional<uint64_t> DecodeLastChange(std::string_view bytes) {
  ByteReader entry(bytes);
  if (entry.Number() != kLastChangeVersion) return std::nullopt;
  const uint64_t change = entry.Number();
  return entry.AtEnd() && change > 1 ? std::make_optional(change) : std::nullopt;
}

// A row of the table.
struct Row {
  TunedSetting setting;
  uint64_t since = 0;  // the change that stored `setting.setting`
  // Settings that it replaced, the last one first, each with its change.
  std::vector<std::pair<uint64_t, std::string>> earlier = {};
};

std::string Encode(const Row& row) {
  const TunedSetting& setting = row.setting;
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
  entry.Number(row.since);
  entry.Number(row.earlier.size());
  for (const auto& [since, text] : row.earlier) {
    entry.Number(since);
    entry.Text(text);
  }
  return entry.Take();
}

// An entry of a later version, or one that this version would not write, counts as missing.
std::optional<Row> Decode(std::string_view bytes) {
  ByteReader entry(bytes);
  const uint64_t entry_version = entry.Number();
  if (entry_version < 1 || entry_version > kEntryVersion) return std::nullopt;
  constexpr uint64_t kIntMax = std::numeric_limits<int>::max();
  Row row;
  TunedSetting& setting = row.setting;
  setting.kernel = entry.Text();
  setting.hardware = entry.Text();
  const uint64_t version = entry.Number();
  setting.setting = entry.Text();
  setting.seconds_before = entry.Real();
  setting.seconds_after = entry.Real();
  setting.roofline_seconds = entry.Real();
  setting.measured = absl::FromUnixSeconds(entry.Signed());
  const uint64_t width = entry.Number();
  if (entry_version >= 2) {
    row.since = entry.Number();
    row.earlier.resize(entry.Below(SettingStore::kEarlierSettingsMax + 1));
    for (auto& [since, text] : row.earlier) {
      since = entry.Number();
      text = entry.Text();
      if (text.size() > kSettingBytesMax) entry.Fail();
    }
  }
  if (!entry.AtEnd() || version > kIntMax || width > kIntMax) return std::nullopt;
  setting.version = static_cast<int>(version);
  setting.width = static_cast<int>(width);
  if (!Check(setting).ok()) return std::nullopt;
  return row;
}

std::optional<Row> FindRow(cache::SealedTable& table, const std::string& key) {
  std::optional<std::string> bytes;
  table.Get(key, &bytes);
  return bytes ? Decode(*bytes) : std::nullopt;
}

// Returns the text of the setting after this change; nullopt if there was none, or if it is not
// kept any more.
std::optional<std::string> TextAt(std::optional<Row> row, uint64_t change) {
  if (!row) return std::nullopt;
  if (row->since <= change) return std::move(row->setting.setting);
  for (auto& [since, text] : row->earlier)
    if (since <= change) return std::move(text);
  return std::nullopt;
}

void AddTo(const TunedSetting& setting, Neighbours& neighbours) {
  if (setting.version == search::kSettingVersion)
    neighbours.Put(setting.hardware, setting.kernel, setting.setting);
}

absl::flat_hash_map<std::string, TunedSetting> ByKey(std::vector<TunedSetting> settings) {
  absl::flat_hash_map<std::string, TunedSetting> by_key;
  for (TunedSetting& setting : settings) {
    std::string key = KeyOf(setting);
    by_key.try_emplace(std::move(key), std::move(setting));
  }
  return by_key;
}

// The start of the owner in the hardware of a setting.
constexpr char kOwner[] = ";user=";

}  // namespace

SettingStore::SettingStore(Options options)
    : facts_({.folder = options.folder,
              .name = "tuning",
              .title = "store of rates",
              .noun = "rate",
              .loss = "it is measured again",
              .version = kTableVersion,
              .bytes_max = kFactsBytesMax,
              .rows_max = kFactsMax,
              .now = options.now}),
      table_({.folder = std::move(options.folder),
              .name = "settings",
              .title = "setting store",
              .noun = "setting",
              .loss = "its kernel has the heuristic's schedule",
              .version = kTableVersion,
              .bytes_max = options.bytes_max,
              .rows_max = options.entries_max,
              .now = options.now}),
      now_(std::move(options.now)),
      shipped_(ByKey(std::move(options.shipped))),
      entries_max_(options.entries_max),
      bytes_max_(options.bytes_max) {
  std::optional<std::string> bytes;
  facts_.Get(KeyOfLastChange(), &bytes);
  const std::optional<uint64_t> last = bytes ? DecodeLastChange(*bytes) : std::nullopt;
  if (last) {
    last_change_ = *last;
  } else if (table_.GetStatistics().rows > 0) {
    // It was lost, or an earlier version has not written it. All changes that there were are in the
    // past.
    last_change_ = Now();
    facts_.Put(KeyOfLastChange(), EncodeLastChange(last_change())).IgnoreError();
  }
}

uint64_t SettingStore::Now() const {
  return static_cast<uint64_t>(std::max<int64_t>(absl::ToUnixMicros(now_()), 2));
}

std::string StoredHardware(const std::string& hardware, const std::string& owner) {
  return owner.empty() ? hardware : absl::StrCat(hardware, kOwner, owner);
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
  std::optional<Row> row =
      FindRow(table_, KeyOf(kernel, StoredHardware(hardware, owner), search::kSettingVersion));
  if (row) return std::move(row->setting);
  if (!owner.empty()) return Find(kernel, hardware);
  const TunedSetting* const shipped = FindShipped(kernel, hardware);
  return shipped == nullptr ? std::nullopt : std::make_optional(*shipped);
}

const TunedSetting* SettingStore::FindShipped(const std::string& kernel,
                                              const std::string& hardware) const {
  const auto found = shipped_.find(KeyOf(kernel, hardware, search::kSettingVersion));
  return found == shipped_.end() ? nullptr : &found->second;
}

std::optional<std::string> SettingStore::SettingAt(const std::string& kernel,
                                                   const drivers::Target& target,
                                                   const std::string& owner, uint64_t change) {
  const std::string hardware = target.HardwareKey();
  std::optional<std::string> found = TextAt(
      FindRow(table_, KeyOf(kernel, StoredHardware(hardware, owner), search::kSettingVersion)),
      change);
  if (!found && !owner.empty())
    found = TextAt(FindRow(table_, KeyOf(kernel, hardware, search::kSettingVersion)), change);
  if (!found)
    if (const TunedSetting* const shipped = FindShipped(kernel, hardware)) return shipped->setting;
  return found && found->empty() ? std::nullopt : found;
}

std::optional<std::string> SettingStore::NearestSetting(const std::string& kernel,
                                                        const std::string& hardware,
                                                        const std::string& owner) {
  std::vector<std::string> kinds = {hardware};
  if (!owner.empty()) kinds.push_back(StoredHardware(hardware, owner));
  absl::MutexLock lock(&neighbours_mutex_);
  if (neighbours_ == nullptr) {
    auto read = std::make_unique<Neighbours>(static_cast<size_t>(entries_max_),
                                             static_cast<size_t>(bytes_max_));
    for (const auto& [key, shipped] : shipped_) AddTo(shipped, *read);
    const absl::Status status = table_.ForEachInPages([&](std::string_view bytes) {
      const std::optional<Row> row = Decode(bytes);
      if (row) AddTo(row->setting, *read);
    });
    if (!status.ok()) return std::nullopt;
    neighbours_ = std::move(read);
  }
  return neighbours_->Nearest(kinds, kernel);
}

absl::Status SettingStore::Put(const TunedSetting& setting) {
  if (absl::Status legal = Check(setting); !legal.ok()) return legal;
  absl::MutexLock lock(&put_mutex_);
  const std::string key = KeyOf(setting);
  Row row{.setting = setting};
  const size_t owner = setting.hardware.find(kOwner);
  const bool is_owned = owner != std::string::npos;
  std::string before;
  std::optional<Row> old = FindRow(table_, key);
  if (old) {
    before = old->setting.setting;
    row.since = old->since;
    row.earlier = std::move(old->earlier);
  } else if (is_owned) {
    // Until now the owner's programs had the setting without an owner, also those of before.
    if (const auto common = Find(setting.kernel, setting.hardware.substr(0, owner)))
      before = common->setting;
    row.since = last_change();
  } else if (const TunedSetting* const shipped = FindShipped(setting.kernel, setting.hardware)) {
    before = shipped->setting;
  }
  const bool is_change = setting.setting != before;
  if (is_change) {
    // A kernel without any row had the shipped setting, or the heuristic's schedule.
    if (old || !is_owned) row.earlier.insert(row.earlier.begin(), {row.since, before});
    row.earlier.resize(std::min(row.earlier.size(), kEarlierSettingsMax));
    row.since = std::max(Now(), last_change() + 1);
    // First: a number without its change does no harm.
    absl::Status put = facts_.Put(KeyOfLastChange(), EncodeLastChange(row.since));
    if (!put.ok()) return put;
  }
  absl::Status put = table_.Put(key, Encode(row));
  if (!put.ok()) return put;
  if (is_change) last_change_.store(row.since, std::memory_order_release);
  absl::MutexLock neighbours_lock(&neighbours_mutex_);
  if (neighbours_ != nullptr) AddTo(setting, *neighbours_);
  return put;
}

std::optional<DeviceRates> SettingStore::FindRates(const std::string& hardware) {
  std::optional<std::string> bytes;
  facts_.Get(KeyOfRates(hardware), &bytes);
  return bytes ? DecodeRates(*bytes) : std::nullopt;
}

absl::Status SettingStore::PutRates(const std::string& hardware, const DeviceRates& rates) {
  return facts_.Put(KeyOfRates(hardware), EncodeRates(rates));
}

absl::StatusOr<SettingStore::Exported> SettingStore::Export() {
  std::vector<TunedSetting> settings;
  const absl::Status read = table_.ForEachInPages([&settings](std::string_view bytes) {
    if (std::optional<Row> row = Decode(bytes)) settings.push_back(std::move(row->setting));
  });
  if (!read.ok()) return read;
  const int count = static_cast<int>(settings.size());
  return Exported{.text = PrintSettings(std::move(settings)), .settings = count};
}

bool SettingStore::HasRoomFor(const TunedSetting& setting) {
  constexpr int64_t kSealBytes = 256;  // at most, beside the row's own
  const cache::SealedTable::Statistics now = table_.GetStatistics();
  const auto bytes = static_cast<int64_t>(Encode({.setting = setting}).size()) + kSealBytes;
  return now.rows < entries_max_ && now.bytes + bytes <= bytes_max_;
}

absl::StatusOr<SettingStore::Imported> SettingStore::Import(std::string_view text) {
  const absl::StatusOr<std::vector<TunedSetting>> settings = ParseSettings(text);
  if (!settings.ok()) return settings.status();
  Imported imported;
  std::vector<std::pair<std::string, int*>> stored;  // keys, and where they count
  for (const TunedSetting& setting : *settings) {
    std::string key = KeyOf(setting);
    const std::optional<Row> known = FindRow(table_, key);
    if (known && known->setting.seconds_after <= setting.seconds_after) {
      ++imported.kept;
      continue;
    }
    // A text of other machines must not take the place of settings that this one uses.
    if (!known && !HasRoomFor(setting)) {
      ++imported.dropped;
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
