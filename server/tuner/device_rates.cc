#include "server/tuner/device_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/ir/node.h"
#include "proto/coding/coding.h"

namespace kiln::tuner {
namespace {

constexpr std::string_view kLimitNames[] = {"unknown", "compute", "memory", "launch"};
// Setting entries of the same table have other numbers.
constexpr uint64_t kRatesVersion = 101;

// The rates of work that this many threads share.
class Rates {
 public:
  Rates(const DeviceRates& rates, int64_t threads)
      : rates_(rates), threads_(static_cast<double>(std::min<int64_t>(threads, rates.threads))) {}

  double Of(double all, double thread) const {
    return thread > 0 ? std::min(all, thread * threads_) : all;
  }

  double ComputeSeconds(const kernel::Cost& cost, ir::DType dtype,
                        ArithmeticRates Throughput::*field) const {
    return std::max(Seconds(cost.fused_flops, dtype, field, &ArithmeticRates::fused),
                    Seconds(cost.other_flops, dtype, field, &ArithmeticRates::other));
  }

  double MemorySeconds(const kernel::Cost& cost) const {
    const auto written = static_cast<double>(cost.written_bytes);
    const double read = static_cast<double>(cost.bytes) - written;
    const TrafficRates traffic = TrafficOf(cost.bytes);
    if (traffic.read <= 0) return 0;
    // Reads and writes of caches go side by side.
    if (traffic.copy <= 0 || traffic.write <= 0) return std::max(read, written) / traffic.read;
    const double both = std::min(read, written);
    return 2 * both / traffic.copy + (read - both) / traffic.read +
           (written - both) / traffic.write;
  }

 private:
  double Seconds(const std::map<ir::DType, int64_t>& flops, ir::DType dtype,
                 ArithmeticRates Throughput::*field, double ArithmeticRates::*rate) const {
    const auto found = flops.find(dtype);
    const double per_second = Of(rates_.all.*field.*rate, rates_.thread.*field.*rate);
    if (found == flops.end() || per_second <= 0) return 0;
    return static_cast<double>(found->second) / per_second;
  }

  // Returns the rates of the largest size that is not larger: bigger data is slower, so the time
  // that follows is never too long.
  static const TrafficRates* Find(const Throughput& rates, int64_t bytes) {
    const TrafficRates* found = nullptr;
    for (const TrafficRates& traffic : rates.traffic)
      if (found == nullptr || traffic.bytes <= bytes) found = &traffic;
    return found;
  }
  TrafficRates TrafficOf(int64_t bytes) const {
    const TrafficRates* all = Find(rates_.all, bytes);
    if (all == nullptr) return {};
    const TrafficRates* thread = Find(rates_.thread, bytes);
    if (thread == nullptr) return *all;
    return {.bytes = bytes,
            .read = Of(all->read, thread->read),
            .write = Of(all->write, thread->write),
            .copy = Of(all->copy, thread->copy)};
  }

