// Tests of modules built by another process, and of devices that load them.
#include <memory>
#include <string>
#include <vector>

#include "drivers/level_zero/testing/stand_in_fixture.h"

namespace kiln::drivers::level_zero {
namespace {

using ::testing::HasSubstr;

class LevelZeroFinishTest : public LevelZeroTest {
 protected:
  void SetUp() override {
    LevelZeroTest::SetUp();
    built_ = control_->modules_built;
    loaded_ = control_->binaries_loaded;
  }
  void TearDown() override {
    driver_.reset();
    LevelZeroTest::TearDown();
  }
  absl::StatusOr<KernelImage> Finish(const KernelImage& image) {
    return driver_->Finish(image, device().info().target.finisher);
  }
  int64_t built_ = 0;
  int64_t loaded_ = 0;
  // A driver object separate from the devices', as in kilnd.
  std::unique_ptr<LevelZeroDriver> driver_ =
      std::make_unique<LevelZeroDriver>(LevelZeroOptions{.library = KILN_LEVEL_ZERO_STAND_IN});
};

TEST_F(LevelZeroFinishTest, ADeviceLoadsTheBinaryAndBuildsNothing) {
  Open();
  const auto finished = Finish(TableImage(2));
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->code, TableImage(2).code);
  EXPECT_EQ(finished->name, "counter");
  EXPECT_NE(finished->finished, "");
  EXPECT_EQ(control_->modules_built - built_, 1);
  auto kernel = device().LoadKernel(*finished);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(control_->modules_built - built_, 1);
  EXPECT_EQ(control_->binaries_loaded - loaded_, 1);
  auto buffer = *device().Allocate(64);
  auto list = *device().Prepare({1, {LaunchCommand{kernel->get(), {{0, 0, 64}, {0, 0, 64}}}}});
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
}

TEST_F(LevelZeroFinishTest, ErrorsAreThoseOfLoading) {
  Open();
  KernelImage image = Image(1);
  control_->next_build_fails = true;
  EXPECT_THAT(std::string(Finish(image).status().message()),
              HasSubstr("the kernel counter cannot be built:\nline 1: wrong"));
  image.block_size = 128;
  control_->next_build_fails = true;
  EXPECT_EQ(BlockThreadsMax(Finish(image).status()), 64);
}

TEST_F(LevelZeroFinishTest, ABinaryThatIsRefusedIsNotBuiltAnew) {
  Open();
  const auto finished = Finish(Image(1));
  control_->driver_version = 2;
  const absl::Status refused = device().LoadKernel(*finished).status();
  EXPECT_TRUE(IsFinishedRefused(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the binary of the kernel counter is refused: "
                        "ZE_RESULT_ERROR_INVALID_NATIVE_BINARY (0x7800000f)"));
  EXPECT_EQ(control_->modules_built - built_, 1);
  EXPECT_TRUE(device().Health().ok());
}

TEST_F(LevelZeroFinishTest, ADeviceWithoutBinariesLoadsModules) {
  Open();
  control_->gives_binaries = false;
  const absl::Status status = Finish(Image(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "the device cannot return binaries");
}

TEST_F(LevelZeroFinishTest, DevicesAreFoundByNameAndVersion) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  const Finisher first = devices_[0]->info().target.finisher;
  const Finisher second = devices_[1]->info().target.finisher;
  EXPECT_NE(first.device, second.device);
  EXPECT_TRUE(driver_->Finish(Image(1), second).ok());
  EXPECT_TRUE(driver_->Finish(Image(1), first).ok());
  // A later process has another version of the vendor's driver.
  control_->driver_version = 2;
  LevelZeroDriver updated({.library = KILN_LEVEL_ZERO_STAND_IN});
  const absl::Status status = updated.Finish(Image(1), first).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("does not find stand-in GPU (01000000000000000000000000000000) as it was"));
  const std::string key = devices_[0]->info().target.CacheKey();
  Open();
  EXPECT_NE(device().info().target.CacheKey(), key);
}

TEST_F(LevelZeroFinishTest, NoLibraryIsAnError) {
  LevelZeroDriver driver({.library = "libno_such_ze.so.1"});
  EXPECT_EQ(driver.Finish(Image(1), {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace kiln::drivers::level_zero
