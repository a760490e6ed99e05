#include "tests/golden/golden_file.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace kiln::golden {
namespace {

std::string FirstDifference(const std::string& text, const std::string& expected) {
  std::istringstream have(text);
  std::istringstream want(expected);
  std::string have_line;
  std::string want_line;
  for (int line = 1;; ++line) {
    const bool more_have = static_cast<bool>(std::getline(have, have_line));
    const bool more_want = static_cast<bool>(std::getline(want, want_line));
    if (more_have && more_want && have_line == want_line) continue;
    return absl::StrCat("line ", line, " is\n  ", more_have ? have_line : "(the end)",
                        "\nand was\n  ", more_want ? want_line : "(the end)");
  }
}

}  // namespace

std::string Folder() { return KILN_TEST_DATA; }

std::string DifferenceFromFile(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(Folder(), "/", name);
  if (std::getenv("KILN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return "";
  }
  std::ifstream file(path);
  if (!file) return absl::StrCat(path, " is missing; golden_test --update writes it");
  std::stringstream expected;
  expected << file.rdbuf();
  if (text == expected.str()) return "";
  return absl::StrCat(path, ": ", FirstDifference(text, expected.str()),
                      "\ngolden_test --update writes the files anew");
}

}  // namespace kiln::golden
