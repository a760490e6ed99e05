// Writes the files that are generated from the tables of ops and dtypes: the Python client's tables
// and rules, the C++ client's dtypes and bindings and the list of ops for people.
//
//   opgen python > clients/python/kiln/_ops/table.py
//   opgen cpp_header > clients/cpp/kiln/ops.h
//   opgen cpp_source > clients/cpp/ops.cc
//   opgen python_rules > clients/python/kiln/_rules/generated.py
//   opgen python_dtypes > clients/python/kiln/_basics/dtype_table.py
//   opgen cpp_dtypes_header > clients/cpp/kiln/dtype.h
//   opgen cpp_dtypes_source > clients/cpp/dtype.cc
//   opgen markdown > clients/python/OPS.md
//   opgen cases > tests/golden/shape_cases.json
//   opgen --check python FILE     exits with 1 and says what to do if FILE is not up to date
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/bindings/opgen_tables.h"

namespace {

struct Form {
  std::string_view name;
  std::string (*write)();
};
constexpr Form kForms[] = {{"python", kiln::ops::PythonTable},
                           {"cpp_header", kiln::ops::CppHeader},
                           {"cpp_source", kiln::ops::CppSource},
                           {"python_rules", kiln::ops::PythonRules},
                           {"python_dtypes", kiln::ops::PythonDTypes},
                           {"cpp_dtypes_header", kiln::ops::CppDTypesHeader},
                           {"cpp_dtypes_source", kiln::ops::CppDTypesSource},
                           {"markdown", kiln::ops::MarkdownTable},
                           {"cases", kiln::ops::CasesJson}};

int Usage() {
  std::cerr << "usage: opgen [--check] FORM [FILE], with one of these forms:";
  for (const Form& form : kForms) std::cerr << " " << form.name;
  std::cerr << "\n";
  return 2;
}

int Check(std::string_view form, const std::string& text, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream have;
  have << file.rdbuf();
  if (file && have.str() == text) return 0;
  std::cerr << path << " is out of date; run: opgen " << form << " > " << path
            << ", or build the target `bindings`, which writes all such files\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const bool check = !arguments.empty() && arguments[0] == "--check";
  if (check) arguments.erase(arguments.begin());
  if (arguments.size() != (check ? 2 : 1)) return Usage();
  const auto* form = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const Form& one) { return one.name == arguments[0]; });
  if (form == std::end(kForms)) return Usage();
  const std::string text = form->write();
  if (check) return Check(arguments[0], text, std::string(arguments[1]));
  std::cout << text;
  return std::cout.flush() ? 0 : 1;
}
