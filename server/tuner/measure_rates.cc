#include "server/tuner/measure_rates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/parallel_for.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/space.h"

namespace kiln::tuner {
namespace {

using search::Knob;

// Elements of each buffer: the largest data is then 64 MiB, more than most caches.
constexpr int64_t kRateElements = int64_t{8} << 20;
constexpr int64_t kRateRowElements = 4096;  // of data that does not fit the private caches
// Bytes that a probe reads, of data that it reads again and again.
constexpr int64_t kRepeatedBytes = int64_t{8} << 20;
// A probe repeats until it has taken this long, and at least kProbeTimesMin times.
constexpr double kProbeSeconds = 3e-3;
constexpr int kProbeTimesMin = 3;
constexpr int kProbeTimesMax = 50;
// A probe that takes this long in all says nothing about peaks.
constexpr double kProbeSecondsMax = 2;
// Of a matmul, so that it takes long enough to find all threads. Multiples of tiles of 6 and 12
// rows and of 64 columns.
constexpr int64_t kMatmulSizes[] = {384, 768, 1536};
constexpr int64_t kMultiplicationsPerThread = int64_t{20} << 20;

// A kernel to run, and the rate that it measures.
struct Probe {
  std::string text;
  // Bytes, or operations.
  double amount = 0;
  // Its largest value is kept.
  double* rate = nullptr;
  // Changes the heuristic's setting; may be null.
  std::function<void(search::Setting*)> change = nullptr;
  bool one_thread = false;
  absl::StatusOr<drivers::KernelImage> image = absl::UnknownError("not compiled");
};

std::string Buffers(std::string_view dtype, int64_t elements) {
  const std::string type(dtype);
  return absl::StrCat("buffer b0 ", type, "[", elements, "] read\nbuffer b1 ", type, "[", elements,
                      "] write\n");
}

std::string Matmul(int64_t size) {
  return absl::StrCat("stage r0:", size, " r1:", size, " reduce r2:", size, "\n  b1[r0*", size,
                      " + r1] = sum(b0[r0*", size, " + r2]*b0[r2*", size, " + r1 + ", size * size,
                      "])\n");
}

// Polynomials of one value, which do not wait for each other.
std::string Polynomials(std::string_view dtype, int64_t elements, int* operations) {
  constexpr int kChains = 6, kDegree = 8;
  const std::string type(dtype);
  std::string text = absl::StrCat("stage r0:", elements, "\n  v0 = b0[r0]\n");
  int last = 0;
  std::vector<int> chains(kChains, 0);
  for (int step = 0; step < kDegree; ++step) {
    for (int chain = 0; chain < kChains; ++chain) {
      absl::StrAppend(&text, "  v", last + 1, " = v", chains[chain], "*0.5:", type, " + 0.",
                      125 * (chain + 1), ":", type, "\n");
      chains[chain] = ++last;
    }
  }
  absl::StrAppend(&text, "  b1[r0] = v", chains[0]);
  for (int chain = 1; chain < kChains; ++chain) absl::StrAppend(&text, " + v", chains[chain]);
  *operations = 2 * kChains * kDegree + kChains - 1;
  return text + "\n";
}

// The maximum of each part of the data, `times` times.
std::string Read(int64_t parts, int64_t times, int64_t elements) {
  if (times == 1)
    return absl::StrCat("stage r0:", parts, " reduce r1:", elements, "\n  b1[r0] = max(b0[r0*",
                        elements, " + r1])\n");
  return absl::StrCat("stage r0:", parts, " r1:", times, " reduce r2:", elements, "\n  b1[r0*",
                      times, " + r1] = max(b0[r0*", elements, " + r2])\n");
}

// Lanes run along the data, with as many partial maxima as hide the latency.
void ReadInLanes(search::Setting* setting) {
  setting->parts[0] = {{Knob::kForm, static_cast<int64_t>(search::Form::kSumLanes)},
                       {Knob::kVectors, 8}};
}

void StoreNonTemporal(search::Setting* setting) {
  if (setting->parts[0].Has(Knob::kNonTemporal)) setting->parts[0].Set(Knob::kNonTemporal, 1);
}

// Runs as one task.
void RemoveTasks(schedule::Schedule* schedule) {
  std::erase_if(schedule->directives, [](const schedule::Directive& directive) {
    const auto* bind = std::get_if<schedule::Bind>(&directive);
    return bind != nullptr && bind->binding == schedule::Binding::kTask;
  });
}

class RateMeasurement {
 public:
  RateMeasurement(const drivers::Target& target, const workers::CompileFunction& compile,
                  int compile_threads)
      : target_(target),
        compile_(compile),
        compile_threads_(compile_threads),
        lanes_(search::MachineOf(target) == search::Machine::kLanes) {
    rates_.threads = std::max(target.limits.compute_units, 1);
  }