  const DeviceRates& rates_;
  const double threads_;
};

// The number of points of which different threads may compute different ones.
int64_t PointsToShare(const kernel::Kernel& kernel) {
  int64_t grid = 1, most = 1;
  for (const ir::Node* range : kernel.grid) grid *= ir::ExtentOf(range);
  for (const kernel::Stage& stage : kernel.stages) {
    int64_t points = 1;
    for (const ir::Node* range : stage.ranges) points *= ir::ExtentOf(range);
    most = std::max(most, points);
  }
  return grid * most;
}

void Put(ByteWriter& out, const Throughput& rates) {
  for (const ArithmeticRates& one : {rates.float32, rates.float64}) {
    out.Real(one.fused);
    out.Real(one.other);
  }
  out.Number(rates.traffic.size());
  for (const TrafficRates& one : rates.traffic) {
    out.Number(static_cast<uint64_t>(one.bytes));
    out.Real(one.read);
    out.Real(one.write);
    out.Real(one.copy);
  }
}

// A rate that is not a number would make every roofline one.
double TakeRate(ByteReader& in) {
  const double rate = in.Real();
  if (!std::isfinite(rate) || rate < 0) in.Fail();
  return rate;
}

Throughput Take(ByteReader& in) {
  Throughput rates;
  for (ArithmeticRates* one : {&rates.float32, &rates.float64}) {
    one->fused = TakeRate(in);
    one->other = TakeRate(in);
  }
  rates.traffic.resize(in.Below(kTrafficSizesMax + 1));
  int64_t before = 0;
  for (TrafficRates& one : rates.traffic) {
    one.bytes = static_cast<int64_t>(std::min<uint64_t>(in.Number(), INT64_MAX));
    if (one.bytes <= before) in.Fail();
    before = one.bytes;
    one.read = TakeRate(in);
    one.write = TakeRate(in);
    one.copy = TakeRate(in);
  }
  return rates;
}

ArithmeticRates Highest(const ArithmeticRates& one, const ArithmeticRates& other) {
  return {std::max(one.fused, other.fused), std::max(one.other, other.other)};
}

Throughput Highest(const Throughput& one, const Throughput& other) {
  Throughput highest{.float32 = Highest(one.float32, other.float32),
                     .float64 = Highest(one.float64, other.float64),
                     .traffic = one.traffic};
  for (TrafficRates& traffic : highest.traffic) {
    for (const TrafficRates& same : other.traffic) {
      if (same.bytes != traffic.bytes) continue;
      traffic.read = std::max(traffic.read, same.read);
      traffic.write = std::max(traffic.write, same.write);
      traffic.copy = std::max(traffic.copy, same.copy);
    }
  }
  return highest;
}

}  // namespace

std::string_view LimitName(Limit limit) { return kLimitNames[static_cast<int>(limit)]; }

Roofline RooflineOf(const kernel::Kernel& kernel, const DeviceRates& measured) {
  const kernel::Cost cost = kernel::EstimateCost(kernel);
  const Rates rates(measured, PointsToShare(kernel));
  Roofline roofline;
  const auto raise = [&roofline](double seconds, Limit limit) {
    if (seconds > roofline.seconds) roofline = {seconds, limit};
  };
  raise(rates.ComputeSeconds(cost, ir::DType::kFloat32, &Throughput::float32), Limit::kCompute);
  raise(rates.ComputeSeconds(cost, ir::DType::kFloat64, &Throughput::float64), Limit::kCompute);
  raise(rates.MemorySeconds(cost), Limit::kMemory);
  raise(measured.launch_seconds, Limit::kLaunch);
  return roofline;
}

bool IsBeaten(const Roofline& roofline, double seconds) {
  constexpr double kShare = 0.95;
  return seconds > 0 && seconds < kShare * roofline.seconds;
}

Roofline RooflineOf(const std::string& kernel, const DeviceRates& rates) {
  ir::Context context;
  const auto parsed = kernel::ParseKernel(kernel, context);
  return parsed.ok() ? RooflineOf(*parsed, rates) : Roofline();
}

DeviceRates Highest(const DeviceRates& one, const DeviceRates& other) {
  return {.all = Highest(one.all, other.all),
          .thread = Highest(one.thread, other.thread),
          .threads = one.threads,
          .launch_seconds = std::min(one.launch_seconds, other.launch_seconds)};
}

std::string EncodeRates(const DeviceRates& rates) {
  ByteWriter out;
  out.Number(kRatesVersion);
  Put(out, rates.all);
  Put(out, rates.thread);
  out.Number(static_cast<uint64_t>(rates.threads));
  out.Real(rates.launch_seconds);
  return out.Take();
}

std::optional<DeviceRates> DecodeRates(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Number() != kRatesVersion) return std::nullopt;
  DeviceRates rates;
  rates.all = Take(in);
  rates.thread = Take(in);
  const uint64_t threads = in.Number();
  rates.launch_seconds = TakeRate(in);
  if (!in.AtEnd() || threads < 1 || threads > std::numeric_limits<int>::max()) return std::nullopt;
  rates.threads = static_cast<int>(threads);
  return rates;
}

}  // namespace kiln::tuner
