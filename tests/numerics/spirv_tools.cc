#include "tests/numerics/spirv_tools.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace kiln::numerics {
namespace {

// `command` with the name of a file that has the module in place of "$0".
Checked RunOn(const std::string& spirv, const std::string& command) {
  static std::atomic<int> number = 0;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / absl::StrCat("kiln_spirv_", getpid(), "_", ++number);
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "kernel.spv", std::ios::binary) << spirv;
  Checked checked;
  const std::string line = absl::StrCat("cd ", folder.string(), " && ", command, " 2>&1");
  std::FILE* pipe = popen(line.c_str(), "r");
  char part[4096];
  while (const size_t size = std::fread(part, 1, sizeof(part), pipe))
    checked.said.append(part, size);
  checked.status = pclose(pipe);
  std::filesystem::remove_all(folder);
  return checked;
}

}  // namespace

std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const auto& folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string program = absl::StrCat(std::string(folder), "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

Checked Validate(const std::string& spirv) {
  return RunOn(spirv, absl::StrCat(FindProgram("spirv-val"), " kernel.spv"));
}

Checked CompileOffline(const std::string& spirv, const std::string& device) {
  return RunOn(spirv, absl::StrCat(FindProgram("ocloc"), " compile -spirv_input -file kernel.spv ",
                                   "-device ", device, " -output kernel"));
}

}  // namespace kiln::numerics
