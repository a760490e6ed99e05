// One user of the sharing benchmark: a session with a program of a given length, and the choice of
// that length. What goes wrong ends the process with a message.
#ifndef KILN_TESTS_BENCH_SHARING_USER_H_
#define KILN_TESTS_BENCH_SHARING_USER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kiln/client.h"
#include "kiln/ops.h"

namespace kiln::bench {

template <typename T>
T OrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

// `kernels` means over `size` sines, each of which needs the one before. Means, not sums: a sine of
// a large argument takes some ten times as long, and a sum grows with the size, so that the time
// would jump where the size does not.
inline absl::StatusOr<Graph> MeansOfSines(int kernels, int64_t size) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {size});
  Value mean = ops::Mean(ops::Sin(x));
  for (int i = 1; i < kernels; ++i) mean = ops::Mean(ops::Sin(x + mean));
  builder.Output(mean);
  return builder.Build();
}

// One kernel of many independent means: over sizes[0] sines each, of which there are sizes[1].
inline absl::StatusOr<Graph> RowsOfSines(absl::Span<const int64_t> sizes) {
  GraphBuilder builder;
  const Value x = builder.Input(DType::kFloat32, {sizes[0]});
  const Value scale = builder.Input(DType::kFloat32, {sizes[1], 1});
  builder.Output(ops::Mean(ops::Sin(x * scale), {.axes = std::vector<int64_t>{1}}));
  return builder.Build();
}

struct Load {
  const char* name;
  int kernels;
  double kernel_seconds;
  int64_t size = 0;      // of a kernel, so that it takes as long
  bool is_rows = false;  // one kernel, RowsOfSines of `size` in all
  double seconds() const { return kernels * kernel_seconds; }
  // Of its inputs.
  std::vector<int64_t> sizes() const {
    constexpr int64_t kRow = 4096;
    return is_rows ? std::vector<int64_t>{kRow, std::max<int64_t>(size / kRow, 1)}
                   : std::vector<int64_t>{size};
  }
};

// One user's session with a program.
class User {
 public:
  User(const std::string& address, const std::string& token, const Load& load) {
    client_ = OrExit(Client::Connect({.address = address, .token = token}));
    const std::vector<int64_t> sizes = load.sizes();
    program_.push_back(OrExit(client_->Define(
        load.is_rows ? RowsOfSines(sizes) : MeansOfSines(load.kernels, load.size), load.name)));
    for (const int64_t size : sizes) {
      const Shape shape = input_.empty() ? Shape{size} : Shape{size, 1};
      input_.push_back(OrExit(client_->Upload<float>(shape, std::vector<float>(size, 0.5f))));
    }
    for (int i = 0; i < 3; ++i) Run();
  }

  RunResult Start() { return OrExit(client_->Run(program_[0], input_, {.report_time = true})); }
  // Device seconds.
  double Run() { return OrExit(Start().done.Get()).device_seconds; }

  // The median of the device seconds of runs that take about `duration`, at least five.
  double MedianRun(absl::Duration duration) {
    std::vector<double> times;
    const absl::Time end = absl::Now() + duration;
    while (times.size() < 5 || (absl::Now() < end && times.size() < 2000)) times.push_back(Run());
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }
  // Once it is steady: the first runs come before the pages, the clock's speed and the device's
  // estimates have settled.
  double SteadyRun() {
    double before = MedianRun(absl::Milliseconds(200));
    for (int i = 0; i < 5; ++i) {
      const double now = MedianRun(absl::Milliseconds(200));
      const bool is_steady = std::max(now, before) < 1.05 * std::min(now, before);
      before = now;
      if (is_steady) break;
    }
    return before;
  }

  struct Share {
    double device_seconds = 0;  // a second
    double runs = 0;            // a second
    Share& operator+=(const Share& other) {
      device_seconds += other.device_seconds;
      runs += other.runs;
      return *this;
    }
  };
  // Keeps `deep` runs on their way for so long. What counts is from the first end to the last, so
  // that long runs are not cut off. Those who share a device pass how many of them still count:
  // each works on until nobody does, so that nobody counts what others have left to him.
  Share Work(int deep, absl::Duration duration, std::atomic<int>* counting = nullptr) {
    std::deque<RunResult> open;
    Share share;
    absl::Time first = absl::InfiniteFuture(), last;
    const absl::Time end = absl::Now() + duration;
    bool counts = true;
    while (true) {
      while (static_cast<int>(open.size()) < deep) open.push_back(Start());
      const double seconds = OrExit(open.front().done.Get()).device_seconds;
      open.pop_front();
      const absl::Time now = absl::Now();
      if (counts && now > end && share.runs >= 2) {
        counts = false;
        if (counting != nullptr) --*counting;
      }
      if (!counts && (counting == nullptr || *counting == 0)) break;
      if (!counts) continue;
      if (first == absl::InfiniteFuture()) {
        first = now;
        continue;
      }
      last = now;
      share.device_seconds += seconds;
      ++share.runs;
    }
    client_->Cancel().IgnoreError();
    const double passed = absl::ToDoubleSeconds(last - first);
    return {share.device_seconds / passed, share.runs / passed};
  }

 private:
  std::unique_ptr<Client> client_;
  std::vector<Program> program_;
  std::vector<Tensor> input_;
};

// As much as keeps the queue full whatever the others do, within what a session may have in flight.
inline int DepthOf(const Load& load) {
  return std::clamp(static_cast<int>(0.06 / load.seconds()), 2, 3000);
}

// Chooses load->size so that a run takes as long as it should, as far as eight tries get. The time
// does not grow with the size alone, so each try is a program of its own, compiled and warmed up.
inline void Calibrate(const std::string& address, const std::string& token, Load* load) {
  load->size = std::max<int64_t>(64, static_cast<int64_t>(load->kernel_seconds * 1e8));
  for (int i = 0; i < 8; ++i) {
    const double seconds = User(address, token, *load).SteadyRun();
    const double factor = std::clamp(load->seconds() / std::max(seconds, 1e-9), 0.2, 5.0);
    if (factor > 0.95 && factor < 1.05) return;
    load->size = std::max<int64_t>(64, static_cast<int64_t>(load->size * factor));
  }
}

}  // namespace kiln::bench

#endif  // KILN_TESTS_BENCH_SHARING_USER_H_
