// Tests of programs built by another process, and of devices that load them.
#include <memory>
#include <string>
#include <vector>

#include "drivers/opencl/testing/stand_in_fixture.h"

namespace kiln::drivers::opencl {
namespace {

using ::testing::HasSubstr;

class OpenClFinishTest : public OpenClTest {
 protected:
  void TearDown() override {
    driver_.reset();
    OpenClTest::TearDown();
  }
  absl::StatusOr<KernelImage> Finish(const KernelImage& image) {
    return driver_->Finish(image, device().info().target.finisher);
  }
  // A driver object separate from the devices', as in kilnd.
  std::unique_ptr<OpenClDriver> driver_ =
      std::make_unique<OpenClDriver>(OpenClOptions{.library = KILN_OPENCL_STAND_IN});
};

TEST_F(OpenClFinishTest, ADeviceLoadsTheBinaryAndBuildsNothing) {
  Open();
  const auto finished = Finish(TableImage(2));
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->code, TableImage(2).code);
  EXPECT_EQ(finished->name, "mixer");
  EXPECT_NE(finished->finished, "");
  EXPECT_EQ(control_->sources_built, 1);
  auto kernel = device().LoadKernel(*finished);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(control_->sources_built, 1);
  EXPECT_EQ(control_->binaries_built, 1);
  auto buffer = *device().Allocate(64);
  auto list = *device().Prepare({1, {LaunchCommand{kernel->get(), {{0, 0, 64}, {0, 0, 64}}}}});
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
}

TEST_F(OpenClFinishTest, ErrorsAreThoseOfLoading) {
  Open();
  KernelImage image = Image(1);
  image.code = "#error";
  EXPECT_THAT(std::string(Finish(image).status().message()),
              HasSubstr("the kernel mixer cannot be compiled:\nline 1: wrong"));
  image.block_size = 128;
  EXPECT_EQ(BlockThreadsMax(Finish(image).status()), 64);
}

TEST_F(OpenClFinishTest, ABinaryThatIsRefusedIsNoSource) {
  Open();
  const auto finished = Finish(Image(1));
  control_->binary_form = 2;
  const absl::Status refused = device().LoadKernel(*finished).status();
  EXPECT_TRUE(IsFinishedRefused(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the binary of the kernel mixer is refused: CL_INVALID_BINARY (-42)"));
  EXPECT_EQ(control_->sources_built, 1);
  EXPECT_TRUE(device().Health().ok());
}

TEST_F(OpenClFinishTest, ADeviceWithoutBinariesLoadsSources) {
  Open();
  control_->gives_binaries = false;
  const absl::Status status = Finish(Image(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "the device cannot return binaries");
}

TEST_F(OpenClFinishTest, DevicesAreFoundByNameAndVersion) {
  Open(/*sharing_host_memory=*/true);
  ASSERT_EQ(devices_.size(), 2u);
  const Finisher gpu = devices_[0]->info().target.finisher;
  const Finisher cpu = devices_[1]->info().target.finisher;
  EXPECT_EQ(gpu.driver, "opencl");
  EXPECT_EQ(gpu.device, "stand-in GPU, stand-in");
  EXPECT_NE(gpu.device, cpu.device);
  // The devices are in another order, with others between them.
  control_->gpus = 3;
  EXPECT_TRUE(driver_->Finish(Image(1), cpu).ok());
  EXPECT_TRUE(driver_->Finish(Image(1), gpu).ok());
  // A later process has another version of the vendor's driver.
  control_->driver_version = 2;
  OpenClDriver updated({.library = KILN_OPENCL_STAND_IN});
  const absl::Status status = updated.Finish(Image(1), gpu).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("does not find stand-in GPU, stand-in as it was when kilnd started"));
  const std::string key = devices_[0]->info().target.CacheKey();
  Open();
  EXPECT_NE(device().info().target.CacheKey(), key);
}

TEST_F(OpenClFinishTest, NoLibraryIsAnError) {
  OpenClDriver driver({.library = "libno_such_opencl.so.1"});
  EXPECT_EQ(driver.Finish(Image(1), {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace kiln::drivers::opencl
