#include "proto/text/byte_count.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace kiln {

absl::StatusOr<int64_t> ParseBytes(const std::string& text) {
  struct Unit {
    const char* name;
    double bytes;
  };
  // Longer names first, because all of them end with "B".
  constexpr Unit kUnits[] = {
      {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
      {"kB", 1e3},     {"MB", 1e6},        {"GB", 1e9},           {"TB", 1e12},
      {"B", 1.0}};
  absl::string_view number = text;
  double unit = 1;
  for (const Unit& row : kUnits) {
    if (!absl::ConsumeSuffix(&number, row.name)) continue;
    unit = row.bytes;
    break;
  }
  double value = 0;
  // Written so that NaN, which SimpleAtod takes, is refused; 9e18 is just below 2^63.
  if (!absl::SimpleAtod(number, &value) || !(value >= 0) || value * unit > 9e18) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a number of bytes such as 1000000, 512MiB or 4GiB"));
  }
  return static_cast<int64_t>(value * unit);
}

}  // namespace kiln
