// One user of the sharing benchmark: a session with a program of a given length, and the choice of
// that length. An error ends the process with a message.
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

// Computes `kernels` means over `size` sines, each of which depends on the one before. Uses means
// instead of sums because a sine of a large argument takes about ten times as long, and a sum grows
// with the size, so that the time would jump where the size does not.
inline absl::StatusOr<Graph> MeansOfSines(int kernels, int64_t size) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {size});
  Value mean = ops::Mean(ops::Sin(x));
  for (int i = 1; i < kernels; ++i) mean = ops::Mean(ops::Sin(x + mean));
  builder.Output(mean);
  return builder.Build();
}

// One kernel of sizes[1] independent means over sizes[0] sines each.
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
  int64_t size = 0;      // of a kernel, chosen so that it takes this long
  bool is_rows = false;  // one kernel, RowsOfSines with a total of `size`
  double seconds() const { return kernels * kernel_seconds; }
  // The sizes of its inputs.
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
  // Returns device seconds.
  double Run() { return OrExit(Start().done.Get()).device_seconds; }

  // Returns the median of the device seconds of at least five runs that take about `duration` in
  // total.
  double MedianRun(absl::Duration duration) {
    std::vector<double> times;
    const absl::Time end = absl::Now() + duration;
    while (times.size() < 5 || (absl::Now() < end && times.size() < 2000)) times.push_back(Run());
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }
  // Returns MedianRun once it is steady: in the first runs, pages, the clock rate and the device's
  // estimates have not settled yet.
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
  // Keeps `deep` runs in flight for `duration`. Counts from the first completion to the last, so
  // that long runs are not cut off. Users who share a device pass the number of users who still
  // count: each continues until that is zero, so that no user counts device time that others no
  // longer want.
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

// Enough to keep the queue full no matter what the others do, within the limit of operations in
// flight.
inline int DepthOf(const Load& load) {
  return std::clamp(static_cast<int>(0.06 / load.seconds()), 2, 3000);
}

// Chooses load->size so that a run takes the wanted time, as far as eight tries allow. The time
// does not depend on the size alone, so each try compiles and warms up its own program.
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
