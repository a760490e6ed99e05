// Prints the table of cases with their operands' values as JSON, for
// tests/numerics/cases/generate_golden.
#include <cmath>
#include <iostream>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "tests/numerics/cases/cases.h"

namespace kiln::numerics {
namespace {

struct Json {
  std::string operator()(int64_t value) const { return StrCat(value); }
  // Infinities in the form that Python's json reads.
  std::string operator()(double value) const {
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return absl::StrFormat("%.17g", value);
  }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return StrCat("\"", value, "\""); }
  std::string operator()(const std::vector<int64_t>& values) const {
    return StrCat("[", absl::StrJoin(values, ","), "]");
  }
};

std::string OperandJson(const ops::HostTensor& tensor) {
  std::string values;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    StrAppend(&values, i == 0 ? "" : ",", Json{}(tensor.Number(i)));
  }
  return StrCat("{\"dtype\":\"", ir::Name(tensor.dtype), "\",\"shape\":", Json{}(tensor.shape),
                ",\"values\":[", values, "]}");
}

std::string CaseJson(const Case& test_case) {
  std::string operands;
  for (const ops::HostTensor& value : OperandValues(test_case, ir::DType::kFloat64)) {
    StrAppend(&operands, operands.empty() ? "" : ",", OperandJson(value));
  }
  std::string attributes;
  for (const auto& [name, value] : test_case.attributes) {
    StrAppend(&attributes, attributes.empty() ? "" : ",", "\"", name,
              "\":", std::visit(Json{}, value));
  }
  return StrCat("{\"name\":\"", test_case.name, "\",\"op\":\"", test_case.op, "\",\"declared\":\"",
                ir::Name(test_case.declared), "\",\"operands\":[", operands, "],\"attributes\":{",
                attributes, "}}");
}

}  // namespace
}  // namespace kiln::numerics

int main() {
  const char* separator = "[\n";
  for (const auto& test_case : kiln::numerics::Cases()) {
    std::cout << separator << kiln::numerics::CaseJson(test_case);
    separator = ",\n";
  }
  std::cout << "\n]\n";
}