  absl::StatusOr<DeviceRates> Run(WithRunner with_runner) {
    probes_ = ArithmeticProbes("float32", &Throughput::float32);
    AddTrafficProbes();
    absl::Status status = RunProbes("float32", kRateElements, with_runner);
    if (!status.ok()) return status;
    if (target_.capabilities.fp64) {
      probes_ = ArithmeticProbes("float64", &Throughput::float64);
      const int64_t size = MatmulSize();
      status = RunProbes("float64", std::max(2 * size * size, PolynomialElements()), with_runner);
      if (!status.ok()) return status;
    }
    std::erase_if(rates_.all.traffic, [](const TrafficRates& one) { return one.read <= 0; });
    std::erase_if(rates_.thread.traffic, [](const TrafficRates& one) { return one.read <= 0; });
    if (lanes_ && rates_.threads == 1) rates_.thread = rates_.all;
    const bool none = rates_.all.traffic.empty() && rates_.all.float32 == ArithmeticRates();
    if (none && !first_error_.ok()) return first_error_;
    return rates_;
  }

 private:
  int64_t MatmulSize() const {
    const int64_t wanted = kMultiplicationsPerThread * rates_.threads * (lanes_ ? 1 : 8);
    for (const int64_t size : kMatmulSizes)
      if (size * size * size >= wanted) return size;
    return std::end(kMatmulSizes)[-1];
  }
  int64_t PolynomialElements() const {
    const int64_t each = lanes_ ? 32 << 10 : 64 << 10;
    return std::min(each * rates_.threads, kRateElements / 2);
  }

  // Of all threads; where a thread has lanes, also of one, unless it is the only one.
  std::vector<Throughput*> Kinds() {
    if (lanes_ && rates_.threads > 1) return {&rates_.all, &rates_.thread};
    return {&rates_.all};
  }
  bool IsOfOne(const Throughput* kind) const { return kind == &rates_.thread; }

  std::vector<Probe> ArithmeticProbes(std::string_view dtype, ArithmeticRates Throughput::*field) {
    std::vector<Probe> probes;
    for (Throughput* kind : Kinds()) {
      ArithmeticRates& rates = kind->*field;
      const int64_t elements = PolynomialElements() / (IsOfOne(kind) ? rates_.threads : 1);
      int operations = 0;
      Probe polynomials{.text = Polynomials(dtype, elements, &operations)};
      polynomials.amount = static_cast<double>(operations) * static_cast<double>(elements);
      polynomials.rate = &rates.other;
      polynomials.one_thread = IsOfOne(kind);
      probes.push_back(polynomials);
      if (target_.capabilities.matrix) continue;
      const int64_t size = IsOfOne(kind) ? kMatmulSizes[0] : MatmulSize();
      probes.push_back({.text = Matmul(size),
                        .amount = 2.0 * std::pow(static_cast<double>(size), 3),
                        .rate = &rates.fused,
                        .one_thread = IsOfOne(kind)});
    }
    return probes;
  }

  void AddTrafficProbes() {
    for (Throughput* kind : Kinds()) {
      const int64_t parts = IsOfOne(kind) || !lanes_ ? 1 : rates_.threads;
      const int64_t largest = kRateElements * 4;  // bytes
      const int64_t cached_max = largest / 4;
      std::vector<int64_t> cached;
      if (lanes_)
        cached = {parts * target_.limits.near_memory_bytes / 2,
                  parts * target_.limits.private_cache_bytes / 2};
      // What a machine reports about its caches may be anything, and sizes must ascend.
      if (lanes_ && cached[0] >= cached[1]) cached.erase(cached.begin());
      std::erase_if(cached,
                    [&](int64_t bytes) { return bytes < 4 * parts || bytes >= cached_max / 2; });
      // Probes point to the rates.
      kind->traffic.resize(cached.size() + 2);
      for (size_t i = 0; i < cached.size(); ++i)
        AddCachedProbe(parts, cached[i], IsOfOne(kind), &kind->traffic[i]);
      AddUncachedProbes(cached_max, IsOfOne(kind), &kind->traffic[cached.size()]);
      AddUncachedProbes(2 * largest, IsOfOne(kind), &kind->traffic[cached.size() + 1]);
    }
    probes_.push_back({.text = Read(1, 1, 1), .amount = 0, .rate = &rates_.launch_seconds});
  }

  void AddCachedProbe(int64_t parts, int64_t bytes, bool one_thread, TrafficRates* rates) {
    rates->bytes = bytes;
    const int64_t elements = bytes / 4 / parts;
    const int64_t times = std::max<int64_t>(kRepeatedBytes * parts / bytes, 2);
    probes_.push_back({.text = Read(parts, times, elements),
                       .amount = static_cast<double>(bytes) * static_cast<double>(times),
                       .rate = &rates->read,
                       .change = ReadInLanes,
                       .one_thread = one_thread});
  }

