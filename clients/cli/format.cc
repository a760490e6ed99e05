#include "clients/cli/format.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kiln/v1/device.pb.h"
#include "kiln/v1/program.pb.h"

namespace kiln::cli {
namespace {

// Returns three significant digits for values below 1000.
std::string Digits(double value) {
  if (value < 10) return absl::StrFormat("%.2f", value);
  if (value < 100) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.0f", value);
}

}  // namespace

std::string Bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(Digits(value), " ", kUnits[unit]);
}

std::string Duration(double seconds) {
  if (seconds <= 0) return "-";
  if (seconds < 1e-6) return absl::StrFormat("%.0f ns", seconds * 1e9);
  if (seconds < 1e-3) return Digits(seconds * 1e6) + " µs";
  if (seconds < 1) return Digits(seconds * 1e3) + " ms";
  if (seconds < 120) return Digits(seconds) + " s";
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.0f h", seconds / 3600);
}

std::string Rate(double amount, double seconds, const std::string& unit) {
  if (seconds <= 0 || amount <= 0) return "-";
  return absl::StrCat(Digits(amount / seconds / 1e9), " G", unit, "/s");
}

std::string Percent(double share) { return absl::StrFormat("%.0f%%", share * 100); }

std::string DevicesText(const v1::Program& program) {
  // An older daemon names only the first device.
  if (program.devices().empty()) return program.device();
  return absl::StrJoin(program.devices(), ", ");
}

std::string Health(const v1::Device& device) {
  switch (device.health()) {
    case v1::Device::HEALTHY:
      return "healthy";
    case v1::Device::DRAINING:
      return "draining";
    case v1::Device::FAILED:
      return absl::StrCat("failed: ", device.health_message());
    // A daemon newer than this program may know further values.
    default:
      return "unknown";
  }
}

Cell BytesCell(uint64_t bytes) { return {Bytes(bytes), static_cast<double>(bytes)}; }
Cell DurationCell(double seconds) { return {Duration(seconds), seconds}; }
Cell PercentCell(double share) { return {Percent(share), share}; }
Cell RateCell(double amount, double seconds, const std::string& unit) {
  return {Rate(amount, seconds, unit), seconds > 0 ? amount / seconds : 0};
}
Cell CountCell(uint64_t count) { return {absl::StrCat(count), static_cast<double>(count)}; }

Cell HealthCell(const v1::Device& device) {
  const Color color = device.health() == v1::Device::HEALTHY    ? Color::kGood
                      : device.health() == v1::Device::DRAINING ? Color::kWarning
                                                                : Color::kBad;
  return {Health(device), color};
}

std::string ShortDigest(const std::string& digest) { return digest.substr(0, 12); }

}  // namespace kiln::cli
