#include "tests/numerics/llvm_tools.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace kiln::numerics {

bool HasLlvmTools() {
  return access(KILN_LLVM_TOOLS "/llvm-readelf", X_OK) == 0 &&
         access(KILN_LLVM_TOOLS "/llvm-objdump", X_OK) == 0;
}

ToolSays RunLlvmTool(const std::string& command, const std::string& contents) {
  static std::atomic<int> number = 0;
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     absl::StrCat("kiln_", getpid(), "_", ++number, ".so");
  std::ofstream(file, std::ios::binary) << contents;
  const std::string line = absl::StrCat(KILN_LLVM_TOOLS "/", command, " ", file.string(), " 2>&1");
  ToolSays says;
  std::FILE* pipe = popen(line.c_str(), "r");
  char part[4096];
  while (const size_t size = std::fread(part, 1, sizeof(part), pipe)) says.text.append(part, size);
  says.status = pclose(pipe);
  std::filesystem::remove(file);
  return says;
}

}  // namespace kiln::numerics
