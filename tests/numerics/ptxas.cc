#include "tests/numerics/ptxas.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace kiln::numerics {

std::string Ptxas() {
  if (const char* named = std::getenv("KILN_PTXAS"); named != nullptr) return named;
  const char* path = std::getenv("PATH");
  for (const auto& folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string program = absl::StrCat(std::string(folder), "/ptxas");
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

Assembled Assemble(const std::string& ptx, const std::string& processor) {
  static std::atomic<int> number = 0;
  const std::filesystem::path source = std::filesystem::temp_directory_path() /
                                       absl::StrCat("kiln_", getpid(), "_", ++number, ".ptx");
  std::ofstream(source) << ptx;
  const std::string command =
      absl::StrCat(Ptxas(), " -v -arch=", processor, " -o /dev/null ", source.string(), " 2>&1");
  Assembled assembled;
  std::FILE* pipe = popen(command.c_str(), "r");
  char part[4096];
  while (const size_t size = std::fread(part, 1, sizeof(part), pipe))
    assembled.said.append(part, size);
  assembled.status = pclose(pipe);
  std::filesystem::remove(source);
  return assembled;
}

bool SaysNoSpills(const Assembled& assembled) {
  return absl::StrContains(assembled.said, "0 bytes spill stores, 0 bytes spill loads");
}

}  // namespace kiln::numerics
