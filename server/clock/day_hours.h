// The hours of a day in which something may happen.
#ifndef KILN_SERVER_CLOCK_DAY_HOURS_H_
#define KILN_SERVER_CLOCK_DAY_HOURS_H_

#include <optional>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace kiln {

// From the beginning of an hour to that of another, past midnight if that is earlier. Equal:
// always.
struct DayHours {
  int begin = 0;  // 0 to 23
  int end = 0;    // likewise

  bool Contains(absl::Time wall, const absl::TimeZone& zone) const {
    const int hour = absl::ToCivilHour(wall, zone).hour();
    if (begin == end) return true;
    return begin < end ? hour >= begin && hour < end : hour >= begin || hour < end;
  }
};

// Reads "22-6"; hours are 0 to 24. Empty: always. Returns nullopt for other texts.
inline std::optional<DayHours> ParseDayHours(std::string_view text) {
  if (text.empty()) return DayHours();
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos || text.size() > 5) return std::nullopt;
  const auto number = [](std::string_view part) -> std::optional<int> {
    int hour = 0;
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    if (!is_number || !absl::SimpleAtoi(absl::string_view(part.data(), part.size()), &hour))
      return std::nullopt;
    return hour <= 24 ? std::optional(hour) : std::nullopt;
  };
  const auto begin = number(text.substr(0, dash)), end = number(text.substr(dash + 1));
  if (!begin || !end) return std::nullopt;
  return DayHours{.begin = *begin % 24, .end = *end % 24};
}

}  // namespace kiln

#endif  // KILN_SERVER_CLOCK_DAY_HOURS_H_
