#include "server/tuner/shipped_settings.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/search/knobs/setting.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TunedSetting For(const std::string& kernel, const std::string& setting,
                 const std::string& hardware = "here", int version = search::kSettingVersion) {
  return {.kernel = kernel + "\n",
          .hardware = hardware,
          .version = version,
          .setting = setting.empty() ? "" : setting + "\n",
          .seconds_before = 2,
          .seconds_after = 1,
          .width = 4};
}

class ShippedSettingsTest : public ::testing::Test {
 protected:
  ShippedSettingsTest() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/kiln_shipped_XXXXXX");
    folder_ = mkdtemp(pattern.data());
  }
  ~ShippedSettingsTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(absl::StrCat(folder_, "/", name)) << text;
  }
  // As "kernel=setting".
  std::vector<std::string> Read() const {
    std::vector<std::string> read;
    for (const TunedSetting& setting : ReadShippedSettings(folder_, {"here", "also"})) {
      EXPECT_EQ(setting.width, 0);
      EXPECT_EQ(setting.seconds_after, 1);
      read.push_back(absl::StrCat(setting.kernel.substr(0, setting.kernel.size() - 1), "=",
                                  setting.setting.substr(0, setting.setting.size() - 1)));
    }
    return read;
  }

  std::string folder_;
};

TEST_F(ShippedSettingsTest, ThoseOfThisHardwareAndVersionAreUsed) {
  EXPECT_THAT(Read(), IsEmpty());
  Write("a.settings",
        PrintSettings({For("k", "1"), For("other", "2", "also"), For("k", "3", "elsewhere"),
                       For("kept", ""), For("old", "4", "here", search::kSettingVersion + 1)}));
  EXPECT_THAT(Read(), ElementsAre("other=2", "k=1"));
}

TEST_F(ShippedSettingsTest, TheFirstFileCounts) {
  Write("b.settings", PrintSettings({For("k", "second"), For("l", "second")}));
  Write("a.settings", PrintSettings({For("k", "first")}));
  Write("c.txt", PrintSettings({For("m", "third")}));
  EXPECT_THAT(Read(), ElementsAre("k=first", "l=second"));
}

TEST_F(ShippedSettingsTest, AFileWithAMistakeIsLeftOut) {
  Write("a.settings", "kiln settings 0\n");
  Write("b.settings", PrintSettings({For("k", "1")}));
  Write("c.settings", std::string(kShippedFileBytesMax + 1, 'x'));
  std::filesystem::create_directory(folder_ + "/d.settings");
  EXPECT_THAT(Read(), ElementsAre("k=1"));
  EXPECT_THAT(ReadShippedSettings(folder_ + "/none", {"here"}), IsEmpty());
  EXPECT_THAT(ReadShippedSettings("", {"here"}), IsEmpty());
}

TEST_F(ShippedSettingsTest, TheirNumberIsBounded) {
  std::vector<TunedSetting> many;
  for (size_t i = 0; i <= kShippedSettingsMax; ++i) many.push_back(For(absl::StrCat(i), "1"));
  Write("a.settings", PrintSettings(many));
  EXPECT_EQ(Read().size(), kShippedSettingsMax);
}

TEST(ShippedSettings, AreFoundBesideTheProgram) {
  EXPECT_TRUE(ShippedSettingsFolder().ends_with("/share/kiln/settings"));
}

}  // namespace
}  // namespace kiln::tuner
