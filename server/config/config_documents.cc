// Writes the documents that are made from the table of configuration keys.
//
//   config_documents page > docs/configuration.md
//   config_documents example > deploy/kilnd.toml
//   config_documents --check page FILE     exits with 1 and says what to do if FILE is not up to
//   date
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "server/config/documents.h"

namespace {

int Check(std::string_view form, const std::string& text, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream have;
  have << file.rdbuf();
  if (file && have.str() == text) return 0;
  std::cerr << path << " is out of date; run: config_documents " << form << " > " << path
            << ", or build the target `configuration`\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool check = !arguments.empty() && arguments[0] == "--check";
  if (check) arguments.erase(arguments.begin());
  if (arguments.size() != (check ? 2 : 1) ||
      (arguments[0] != "page" && arguments[0] != "example")) {
    std::cerr << "usage: config_documents [--check] page|example [FILE]\n";
    return 2;
  }
  const std::string text =
      arguments[0] == "page" ? kiln::config::ReferencePage() : kiln::config::ExampleFile();
  if (check) return Check(arguments[0], text, arguments[1]);
  std::cout << text;
  return std::cout.flush() ? 0 : 1;
}
