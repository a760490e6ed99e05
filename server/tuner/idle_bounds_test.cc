// The daemon's own searches stay within their bounds for hours: a clock that only the test
// advances, and candidates that run in no time. KILN_TUNED_KERNELS: the number of kernels, for a
// longer run.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/testing/fake_device.h"
#include "server/tuner/idle_tuner.h"
#include "tests/environment.h"
#include "tests/eventually.h"

namespace kiln::tuner {
namespace {

constexpr absl::Duration kIdle = absl::Seconds(60);
// So small that a short run reaches them.
constexpr int64_t kSettingsMax = 40;
constexpr int64_t kSettingBytes = 64 << 10;
constexpr int64_t kSampledKernelsMax = 10;
constexpr int64_t kSampleBytes = 128 << 10;

// A kernel of its own for each number, with another structure for each of the last digits.
std::string KernelNumber(int number) {
  const int elements = 16 + number;
  std::string value = "b0[r0]";
  for (int i = 0; i < number % 7; ++i) absl::StrAppend(&value, " + b0[r0]");
  return absl::StrCat("buffer b0 float32[", elements, "] read\nbuffer b1 float32[", elements,
                      "] write\nstage r0:", elements, "\n  b1[r0] = ", value, "\n");
}

// Each schedule takes another time, and the first one the longest.
class QuickRunner : public TrialRunner {
 public:
  explicit QuickRunner(const kernel::Kernel& kernel) : kernel_(kernel) {}
  absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) override {
    const size_t size = image.code.size();
    return std::make_unique<QuickTrial>(
        kernel_, is_first_.exchange(false) ? 1.0 : 0.25 + 0.5 / static_cast<double>(size + 1));
  }

 private:
  class QuickTrial : public Trial {
   public:
    QuickTrial(const kernel::Kernel& kernel, double seconds) : kernel_(kernel), seconds_(seconds) {}
    absl::StatusOr<double> Time(int, double) override { return seconds_; }
    absl::StatusOr<Outputs> Run(const Inputs&, double) override {
      const auto bytes = static_cast<size_t>(kernel_.buffers[1].elements) * sizeof(float);
      return Outputs{{1, std::vector<char>(bytes)}};
    }

   private:
    const kernel::Kernel& kernel_;
    const double seconds_;
  };

  const kernel::Kernel& kernel_;
  std::atomic<bool> is_first_{true};
};

int64_t CountFiles(const char* folder) {
  const std::filesystem::directory_iterator files(folder);
  return std::distance(begin(files), end(files));
}

int64_t BytesIn(const std::string& folder) {
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::error_code gone;  // SQLite may remove a file meanwhile
    const auto size = std::filesystem::file_size(file, gone);
    if (!gone) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

// Zero where a sanitizer replaces malloc.
int64_t HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
}

TEST(IdleBoundsTest, HoursOfSearchesLeaveNoMoreThanTheBounds) {
  const auto kernels = static_cast<int>(NumberFromEnvironment("KILN_TUNED_KERNELS", 120));
  std::string pattern = absl::StrCat(::testing::TempDir(), "/kiln_bounds_XXXXXX");
  const std::string folder = mkdtemp(pattern.data());
  std::atomic<int64_t> seconds{12 * 3600};
  const Clock clock = kiln::testing::ClockOf([&] { return absl::FromUnixSeconds(seconds.load()); });
  metrics::Metrics metrics("test");
  fairness::HostWork host_work(clock.steady);
  runtime::ManagedDevice device(std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1 << 20), 0,
                                metrics.ForDevice("cpu:0"), clock);
  SettingStore store({.folder = folder,
                      .entries_max = kSettingsMax,
                      .bytes_max = kSettingBytes,
                      .now = clock.wall});
  CostSamples samples({.folder = folder,
                       .kernels_max = kSampledKernelsMax,
                       .bytes_max = kSampleBytes,
                       .now = clock.wall});
  std::atomic<int> searched{0};
  Tuner tuner({.store = &store,
               .compile =
                   [](const workers::KernelJob& job) {
                     drivers::KernelImage image;
                     image.code = job.schedule;
                     return absl::StatusOr<drivers::KernelImage>(image);
                   },
               .make_runner = [&](const kernel::Kernel& kernel, runtime::ManagedDevice&)
                   -> absl::StatusOr<std::unique_ptr<TrialRunner>> {
                 ++searched;
                 return std::make_unique<QuickRunner>(kernel);
               },
               .metrics = &metrics,
               .clock = clock,
               .samples = &samples,
               .on_changed = [] {}});
  IdleTuner::Options options;
  options.tuner = &tuner;
  options.store = &store;
  options.devices = {&device};
  options.host_work = &host_work;
  int used = 0;
  options.look_at_programs = [&](KernelUse& use) {
    for (int i = 0; i < 10 && used < kernels; ++i, ++used)
      use.Add({.name = "k", .text = KernelNumber(used), .device = &device, .seconds = 1e-3}, "p",
              1);
  };
  options.clock = clock;
  options.quiet = kIdle;
  options.width = 1;
  options.interval = absl::Milliseconds(1);
  IdleTuner idle(std::move(options));
  const auto advance_until = [&](int count) {
    return kiln::testing::Eventually([&] {
      seconds += 60;
      return searched >= count && tuner.List().empty();
    });
  };
  ASSERT_TRUE(advance_until(kernels / 2));
  const int64_t threads = CountFiles("/proc/self/task"), files = CountFiles("/proc/self/fd");
  const int64_t heap = HeapBytes();
  ASSERT_TRUE(advance_until(kernels));
  EXPECT_LE(store.GetStatistics().entries, kSettingsMax);
  EXPECT_LE(store.GetStatistics().bytes, kSettingBytes);
  // A database has free pages, and a log of an eighth of its bound or 16 pages beside it. There are
  // three databases, of which that of the rates is nearly empty.
  EXPECT_LE(BytesIn(folder), 2 * (kSettingBytes + kSampleBytes) + 3 * (300 << 10));
  EXPECT_EQ(CountFiles("/proc/self/task"), threads);
  EXPECT_EQ(CountFiles("/proc/self/fd"), files);
  // KernelUse, which is bounded too, has the kernels.
  EXPECT_LE(HeapBytes() - heap, kernels * 2048 + (1 << 20));
  std::cout << searched << " searches in " << (seconds - 12 * 3600) / 3600 << " h, "
            << store.GetStatistics().entries << " settings, " << BytesIn(folder)
            << " bytes on disk, heap " << heap << " and then " << HeapBytes() << std::endl;
  idle.Stop();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kiln::tuner
