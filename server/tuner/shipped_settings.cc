#include "server/tuner/shipped_settings.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/search/knobs/setting.h"
#include "server/log/log.h"
#include "server/state/small_file.h"

namespace kiln::tuner {
namespace {

constexpr char kEnding[] = ".settings";

std::set<std::filesystem::path> FilesOf(const std::string& folder) {
  std::set<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().extension() == kEnding) files.insert(entry.path());
  return files;
}

absl::StatusOr<std::vector<TunedSetting>> ReadFile(const std::filesystem::path& path) {
  const auto text = state::ReadSmallFile(path.string(), "the settings", kShippedFileBytesMax);
  if (!text.ok()) return text.status();
  return ParseSettings(*text);
}

}  // namespace

std::string ShippedSettingsFolder() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return "";
  return (program.parent_path().parent_path() / "share/kiln/settings").string();
}

std::vector<TunedSetting> ReadShippedSettings(const std::string& folder,
                                              const std::set<std::string>& hardware) {
  std::vector<TunedSetting> shipped;
  if (folder.empty()) return shipped;
  std::set<std::pair<std::string, std::string>> seen;
  for (const std::filesystem::path& path : FilesOf(folder)) {
    auto settings = ReadFile(path);
    if (!settings.ok()) {
      log::Warning("shipped_settings_refused",
                   {{"path", path.string()}, {"why", std::string(settings.status().message())}});
      continue;
    }
    size_t used = 0;
    for (TunedSetting& setting : *settings) {
      if (setting.version != search::kSettingVersion || setting.setting.empty() ||
          !hardware.contains(setting.hardware) || shipped.size() >= kShippedSettingsMax ||
          !seen.emplace(setting.hardware, setting.kernel).second)
        continue;
      setting.width = 0;
      shipped.push_back(std::move(setting));
      ++used;
    }
    log::Info("shipped_settings", {{"path", path.string()},
                                   {"used", absl::StrCat(used)},
                                   {"of", absl::StrCat(settings->size())}});
  }
  return shipped;
}

}  // namespace kiln::tuner
