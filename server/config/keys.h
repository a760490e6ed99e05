// The table of configuration keys. The readers of files and flags, the check of values, --help,
// docs/configuration.md and deploy/kilnd.toml are made from it.
#ifndef KILN_SERVER_CONFIG_KEYS_H_
#define KILN_SERVER_CONFIG_KEYS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/config/config.h"
#include "server/quota/resource.h"

namespace kiln::config {

inline constexpr int64_t kAnyNumberMax = std::numeric_limits<int>::max();
inline constexpr int64_t kAnyBytesMax = std::numeric_limits<int64_t>::max();

enum class Type { kText, kList, kSwitch, kNumber, kBytes };

// A value of one of the types; numbers and bytes are int64_t.
using Value = std::variant<std::string, std::vector<std::string>, bool, int64_t>;

struct Key {
  absl::string_view path{};  // in the file, "cache.limit"; empty: there is only a flag
  absl::string_view flag{};  // "cache_dir"; empty: there is none
  // Where the value is in a Config. The type of the key follows from it: an int is a number, an
  // int64_t is bytes.
  std::variant<std::string Config::*, std::vector<std::string> Config::*, bool Config::*,
               int Config::*, int64_t Config::*, quota::Resource>
      member;
  absl::string_view meaning;
  absl::string_view unit{};  // of a number
  // The range of a number or of bytes.
  int64_t min = 0;
  int64_t max = kAnyBytesMax;
  absl::string_view zero{};  // the meaning of 0, which is then allowed even below `min`
  bool flag_adds = false;  // each occurrence of the flag adds to the list; else the last one counts
  bool names_reloaded_file = false;  // the daemon reads the file again when it changes
  bool reloads = false;              // SIGHUP applies another value
};

// A table of the file: "[cache]".
struct Section {
  absl::string_view name;  // empty: the keys before all tables
  absl::string_view what;
};

// In the order of the documents; the keys of a section are neighbours.
absl::Span<const Key> Keys();
absl::Span<const Section> Sections();

// Returns null if no key has this path or flag: FindKey(&Key::flag, "cache_dir").
const Key* FindKey(absl::string_view Key::*by, absl::string_view name);
// Returns whether the file may have a table of this name.
bool IsSection(absl::string_view name);

// The parts of a path: "cache" and "limit". Keys that are only flags belong to no section.
absl::string_view SectionOf(const Key& key);
absl::string_view NameOf(const Key& key);
// The path, or "--flag" if there is none.
std::string LabelOf(const Key& key);

Type TypeOf(const Key& key);
// Describes the values of the type, for errors: "an integer of 0 or more".
absl::string_view Wanted(Type type);
Value Get(const Key& key, const Config& config);
// Requires: the value has the key's type, and a number fits an int.
void Set(const Key& key, Value value, Config* config);

// Returns the keys whose values differ.
std::vector<const Key*> Differences(const Config& one, const Config& other);

// Returns whether the range of the key includes the number.
bool IsInRange(const Key& key, int64_t number);
// "1 to 604800", "0 or more", "0, or 256MiB or more".
std::string RangeText(const Key& key);

// As ParseBytes reads it, in the largest unit without a fraction: "4GiB".
std::string BytesText(int64_t bytes);

}  // namespace kiln::config

#endif  // KILN_SERVER_CONFIG_KEYS_H_
