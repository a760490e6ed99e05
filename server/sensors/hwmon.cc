#include "server/sensors/hwmon.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace kiln::sensors {
namespace {

namespace fs = std::filesystem;

// More than any machine has; bounds the time of a reading.
constexpr size_t kEntriesMax = 4096;

// The drivers of processors' temperatures.
constexpr const char* kProcessorSensors[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};

std::string ReadLine(const fs::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

// Returns the number in a file, in the unit of which it has `per_unit`.
std::optional<double> ReadNumber(const fs::path& file, double per_unit) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(ReadLine(file), &number)) return std::nullopt;
  return static_cast<double>(number) / per_unit;
}

// Returns the entries of a folder whose names begin with `prefix`, in the order of their names;
// none if it cannot be read.
std::vector<fs::path> Entries(const fs::path& folder, absl::string_view prefix) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (auto each = fs::directory_iterator(folder, error);
       !error && each != fs::directory_iterator() && entries.size() < kEntriesMax;
       each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (absl::string_view rest = name; absl::ConsumePrefix(&rest, prefix))
      entries.push_back(each->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

void KeepHighest(std::optional<double> value, std::optional<double>* highest) {
  if (value && (!*highest || *value > **highest)) *highest = value;
}

}  // namespace

Readings ReadPciDevice(const std::string& sysfs, const std::string& pci_address) {
  Readings readings;
  if (pci_address.empty()) return readings;
  const fs::path device = fs::path(sysfs) / "bus/pci/devices" / pci_address;
  for (const fs::path& sensors : Entries(device / "hwmon", "hwmon")) {
    // Thousandths of a degree, millionths of a watt, hertz. Newer drivers show the present power,
    // older ones a mean.
    KeepHighest(ReadNumber(sensors / "temp1_input", 1e3), &readings.celsius);
    std::optional<double> watts = ReadNumber(sensors / "power1_input", 1e6);
    if (!watts) watts = ReadNumber(sensors / "power1_average", 1e6);
    KeepHighest(watts, &readings.watts);
    KeepHighest(ReadNumber(sensors / "freq1_input", 1), &readings.clock_hertz);
  }
  return readings;
}

Readings ReadProcessors(const std::string& sysfs) {
  Readings readings;
  for (const fs::path& sensors : Entries(fs::path(sysfs) / "class/hwmon", "hwmon")) {
    const std::string driver = ReadLine(sensors / "name");
    const bool is_processor = std::find(std::begin(kProcessorSensors), std::end(kProcessorSensors),
                                        driver) != std::end(kProcessorSensors);
    // The first sensor is that of the whole processor.
    if (is_processor) KeepHighest(ReadNumber(sensors / "temp1_input", 1e3), &readings.celsius);
  }
  double sum = 0;
  int cores = 0;
  for (const fs::path& core : Entries(fs::path(sysfs) / "devices/system/cpu", "cpu")) {
    const auto kilohertz = ReadNumber(core / "cpufreq/scaling_cur_freq", 1);
    if (!kilohertz) continue;
    sum += *kilohertz;
    ++cores;
  }
  if (cores > 0) readings.clock_hertz = 1e3 * sum / cores;
  return readings;
}

}  // namespace kiln::sensors
