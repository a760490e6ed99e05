// Tests of kernels that another process builds, and of devices that load them. A driver with a
// KernelBuilder instantiates them with its Vendor (stand_in_fixture.h), which also has:
//   Built(control), Loaded(control)   how often the stand-in built a kernel, and loaded a binary
//   Spoil(control, image), kSpoilt    makes the image's next build fail; a part of the reason
//   Update(control), kRefused         the vendor's driver is another version, which refuses
//   binaries
//                                     made before; a part of the reason
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_FINISH_TESTS_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_FINISH_TESTS_H_

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "drivers/common/queued_device/testing/stand_in_fixture.h"

namespace kiln::drivers::testing {

template <typename Vendor>
class FinishTest : public StandInFixture<Vendor> {
 protected:
  using Driver = typename Vendor::Driver;
  void SetUp() override {
    StandInFixture<Vendor>::SetUp();
    built_ = Vendor::Built(*this->control_);
    loaded_ = Vendor::Loaded(*this->control_);
    driver_ = MakeDriver();
  }
  void TearDown() override {
    driver_.reset();
    StandInFixture<Vendor>::TearDown();
  }
  // A driver object separate from the devices', as in kilnd.
  static std::unique_ptr<Driver> MakeDriver(const std::string& library = Vendor::kLibrary) {
    typename Vendor::Options options;
    options.library = library;
    return std::make_unique<Driver>(options);
  }
  absl::StatusOr<KernelImage> Finish(const KernelImage& image) {
    return driver_->Finish(image, this->device().info().target.finisher);
  }
  int64_t built() { return Vendor::Built(*this->control_) - built_; }
  int64_t loaded() { return Vendor::Loaded(*this->control_) - loaded_; }

  std::unique_ptr<Driver> driver_;

 private:
  int64_t built_ = 0;
  int64_t loaded_ = 0;
};
TYPED_TEST_SUITE_P(FinishTest);

TYPED_TEST_P(FinishTest, ADeviceLoadsTheBinaryAndBuildsNothing) {
  this->Open();
  const KernelImage image = this->TableImage(2);
  const auto finished = this->Finish(image);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->code, image.code);
  EXPECT_EQ(finished->name, image.name);
  EXPECT_NE(finished->finished, "");
  EXPECT_EQ(this->built(), 1);
  auto kernel = this->device().LoadKernel(*finished);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(this->built(), 1);
  EXPECT_EQ(this->loaded(), 1);
  auto buffer = *this->device().Allocate(64);
  auto list = this->Prepare({LaunchCommand{kernel->get(), {{0, 0, 64}, {0, 0, 64}}}});
  EXPECT_TRUE(this->Run(*list, {buffer.get()}).status.ok());
}

TYPED_TEST_P(FinishTest, ErrorsAreThoseOfLoading) {
  this->Open();
  KernelImage image = this->Image(1);
  TypeParam::Spoil(*this->control_, image);
  EXPECT_THAT(this->Finish(image).status().message(), ::testing::HasSubstr(TypeParam::kSpoilt));
  image.block_size = 128;
  TypeParam::Spoil(*this->control_, image);
  EXPECT_EQ(BlockThreadsMax(this->Finish(image).status()), 64);
}

TYPED_TEST_P(FinishTest, ABinaryThatIsRefusedIsNotBuiltAnew) {
  this->Open();
  const auto finished = this->Finish(this->Image(1));
  TypeParam::Update(*this->control_);
  const absl::Status refused = this->device().LoadKernel(*finished).status();
  EXPECT_TRUE(IsFinishedRefused(refused)) << refused;
  EXPECT_THAT(refused.message(), ::testing::HasSubstr(TypeParam::kRefused));
  EXPECT_EQ(this->built(), 1);
  EXPECT_TRUE(this->device().Health().ok());
}

TYPED_TEST_P(FinishTest, ADeviceWithoutBinariesLoadsWhatItBuilds) {
  this->Open();
  this->control_->gives_binaries = false;
  const absl::Status status = this->Finish(this->Image(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "the device cannot return binaries");
}

TYPED_TEST_P(FinishTest, AnotherVersionOfTheDriverHasNoSuchDevice) {
  this->Open();
  const Target& target = this->device().info().target;
  const Finisher finisher = target.finisher;
  const std::string key = target.CacheKey();
  EXPECT_EQ(finisher.driver, TypeParam::kName);
  TypeParam::Update(*this->control_);
  const auto updated = this->MakeDriver();
  const absl::Status status = updated->Finish(this->Image(1), finisher).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              ::testing::HasSubstr(
                  absl::StrCat("cannot find ", finisher.device, " as it was when kilnd started")));
  this->Open();
  EXPECT_NE(this->device().info().target.CacheKey(), key);
}

TYPED_TEST_P(FinishTest, NoLibraryIsAnError) {
  const auto driver = this->MakeDriver("libno_such_library.so.1");
  EXPECT_EQ(driver->Finish(this->Image(1), {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

REGISTER_TYPED_TEST_SUITE_P(FinishTest, ADeviceLoadsTheBinaryAndBuildsNothing,
                            ErrorsAreThoseOfLoading, ABinaryThatIsRefusedIsNotBuiltAnew,
                            ADeviceWithoutBinariesLoadsWhatItBuilds,
                            AnotherVersionOfTheDriverHasNoSuchDevice, NoLibraryIsAnError);

}  // namespace kiln::drivers::testing

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_FINISH_TESTS_H_
