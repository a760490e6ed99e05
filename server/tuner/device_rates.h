// The rates of a device, as measured (measure_rates.h), and the roofline of a kernel that follows
// from them: the least time that the device's arithmetic and memory allow.
// Source: Williams, Waterman, Patterson, "Roofline", CACM 2009.
#ifndef KILN_SERVER_TUNER_DEVICE_RATES_H_
#define KILN_SERVER_TUNER_DEVICE_RATES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace kiln::tuner {

// Operations in a second; 0: not measured.
struct ArithmeticRates {
  double fused = 0;  // of sums of products; an FMA is two operations
  double other = 0;  // multiplications and additions on their own

  bool operator==(const ArithmeticRates&) const = default;
};

// Bytes in a second, over and over through data of this size.
struct TrafficRates {
  int64_t bytes = 0;  // read and written
  double read = 0;    // if it is only read
  // If it is only written, and if half of it is copied to the other half; 0: not measured, where
  // the data is so small that starting the kernel takes longer.
  double write = 0;
  double copy = 0;

  bool operator==(const TrafficRates&) const = default;
};

struct Throughput {
  ArithmeticRates float32;
  ArithmeticRates float64;
  std::vector<TrafficRates> traffic;  // ascending sizes; at most kTrafficSizesMax

  bool operator==(const Throughput&) const = default;
};
inline constexpr size_t kTrafficSizesMax = 8;

struct DeviceRates {
  Throughput all = {};     // of all threads
  Throughput thread = {};  // of one thread; nothing where lanes are threads
  int threads = 1;
  double launch_seconds = 0;  // of a kernel that does almost nothing

  bool operator==(const DeviceRates&) const = default;
};

enum class Limit { kUnknown, kCompute, kMemory, kLaunch };
// "unknown", "compute", "memory", "launch".
std::string_view LimitName(Limit limit);

struct Roofline {
  double seconds = 0;  // 0: not known
  Limit limit = Limit::kUnknown;

  bool operator==(const Roofline&) const = default;
};

// Whether a kernel that takes this long is certainly faster than its roofline: the rates were
// measured while the device had other work.
bool IsBeaten(const Roofline& roofline, double seconds);

// Counts each accessed element once, in the caches if all of them fit, and loops that are not
// divided among threads at one thread's rate. An unmeasured rate limits nothing.
Roofline RooflineOf(const kernel::Kernel& kernel, const DeviceRates& rates);
// The same for a canonical kernel's text.
Roofline RooflineOf(const std::string& kernel, const DeviceRates& rates);

// Returns the higher of both for each rate: other work of the machine lowers some measurements.
// Requires: both are of the same hardware.
DeviceRates Highest(const DeviceRates& one, const DeviceRates& other);

// docs/formats/settings.md.
std::string EncodeRates(const DeviceRates& rates);
// Nothing if the bytes are not of this version, or a rate is out of range.
std::optional<DeviceRates> DecodeRates(std::string_view bytes);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_DEVICE_RATES_H_
