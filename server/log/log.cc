#include "server/log/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/text/printable.h"
#include "server/log/rate_limit.h"

namespace kiln::log {
namespace {

std::atomic<Level> minimum_level{Level::kInfo};
std::atomic<absl::Time (*)()> clock_now{absl::UnixEpoch};

struct LevelName {
  Level level;
  const char* name;
};
const LevelName kLevels[] = {{Level::kDebug, "debug"},
                             {Level::kInfo, "info"},
                             {Level::kWarning, "warning"},
                             {Level::kError, "error"}};

const char* Name(Level level) {
  for (const LevelName& row : kLevels) {
    if (row.level == level) return row.name;
  }
  return "unknown";
}

bool NeedsQuotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    // Otherwise a value could end its field and look like the next one.
    if (c == ' ' || c == '"' || c == '=' || c == '\\') return true;
  }
  return !IsPrintable(value);
}

void AppendField(std::string* line, absl::string_view key, std::string_view value) {
  if (!line->empty()) line->push_back(' ');
  absl::StrAppend(line, key, "=");
  if (!NeedsQuotes(value)) {
    line->append(value);
    return;
  }
  line->push_back('"');
  line->append(PrintableInQuotes(value));
  line->push_back('"');
}

// Returns how many lines of this event were dropped before this one; nullopt if this one is
// dropped, too.
std::optional<int64_t> Admit(Level level, absl::string_view event, absl::Time now) {
  // Debugging needs all lines, and errors are not caused by clients.
  if (level == Level::kDebug || level == Level::kError) return 0;
  static absl::Mutex mutex(absl::kConstInit);
  // By event; the source code bounds their number. Never destroyed: threads may log while the
  // process exits.
  static auto& limits = *new std::map<std::string, RateLimit, std::less<>>;
  absl::MutexLock lock(&mutex);
  auto limit = limits.find(event);
  if (limit == limits.end())
    limit = limits.emplace(event, RateLimit(kLinesOfAnEvent, absl::Minutes(1))).first;
  return limit->second.Admit(now);
}

void Write(Level level, absl::string_view event, Fields fields) {
  if (!IsOn(level)) return;
  const absl::Time now = clock_now.load()();
  const auto held_back = Admit(level, event, now);
  if (!held_back) return;
  std::string line = Format(now, level, event, fields);
  if (*held_back > 0) {
    line.pop_back();
    absl::StrAppend(&line, " unlogged=", *held_back, "\n");
  }
  // A log that cannot be written must not stop the daemon.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

bool ParseLevel(absl::string_view name, Level* level) {
  for (const LevelName& row : kLevels) {
    if (row.name != name) continue;
    *level = row.level;
    return true;
  }
  return false;
}

void SetLevel(Level level) { minimum_level = level; }
bool IsOn(Level level) { return level >= minimum_level.load(std::memory_order_relaxed); }
void SetClock(absl::Time (*now)()) { clock_now = now; }

std::string Format(absl::Time time, Level level, absl::string_view event, Fields fields) {
  std::string line;
  AppendField(&line, "time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()));
  AppendField(&line, "level", Name(level));
  AppendField(&line, "event", std::string(event));
  for (const Field& field : fields) AppendField(&line, field.first, field.second);
  line.push_back('\n');
  return line;
}

void Debug(absl::string_view event, Fields fields) { Write(Level::kDebug, event, fields); }
void Info(absl::string_view event, Fields fields) { Write(Level::kInfo, event, fields); }
void Warning(absl::string_view event, Fields fields) { Write(Level::kWarning, event, fields); }
void Error(absl::string_view event, Fields fields) { Write(Level::kError, event, fields); }

}  // namespace kiln::log
