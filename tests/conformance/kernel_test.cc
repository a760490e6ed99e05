// Kernels: every grid point runs once, arguments, scratch, images that must be refused.
#include <numeric>
#include <utility>

#include "tests/conformance/fixture.h"

namespace kiln::conformance {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int64_t kBytes = kGrid * 4;

class KernelTest : public ConformanceTest {
 protected:
  // Prepares a list of one launch, with argument i in slot i.
  std::unique_ptr<PreparedList> PrepareLaunch(const LoadedKernel& kernel, int repeat = 1) {
    LaunchCommand launch{&kernel, {}};
    for (int i = 0; i < kernel.image().num_arguments; ++i)
      launch.arguments.push_back({i, 0, kBytes});
    return Prepare(kernel.image().num_arguments, std::vector<Command>(repeat, launch));
  }
};

TEST_P(KernelTest, FillsTheWholeGrid) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().ramp);
  auto list = PrepareLaunch(*kernel);
  auto out = Allocate(kBytes);
  ASSERT_TRUE(Run(*list, {out.get()}).status.ok());
  const auto values = Read<int32_t>(*out, kGrid);
  for (int64_t i = 0; i < kGrid; ++i) ASSERT_EQ(values[i], 3 * i + 1);
}

TEST_P(KernelTest, ReadsItsArguments) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().saxpy);
  auto list = PrepareLaunch(*kernel);
  auto x = Allocate(kBytes);
  auto y = Allocate(kBytes);
  auto out = Allocate(kBytes);
  std::vector<float> ramp(kGrid);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  Write(*x, ramp);
  Write(*y, std::vector<float>(kGrid, 0.5f));
  ASSERT_TRUE(Run(*list, {x.get(), y.get(), out.get()}).status.ok());
  const auto values = Read<float>(*out, kGrid);
  for (int64_t i = 0; i < kGrid; ++i) ASSERT_EQ(values[i], 2.0f * i + 0.5f);
}

TEST_P(KernelTest, HonoursOffsetsOfArguments) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().ramp);
  auto list = Prepare(
      1, {FillCommand{{0, 0, kBytes + 128}, 0}, LaunchCommand{kernel.get(), {{0, 64, kBytes}}}});
  auto out = Allocate(kBytes + 128);
  ASSERT_TRUE(Run(*list, {out.get()}).status.ok());
  const auto values = Read<int32_t>(*out, kGrid + 32);
  EXPECT_EQ(values[15], 0);
  EXPECT_EQ(values[16], 1);
  EXPECT_EQ(values[16 + kGrid - 1], 3 * (kGrid - 1) + 1);
  EXPECT_EQ(values[16 + kGrid], 0);
}

TEST_P(KernelTest, EveryGridPointRunsOnce) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().count);
  auto list = PrepareLaunch(*kernel, 50);
  auto counters = Allocate(kBytes);
  Write(*counters, std::vector<int32_t>(kGrid, 0));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Run(*list, {counters.get()}).status.ok());
  EXPECT_THAT(Read<int32_t>(*counters, kGrid), Each(200));
}

TEST_P(KernelTest, OddGridsRunOnceToo) {
  KILN_REQUIRE(Feature::kKernels);
  auto counters = Allocate(kBytes);
  for (int64_t grid : {1, 2, 3, 7, 31, 32, 33, 65, 1000}) {
    KernelImage image = kernels().count;
    image.grid_size = grid;
    auto kernel = Load(image);
    auto list = PrepareLaunch(*kernel, 20);
    Write(*counters, std::vector<int32_t>(kGrid, 0));
    ASSERT_TRUE(Run(*list, {counters.get()}).status.ok());
    const auto values = Read<int32_t>(*counters, kGrid);
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), 20 * grid);
    EXPECT_EQ(values[0], 20);
    EXPECT_EQ(values[grid - 1], 20);
  }
}

