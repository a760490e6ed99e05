#include "server/tuner/tuned_setting.h"

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TunedSetting Example() {
  return {.kernel = "buffer b0 float32[4] read\nstage r0:4\n  b1[r0] = neg(b0[r0])\n",
          .hardware = "x86-64;x86-64-v3;+avx2;u2",
          .version = 1,
          .setting = "setting 1\nstage 0 form=point_lanes lanes=8\n",
          .seconds_before = 0.1,
          .seconds_after = 1e-7,
          .roofline_seconds = 1.0 / 3,
          .measured = absl::FromUnixSeconds(1'700'000'000),
          .width = 4};
}

constexpr char kExampleText[] =
    "kiln settings 1\n"
    "hardware x86-64;x86-64-v3;+avx2;u2\n"
    "version 1\n"
    "seconds 0.1 1e-07 0.3333333333333333\n"
    "measured 1700000000\n"
    "width 4\n"
    "kernel 3\n"
    "buffer b0 float32[4] read\n"
    "stage r0:4\n"
    "  b1[r0] = neg(b0[r0])\n"
    "setting 2\n"
    "setting 1\n"
    "stage 0 form=point_lanes lanes=8\n"
    "end of 1\n";

TEST(TunedSettingTest, TextIsAsSpecified) {
  EXPECT_EQ(PrintSettings({Example()}), kExampleText);
  const auto parsed = ParseSettings(kExampleText);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(*parsed, ElementsAre(Example()));
  EXPECT_EQ(PrintSettings({}), "kiln settings 1\nend of 0\n");
  EXPECT_THAT(*ParseSettings("kiln settings 1\nend of 0\n"), ElementsAre());
}

TEST(TunedSettingTest, EverythingReadsBackInAFixedOrder) {
  std::vector<TunedSetting> settings;
  for (const char* hardware : {"b;\"quoted\" and\nlines", "a\xff", "end of 7"}) {
    settings.push_back(Example());
    settings.back().hardware = hardware;
    settings.back().setting = "";
    settings.push_back(Example());
    settings.back().hardware = hardware;
    settings.back().kernel = "end of 3\nhardware x\n\n";
    settings.back().version = 2;
    settings.back().seconds_after = std::numeric_limits<double>::denorm_min();
  }
  const std::string text = PrintSettings(settings);
  const auto parsed = ParseSettings(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << text;
  EXPECT_THAT(*parsed, testing::UnorderedElementsAreArray(settings));
  EXPECT_EQ(PrintSettings(*parsed), text);
  EXPECT_EQ(PrintSettings({settings.rbegin(), settings.rend()}), text);
}

TEST(TunedSettingTest, MistakesAreNamedWithTheirLine) {
  const std::pair<std::pair<const char*, const char*>, const char*> mistakes[] = {
      {{"kiln settings 1\n", ""},
       "line 1: a file of settings starts with the line \"kiln settings 1"},
      {{"settings 1", "settings 2"}, "line 1: a file of settings starts"},
      {{"hardware x86-64;x86-64-v3;+avx2;u2\n", ""}, "line 2: expected \"hardware\" and a value"},
      {{"+avx2;u2", "\\q"}, "line 2: the name of the hardware has a wrong escape sequence"},
      {{"hardware x86-64;x86-64-v3;+avx2;u2", "hardware "}, "the name of the hardware has 0 bytes"},
      {{"version 1", "version 0"}, "line 3: \"0\" is not an integer from 1"},
      {{"version 1", "version 99999999999"}, "line 3: \"99999999999\" is not an integer"},
      {{"0.1 1e-07", "0.1"}, "line 4: expected three times in seconds"},
      {{"0.1 1e-07", "0.1 -1e-07"}, "line 4: expected three times"},
      {{"0.1 1e-07", "0.1 nan"}, "line 4: expected three times"},
      {{"0.1 1e-07", "0.1 inf"}, "line 4: expected three times"},
      {{"0.1 1e-07", "0.1 1e-07x"}, "line 4: expected three times"},
      {{"measured 1700000000", "measured -1"}, "line 5: \"-1\" is not an integer"},
      {{"width 4", "width four"}, "line 6: \"four\" is not an integer"},
      {{"kernel 3", "kernel 2"}, "line 10: expected \"setting\" and a value, not \"  b1[r0]"},
      {{"kernel 3", "kernel 0"}, "line 8: expected \"setting\""},
      {{"kernel 3", "kernel 1000000000000"}, "line 7: \"1000000000000\" is not an integer"},
      {{"setting 2\n", "setting 9\n"}, "line 15: the text ends too early"},
      {{"end of 1\n", ""}, "the text ends too early"},
      {{"end of 1\n", "end of 1"}, "line 14: the line is not complete"},
      {{"end of 1", "end of 2"}, "line 14: there are 1 settings"},
      {{"end of 1\n", "end of 1\nmore\n"}, "line 14: there is text after the last line"},
  };
  for (const auto& [change, why] : mistakes) {
    const auto& [from, to] = change;
    const std::string text = absl::StrReplaceAll(kExampleText, {{from, to}});
    ASSERT_NE(text, kExampleText) << from;
    const absl::Status status = ParseSettings(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << text;
  }
  EXPECT_FALSE(ParseSettings("").ok());
}

TEST(TunedSettingTest, DamagedTextIsRefusedOrStillSettings) {
  const std::string text = PrintSettings({Example(), Example()});
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(ParseSettings(text.substr(0, size)).ok()) << size;
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = text;
    for (int change = 0; change < 3; ++change) {
      const size_t place = random() % damaged.size();
      if (random() % 3 == 0) {
        damaged.erase(place, random() % 20);
      } else if (random() % 2 == 0) {
        damaged.insert(place, text.substr(random() % text.size(), random() % 40));
      } else {
        damaged[place] = static_cast<char>(random());
      }
      if (damaged.empty()) damaged = "\n";
    }
    const auto parsed = ParseSettings(damaged);
    refused += parsed.ok() ? 0 : 1;
    if (!parsed.ok()) continue;
    for (const TunedSetting& setting : *parsed) EXPECT_EQ(Check(setting), absl::OkStatus());
    EXPECT_THAT(*ParseSettings(PrintSettings(*parsed)),
                testing::UnorderedElementsAreArray(*parsed));
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 5000);
}

TEST(TunedSettingTest, CheckRefusesWhatCannotBeWritten) {
  EXPECT_EQ(Check(Example()), absl::OkStatus());
  std::vector<TunedSetting> wrong(11, Example());
  wrong[0].kernel = "";
  wrong[1].kernel = "no line feed";
  wrong[2].kernel = std::string(kKernelBytesMax, 'x') + "\n";
  wrong[3].setting = "no line feed";
  wrong[4].setting = std::string(kSettingBytesMax, 'x') + "\n";
  wrong[5].hardware = "";
  wrong[6].hardware = std::string(kHardwareBytesMax + 1, 'x');
  wrong[7].version = 0;
  wrong[8].seconds_after = -1;
  wrong[9].roofline_seconds = std::numeric_limits<double>::quiet_NaN();
  wrong[10].measured = absl::InfiniteFuture();
  for (size_t i = 0; i < wrong.size(); ++i)
    EXPECT_TRUE(absl::IsInvalidArgument(Check(wrong[i]))) << i;
  TunedSetting largest = Example();
  largest.kernel = std::string(kKernelBytesMax - 1, 'x') + "\n";
  largest.setting = std::string(kSettingBytesMax, '\n');
  largest.hardware = std::string(kHardwareBytesMax, 'x');
  EXPECT_EQ(Check(largest), absl::OkStatus());
  EXPECT_THAT(*ParseSettings(PrintSettings({largest})), ElementsAre(largest));
}

}  // namespace
}  // namespace kiln::tuner
