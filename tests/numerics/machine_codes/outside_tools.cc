#include "tests/numerics/machine_codes/outside_tools.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace kiln::numerics {

std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const auto& folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string program = absl::StrCat(std::string(folder), "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

ToolSays RunTool(const std::string& command, const std::vector<std::string>& files) {
  static std::atomic<int> number = 0;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / absl::StrCat("kiln_", getpid(), "_", ++number);
  std::filesystem::create_directory(folder);
  for (size_t i = 0; i < files.size(); ++i)
    std::ofstream(folder / absl::StrCat(i), std::ios::binary) << files[i];
  const std::string line = absl::StrCat("cd ", folder.string(), " && { ", command, "; } 2>&1");
  ToolSays says;
  std::FILE* pipe = popen(line.c_str(), "r");
  char part[4096];
  while (const size_t size = std::fread(part, 1, sizeof(part), pipe)) says.text.append(part, size);
  says.status = pclose(pipe);
  std::filesystem::remove_all(folder);
  return says;
}

std::string FileNames(size_t files) {
  std::string names;
  for (size_t i = 0; i < files; ++i) absl::StrAppend(&names, i == 0 ? "" : " ", i);
  return names;
}

}  // namespace kiln::numerics
