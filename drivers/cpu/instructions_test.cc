#include "drivers/cpu/instructions.h"

#include <set>

#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::drivers::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A processor with `extras` and all features of `level` and the levels below it.
HasFeature Processor(int level, std::set<std::string> extras = {}) {
  static const std::vector<std::vector<std::string>>& levels =
      *new std::vector<std::vector<std::string>>{
          {"ssse3", "sse4.2", "popcnt"},
          {"avx2", "bmi", "bmi2", "lzcnt"},
          {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}};
  for (int i = 0; i <= level; ++i) extras.insert(levels[i].begin(), levels[i].end());
  return [extras](absl::string_view name) { return extras.contains(std::string(name)); };
}
HasFeature Haswell() { return Processor(1, {"fma", "f16c"}); }
HasFeature Skylake() { return Processor(2, {"fma", "f16c"}); }

Target Chosen(const HasFeature& has, const std::string& words) {
  Target target;
  const absl::Status status = ChooseInstructions(has, words, &target);
  EXPECT_TRUE(status.ok()) << status;
  return target;
}

TEST(InstructionsTest, TakesAllThatTheProcessorHas) {
  EXPECT_EQ(Chosen(Processor(0), "").variant, "sse4.2");
  EXPECT_EQ(Chosen(Processor(1, {"f16c"}), "").variant, "avx2,-fma");
  const Target haswell = Chosen(Haswell(), "");
  EXPECT_EQ(haswell.variant, "avx2");
  EXPECT_EQ(haswell.processor, "x86-64-v3");
  EXPECT_EQ(haswell.limits.vector_bytes, 32);
  EXPECT_TRUE(haswell.Has("fma") && haswell.Has("f16c"));
  const Target skylake = Chosen(Processor(2, {"fma", "f16c", "avx512vnni"}), "");
  EXPECT_EQ(skylake.variant, "avx512");
  EXPECT_EQ(skylake.limits.vector_registers, 32);
  EXPECT_TRUE(skylake.Has("avx512vl") && skylake.Has("fma") && skylake.Has("avx512vnni"));
  EXPECT_TRUE(skylake.capabilities.fma && skylake.capabilities.fp64);
  EXPECT_FALSE(skylake.capabilities.fp16);
  // The level requires both.
  EXPECT_EQ(Chosen(Processor(2, {"f16c"}), "").variant, "avx2,-fma");
}

TEST(InstructionsTest, TakesLessIfAskedTo) {
  const Target narrow = Chosen(Skylake(), "sse4.2");
  EXPECT_EQ(narrow.processor, "x86-64-v2");
  EXPECT_EQ(narrow.limits.vector_bytes, 16);
  EXPECT_FALSE(narrow.Has("fma") || narrow.Has("avx2"));
  EXPECT_FALSE(narrow.capabilities.fma);
  const Target plain = Chosen(Skylake(), "avx2,-f16c,-fma");
  EXPECT_EQ(plain.variant, "avx2,-fma,-f16c");
  EXPECT_THAT(plain.features, HasSubstr("-fma,-f16c"));
  EXPECT_FALSE(plain.Has("avx512f"));
  EXPECT_EQ(Chosen(Haswell(), "-fma").variant, "avx2,-fma");
}

TEST(InstructionsTest, SaysWhatWouldBeRight) {
  const struct {
    HasFeature has;
    const char* words;
    const char* message;
    absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  } kCases[] = {
      {Haswell(), "avx512", "this processor lacks avx512; it has sse4.2, avx2",
       absl::StatusCode::kFailedPrecondition},
      {Haswell(), "avx3", "\"avx3\" is unknown; use sse4.2, avx2, avx512, -fma, -f16c"},
      {Haswell(), "avx2,-sse", "\"-sse\" is unknown; use "},
      {Haswell(), "-fma,avx2", "\"avx2\" must be first"},
      {Skylake(), "-fma", "avx512 always includes fma; \"avx2,-fma\" excludes it"},
  };
  for (const auto& row : kCases) {
    Target target;
    const absl::Status status = ChooseInstructions(row.has, row.words, &target);
    EXPECT_EQ(status.code(), row.code) << row.words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message));
  }
  Target target;
  EXPECT_EQ(ChooseInstructions(Processor(-1), "", &target).code(),
            absl::StatusCode::kUnimplemented);
}

TEST(InstructionsTest, ListsWhatCanBeExecuted) {
  EXPECT_THAT(ExecutableFeatures(Processor(0)), ElementsAre("sse4.2"));
  EXPECT_THAT(ExecutableFeatures(Processor(1, {"fma"})),
              ElementsAre("avx2,-f16c", "avx2,-fma,-f16c", "sse4.2"));
  EXPECT_THAT(ExecutableFeatures(Skylake()), ElementsAre("avx512", "avx2", "avx2,-f16c",
                                                         "avx2,-fma", "avx2,-fma,-f16c", "sse4.2"));
  for (const std::string& words : ExecutableFeatures()) {
    EXPECT_EQ(Chosen(HostHasFeature, words).variant, words);
  }
}

TEST(InstructionsTest, DriverRefusesWhatTheMachineLacks) {
  std::string why_none;
  EXPECT_THAT(CpuDriver({.features = "mmx"}).Enumerate(&why_none).status().message(),
              HasSubstr("\"mmx\" is unknown; use "));
  for (const std::string& words : ExecutableFeatures()) {
    auto devices = CpuDriver({.features = words}).Enumerate(&why_none);
    ASSERT_TRUE(devices.ok()) << devices.status();
    EXPECT_EQ(devices->front()->info().target.variant, words);
  }
}

}  // namespace
}  // namespace kiln::drivers::cpu
