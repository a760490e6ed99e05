#include "tests/conformance/fixture.h"

#include <cstdio>
#include <future>

namespace kiln::conformance {
namespace {

// Prints the unsupported features after the results.
class UnsupportedTable : public testing::Environment {
 public:
  void TearDown() override {
    printf("\nNot supported, and so not tested:\n");
    for (const DriverCase& driver_case : AllDriverCases()) {
      for (const Unsupported& row : driver_case.unsupported) {
        printf("  %-18s %-14s %s\n", driver_case.name.c_str(), Name(row.feature),
               row.reason.c_str());
      }
    }
  }
};
const auto* const kUnsupportedTable = testing::AddGlobalTestEnvironment(new UnsupportedTable);

}  // namespace

void ConformanceTest::SetUp() {
  std::string why_none;
  auto devices = GetParam().make()->Enumerate(&why_none);
  ASSERT_TRUE(devices.ok()) << devices.status();
  devices_ = *std::move(devices);
  if (devices_.empty()) GTEST_SKIP() << GetParam().name << " found no device: " << why_none;
}

std::unique_ptr<Buffer> ConformanceTest::Allocate(int64_t bytes, int device_number) {
  auto buffer = device(device_number).Allocate(bytes);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return buffer.ok() ? *std::move(buffer) : nullptr;
}

KernelImage ConformanceTest::Finished(const KernelImage& image, int device_number) {
  if (!GetParam().finishes) return image;
  if (!finisher_) finisher_ = GetParam().make();
  auto finished = finisher_->Finish(image, device(device_number).info().target.finisher);
  EXPECT_TRUE(finished.ok()) << finished.status();
  EXPECT_TRUE(!finished.ok() || !finished->finished.empty());
  return finished.ok() ? *std::move(finished) : image;
}

std::unique_ptr<LoadedKernel> ConformanceTest::Load(const KernelImage& image, int device_number) {
  auto kernel = device(device_number).LoadKernel(Finished(image, device_number));
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? *std::move(kernel) : nullptr;
}

std::unique_ptr<PreparedList> ConformanceTest::Prepare(int num_slots, std::vector<Command> commands,
                                                       int device_number) {
  auto list =
      device(device_number).Prepare({.num_slots = num_slots, .commands = std::move(commands)});
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *std::move(list) : nullptr;
}

SubmitResult ConformanceTest::Run(PreparedList& list, const std::vector<Buffer*>& slots,
                                  SubmitOptions options, int device_number) {
  auto promise = std::make_shared<std::promise<SubmitResult>>();
  absl::Status status =
      device(device_number).Submit(list, slots, options, [promise](SubmitResult result) {
        promise->set_value(std::move(result));
      });
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) promise->set_value({.status = status, .seconds = 0, .command_seconds = {}});
  return promise->get_future().get();
}

}  // namespace kiln::conformance