// As parts of one list and of several lists: each point runs once, and no other point.
TEST_P(KernelTest, PartsOfAGridRunOnce) {
  KILN_REQUIRE(Feature::kKernels);
  auto ramp = Load(kernels().ramp);
  auto count = Load(kernels().count);
  auto counters = Allocate(kBytes);
  auto out = Allocate(kBytes);
  Write(*counters, std::vector<int32_t>(kGrid, 0));
  Write(*out, std::vector<int32_t>(kGrid, 0));
  const auto part = [](const LoadedKernel& kernel, int slot, int64_t begin, int64_t end) {
    return LaunchCommand{&kernel, {{slot, 0, kBytes}}, drivers::GridRange{begin, end}};
  };
  constexpr int64_t kPoints[] = {0, 1, 64, 5000, kGrid - 1};
  auto list = Prepare(2, {part(*count, 0, 64, 5000), part(*count, 0, 0, 1),
                          part(*ramp, 1, 5000, kGrid - 1), part(*count, 0, 1, 64)});
  ASSERT_TRUE(Run(*list, {counters.get(), out.get()}).status.ok());
  auto rest = Prepare(2, {part(*count, 0, 5000, kGrid - 1)});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Run(*rest, {counters.get(), out.get()}).status.ok());
  const auto counted = Read<int32_t>(*counters, kGrid);
  const auto values = Read<int32_t>(*out, kGrid);
  for (int64_t i = 0; i < kGrid; ++i) {
    ASSERT_EQ(counted[i], i < kPoints[3] ? 1 : i < kPoints[4] ? 3 : 0) << i;
    ASSERT_EQ(values[i], i >= kPoints[3] && i < kPoints[4] ? 3 * i + 1 : 0) << i;
  }
}

TEST_P(KernelTest, PartsThatAreNoneAreRefused) {
  KILN_REQUIRE(Feature::kKernels);
  auto count = Load(kernels().count);
  const std::pair<drivers::GridRange, std::string> cases[] = {
      {{-1, 5}, "points -1 to 5"}, {{5, 5}, "points 5 to 5"}, {{0, kGrid + 1}, "a grid of 10007"}};
  for (const auto& [points, message] : cases) {
    auto list = device().Prepare(
        {.num_slots = 1, .commands = {LaunchCommand{count.get(), {{0, 0, kBytes}}, points}}});
    ASSERT_EQ(list.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(list.status().message(), HasSubstr(message));
  }
  KernelImage image = kernels().scratch;
  if (image.runs_parts) return;
  auto whole = Load(image);
  auto list = device().Prepare(
      {.num_slots = 1,
       .commands = {LaunchCommand{whole.get(), {{0, 0, kBytes}}, drivers::GridRange{0, 5}}}});
  EXPECT_THAT(list.status().message(), HasSubstr("runs its whole grid alone"));
}

// With kernels, copies and fills: the list asks after each task whether to continue, and stops
// every eighth time.
TEST_P(KernelTest, AListThatEndsEarlyGoesOnWhereItWas) {
  KILN_REQUIRE(Feature::kKernels);
  if (!device().yields()) GTEST_SKIP() << GetParam().name << " runs lists to their ends";
  constexpr int64_t kMany = 4 << 20;
  auto count = Load(kernels().count);
  auto saxpy = Load(kernels().saxpy);
  auto counters = Allocate(kBytes);
  auto bytes = Allocate(kMany), copied = Allocate(kMany);
  auto x = Allocate(kBytes), sum = Allocate(kBytes);
  Write(*counters, std::vector<int32_t>(kGrid, 0));
  Write(*x, std::vector<float>(kGrid, 1));
  Write(*sum, std::vector<float>(kGrid, 0));
  const LaunchCommand once{count.get(), {{0, 0, kBytes}}};
  const LaunchCommand add{saxpy.get(), {{3, 0, kBytes}, {4, 0, kBytes}, {4, 0, kBytes}}};
  auto list = Prepare(5, {once, FillCommand{{1, 0, kMany}, 7}, once, add,
                          CopyCommand{{1, 0, kMany}, {2, 0, kMany}}, add, once});
  for (const bool timed : {false, true}) {
    SubmitOptions options{.time_commands = timed, .slice_seconds = 1e-9};
    double seconds = 0;
    size_t times = 0;
    int submissions = 0;
    int asked = 0;
    options.goes_on = [&asked](double ran) {
      EXPECT_GE(ran, 0);
      return ++asked % 8 != 0;
    };
    for (bool is_whole = false; !is_whole; ++submissions) {
      const SubmitResult result =
          Run(*list, {counters.get(), bytes.get(), copied.get(), x.get(), sum.get()}, options);
      ASSERT_TRUE(result.status.ok()) << result.status;
      const bool in_the_middle = options.begin.task > 0;
      times += result.command_seconds.size() - (timed && in_the_middle ? 1 : 0);
      seconds += result.seconds;
      is_whole = !result.rest.has_value();
      options.begin = result.rest.value_or(drivers::ListPosition{});
    }
    EXPECT_GT(submissions, 100);
    EXPECT_GT(seconds, 0);
    EXPECT_EQ(times, timed ? 7u : 0u);
  }
  EXPECT_THAT(Read<int32_t>(*counters, kGrid), Each(6));
  EXPECT_THAT(Read<char>(*copied, kMany), Each(7));
  EXPECT_THAT(Read<float>(*sum, kGrid), Each(8));
}

TEST_P(KernelTest, ScratchIsPrivate) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().scratch);
  auto list = PrepareLaunch(*kernel);
  auto out = Allocate(kBytes);
  ASSERT_TRUE(Run(*list, {out.get()}).status.ok());
  const auto values = Read<int32_t>(*out, kGrid);
  for (int64_t i = 0; i < kGrid; ++i) ASSERT_EQ(values[i], i);
}

