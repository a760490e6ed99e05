#include "tests/numerics/machine_codes/ptxas.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln::numerics {

std::string Ptxas() {
  const char* named = std::getenv("KILN_PTXAS");
  return named != nullptr ? named : FindProgram("ptxas");
}

ToolSays Assemble(const std::string& ptx, const std::string& processor) {
  return RunTool(absl::StrCat(Ptxas(), " -v -arch=", processor, " -o /dev/null 0"), {ptx});
}

bool SaysNoSpills(const ToolSays& assembled) {
  return absl::StrContains(assembled.text, "0 bytes spill stores, 0 bytes spill loads");
}

}  // namespace kiln::numerics