  // Data of `bytes` or, if it is only in one of the buffers, half of them.
  void AddUncachedProbes(int64_t bytes, bool one_thread, TrafficRates* rates) {
    rates->bytes = bytes;
    const int64_t elements = bytes / 4 / 2;
    probes_.push_back({.text = Read(elements / kRateRowElements, 1, kRateRowElements),
                       .amount = 4.0 * static_cast<double>(elements),
                       .rate = &rates->read,
                       .one_thread = one_thread});
    const std::string loop = absl::StrCat("stage r0:", elements, "\n  b1[r0] = ");
    for (const bool non_temporal : {false, true}) {
      Probe fill{.text = loop + "1:float32\n"};
      fill.amount = 4.0 * static_cast<double>(elements);
      fill.rate = &rates->write;
      fill.one_thread = one_thread;
      if (non_temporal) fill.change = StoreNonTemporal;
      Probe copy = fill;
      copy.text = loop + "b0[r0]\n";
      copy.amount *= 2;
      copy.rate = &rates->copy;
      probes_.push_back(std::move(fill));
      probes_.push_back(std::move(copy));
    }
  }

  void Compile(const std::string& buffers, Probe* probe) const {
    ir::Context context;
    const auto kernel = kernel::ParseKernel(buffers + probe->text, context);
    if (!kernel.ok()) {
      probe->image = kernel.status();
      return;
    }
    const search::Space space(*kernel, target_, search::MachineOf(target_));
    search::Setting setting = space.heuristic();
    std::vector<std::string> ignored;
    if (probe->change && lanes_) probe->change(&setting);
    auto schedule = space.Write(space.Complete(setting, &ignored));
    if (!schedule.ok()) schedule = space.Write(space.heuristic());
    if (!schedule.ok()) {
      probe->image = schedule.status();
      return;
    }
    if (probe->one_thread) RemoveTasks(&*schedule);
    probe->image = compile_({.name = "rates",
                             .kernel = kernel::Print(*kernel),
                             .schedule = schedule::Print(*schedule),
                             .target = target_});
  }

  absl::Status RunProbes(std::string_view dtype, int64_t elements, WithRunner with_runner) {
    const std::string buffers = Buffers(dtype, elements);
    compiler::ParallelFor(probes_.size(), compile_threads_,
                          [&](size_t i) { Compile(buffers, &probes_[i]); });
    ir::Context context;
    // Only its buffers count.
    auto kernel = kernel::ParseKernel(buffers + Read(1, 1, 1), context);
    if (!kernel.ok()) return kernel.status();
    kernel->name = "rates";
    return with_runner(*kernel, [this](TrialRunner& runner) {
      for (const Probe& probe : probes_) {
        absl::Status status = RunProbe(probe, runner);
        // There is no device, or the tuning ends: rates of the probes so far would be stored as if
        // the others could not be measured.
        if (absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsAborted(status))
          return status;
        if (first_error_.ok()) first_error_ = std::move(status);
      }
      return absl::OkStatus();
    });
  }

  static absl::Status RunProbe(const Probe& probe, TrialRunner& runner) {
    if (!probe.image.ok()) return probe.image.status();
    const auto trial = runner.Load(*probe.image);
    if (!trial.ok()) return trial.status();
    // The first run warms up.
    auto seconds = (*trial)->Time(1, kProbeSecondsMax);
    if (!seconds.ok()) return seconds.status();
    const double times = kProbeSeconds / std::max(*seconds, 1e-9);
    seconds =
        (*trial)->Time(static_cast<int>(std::clamp<double>(times, kProbeTimesMin, kProbeTimesMax)),
                       kProbeSecondsMax);
    if (!seconds.ok()) return seconds.status();
    if (*seconds <= 0) return absl::UnavailableError("the device has measured no time");
    *probe.rate = probe.amount > 0 ? std::max(*probe.rate, probe.amount / *seconds) : *seconds;
    return absl::OkStatus();
  }

  const drivers::Target& target_;
  const workers::CompileFunction& compile_;
  const int compile_threads_;
  const bool lanes_;
  std::vector<Probe> probes_;
  DeviceRates rates_;
  absl::Status first_error_;
};

}  // namespace

absl::StatusOr<DeviceRates> MeasureRates(const drivers::Target& target,
                                         const workers::CompileFunction& compile,
                                         int compile_threads, WithRunner with_runner) {
  return RateMeasurement(target, compile, compile_threads).Run(with_runner);
}

}  // namespace kiln::tuner