TEST_P(KernelTest, ThreadsOfABlockShareMemory) {
  KILN_REQUIRE(Feature::kBlocks);
  constexpr int64_t kCount = kBlocksGrid * kBlockSize;
  auto kernel = Load(kernels().blocks);
  auto list = Prepare(2, {LaunchCommand{kernel.get(), {{0, 0, kCount * 4}, {1, 0, kCount * 4}}}});
  auto in = Allocate(kCount * 4);
  auto out = Allocate(kCount * 4);
  std::vector<int32_t> ramp(kCount);
  std::iota(ramp.begin(), ramp.end(), 0);
  Write(*in, ramp);
  ASSERT_TRUE(Run(*list, {in.get(), out.get()}).status.ok());
  const auto values = Read<int32_t>(*out, kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t first = i / kBlockSize * kBlockSize;
    ASSERT_EQ(values[i], first + kBlockSize - 1 - (i - first));
  }
}

TEST_P(KernelTest, ImagesSurviveSerialisation) {
  KILN_REQUIRE(Feature::kKernels);
  KernelImage image;
  ASSERT_TRUE(KernelImage::Deserialize(kernels().ramp.Serialize(), &image));
  auto kernel = Load(image);
  EXPECT_EQ(kernel->image().name, "ramp");
  auto list = PrepareLaunch(*kernel);
  auto out = Allocate(kBytes);
  ASSERT_TRUE(Run(*list, {out.get()}).status.ok());
  EXPECT_EQ(Read<int32_t>(*out, kGrid)[kGrid - 1], 3 * (kGrid - 1) + 1);
}

TEST_P(KernelTest, BadImagesAreRefused) {
  KILN_REQUIRE(Feature::kKernels);
  const KernelImage good = kernels().ramp;
  auto refused = [this, &good](auto change) {
    KernelImage image = good;
    change(image);
    auto kernel = device().LoadKernel(image);
    EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(kernel.status().message(), HasSubstr("ramp"));
  };
  refused([](KernelImage& image) { image.architecture = "another"; });
  refused([](KernelImage& image) { image.code.clear(); });
  refused([](KernelImage& image) { image.entry = image.code.size(); });
  refused([](KernelImage& image) { image.entry = -1; });
  refused([](KernelImage& image) { image.grid_size = 0; });
  refused([](KernelImage& image) { image.scratch_bytes = -1; });
  refused([](KernelImage& image) { image.scratch_bytes = int64_t{1} << 60; });
  refused([](KernelImage& image) { image.num_arguments = -1; });
  refused([](KernelImage& image) { image.block_size = 0; });
  refused([](KernelImage& image) { image.block_size = 1 << 30; });
  refused([](KernelImage& image) { image.shared_bytes = -1; });
  refused([](KernelImage& image) { image.shared_bytes = int64_t{1} << 60; });
  refused([](KernelImage& image) { image.access.assign(2, drivers::Access::kWrite); });
}

TEST_P(KernelTest, LaunchesWithTooFewArgumentsAreRefused) {
  KILN_REQUIRE(Feature::kKernels);
  auto kernel = Load(kernels().saxpy);
  auto list = device().Prepare(
      {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, kBytes}}}}});
  EXPECT_EQ(list.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(list.status().message(), HasSubstr("saxpy takes 3 arguments, not 1"));
}

TEST_P(KernelTest, ImagesForOthersAreRefused) {
  KernelImage image;
  image.name = "stranger";
  image.architecture = "no such architecture";
  EXPECT_EQ(device().LoadKernel(image).status().code(), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(All, KernelTest, testing::ValuesIn(AllDriverCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::conformance
