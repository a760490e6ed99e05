#include "server/tuner/measure_rates.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tuner/device_trials.h"

namespace kiln::tuner {
namespace {

class MeasureRatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_none;
    auto devices = drivers::cpu::CpuDriver({.threads_per_device = 2}).Enumerate(&why_none);
    ASSERT_TRUE(devices.ok() && !devices->empty()) << why_none;
    device_ = std::move(devices->front());
  }

  // Probes run on the processor itself.
  absl::StatusOr<DeviceRates> Measure(const workers::CompileFunction& compile) {
    return Measure(compile, device_->info().target);
  }
  absl::StatusOr<DeviceRates> Measure(const workers::CompileFunction& compile,
                                      const drivers::Target& target) {
    return MeasureRates(target, compile, /*compile_threads=*/2,
                        [this](const kernel::Kernel& buffers,
                               absl::FunctionRef<absl::Status(TrialRunner&)> use) -> absl::Status {
                          ++runners_;
                          auto runner = DeviceTrials::Make(*device_, buffers, /*seed=*/1);
                          if (!runner.ok()) return runner.status();
                          return use(**runner);
                        });
  }

  std::unique_ptr<drivers::Device> device_;
  int runners_ = 0;
};

TEST_F(MeasureRatesTest, MeasuresTheProcessor) {
  const auto rates = Measure(compiler::CompileJob);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(runners_, 2);  // for float32 and float64
  EXPECT_EQ(rates->threads, 2);
  EXPECT_GT(rates->launch_seconds, 0);
  for (const Throughput* kind : {&rates->all, &rates->thread}) {
    for (const ArithmeticRates* one : {&kind->float32, &kind->float64}) {
      EXPECT_GT(one->fused, 0);
      EXPECT_GT(one->other, 0);
    }
    ASSERT_GE(kind->traffic.size(), size_t{2});
    int64_t before = 0;
    for (const TrafficRates& one : kind->traffic) {
      EXPECT_GT(one.bytes, before);
      EXPECT_GT(one.read, 0);
      before = one.bytes;
    }
    EXPECT_GT(kind->traffic.back().write, 0);
    EXPECT_GT(kind->traffic.back().copy, 0);
  }
  EXPECT_EQ(DecodeRates(EncodeRates(*rates)), *rates);
}

TEST_F(MeasureRatesTest, AProbeThatCannotBeCompiledLeavesItsRateUnknown) {
  const auto rates = Measure([](const workers::KernelJob& job) {
    return job.kernel.find("sum(") == std::string::npos
               ? compiler::CompileJob(job)
               : absl::StatusOr<drivers::KernelImage>(absl::InternalError("no sums"));
  });
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->all.float32.fused, 0);
  EXPECT_GT(rates->all.float32.other, 0);
}

TEST_F(MeasureRatesTest, AMeasurementThatIsCutShortHasNoRates) {
  for (const auto code : {absl::StatusCode::kAborted, absl::StatusCode::kCancelled}) {
    const auto rates = Measure([&](const workers::KernelJob& job) {
      return job.kernel.find("sum(") == std::string::npos
                 ? compiler::CompileJob(job)
                 : absl::StatusOr<drivers::KernelImage>(absl::Status(code, "a user goes first"));
    });
    EXPECT_EQ(rates.status(), absl::Status(code, "a user goes first"));
  }
}

TEST_F(MeasureRatesTest, CachesOfAnySizeGiveRatesThatCanBeStored) {
  drivers::Target target = device_->info().target;
  for (const auto& [near, next] : {std::pair<int64_t, int64_t>{64 << 10, 64 << 10},
                                   {256 << 10, 64 << 10},
                                   {0, 64 << 10},
                                   {0, 0}}) {
    target.limits.near_memory_bytes = near;
    target.limits.private_cache_bytes = next;
    const auto rates = Measure(compiler::CompileJob, target);
    ASSERT_TRUE(rates.ok()) << rates.status();
    EXPECT_EQ(DecodeRates(EncodeRates(*rates)), *rates) << near << " and " << next;
  }
}

TEST_F(MeasureRatesTest, WithoutAnyRateTheErrorIsReturned) {
  const auto rates = Measure([](const workers::KernelJob&) {
    return absl::StatusOr<drivers::KernelImage>(absl::InternalError("no compiler"));
  });
  EXPECT_EQ(rates.status().message(), "no compiler");
}

}  // namespace
}  // namespace kiln::tuner
