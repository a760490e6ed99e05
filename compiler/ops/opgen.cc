// Writes what is generated from the table of ops: the Python client's table and the list of ops for
// people.
//
//   opgen python > clients/python/kiln/_ops.py
//   opgen markdown > clients/python/OPS.md
//   opgen cases > tests/golden/shape_cases.json
//   opgen --check python FILE     exits with 1 and says what to do when FILE is not what would be
//   written
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/opgen_tables.h"

namespace {

int Usage() {
  std::cerr << "usage: opgen [--check] python|markdown|cases [FILE]\n";
  return 2;
}

int Check(std::string_view form, const std::string& text, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream have;
  have << file.rdbuf();
  if (file && have.str() == text) return 0;
  std::cerr << path << " is not what the table of ops gives; run: opgen " << form << " > " << path
            << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const bool check = !arguments.empty() && arguments[0] == "--check";
  if (check) arguments.erase(arguments.begin());
  if (arguments.size() != (check ? 2 : 1)) return Usage();
  std::string text;
  if (arguments[0] == "python") {
    text = kiln::ops::PythonTable();
  } else if (arguments[0] == "markdown") {
    text = kiln::ops::MarkdownTable();
  } else if (arguments[0] == "cases") {
    text = kiln::ops::CasesJson();
  } else {
    return Usage();
  }
  if (check) return Check(arguments[0], text, std::string(arguments[1]));
  std::cout << text;
  return std::cout.flush() ? 0 : 1;
}
