#include <algorithm>
#include <string_view>

#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/bindings/opgen_tables.h"
#include "compiler/ops/rules/shape_cases.h"

namespace kiln::ops {
namespace {

std::string List(absl::Span<const int64_t> values) {
  return StrCat("[", absl::StrJoin(values, ", "), "]");
}

struct JsonValue {
  std::string operator()(int64_t value) const { return StrCat(value); }
  std::string operator()(double value) const { return StrCat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return Quoted(value); }
  std::string operator()(const std::vector<int64_t>& values) const { return List(values); }
};

std::string AttributesJson(const Attributes& attributes) {
  std::vector<std::string> items;
  for (const auto& [name, value] : attributes) {
    items.push_back(StrCat(Quoted(name), ": ", std::visit(JsonValue{}, value)));
  }
  // Sorted, since a hash map's order differs from run to run and the file's must not.
  std::sort(items.begin(), items.end());
  return StrCat("{", absl::StrJoin(items, ", "), "}");
}

std::string ShapeCaseJson(const ShapeCase& test_case) {
  std::vector<std::string> operands;
  for (const ir::Shape& shape : test_case.operands) operands.push_back(List(shape));
  return StrCat(
      "{\"op\": ", Quoted(test_case.op), ", \"operands\": [", absl::StrJoin(operands, ", "),
      "], \"attributes\": ", AttributesJson(test_case.attributes),
      ", \"result\": ", test_case.result.has_value() ? List(*test_case.result) : "null", "}");
}

std::string DTypeJson(std::optional<ir::DType> dtype) {
  return dtype.has_value() && *dtype != ir::DType::kInvalid ? Quoted(ir::Name(*dtype)) : "null";
}

std::string DTypeCaseJson(const DTypeCase& test_case) {
  std::vector<std::string> operands;
  for (const ir::DType dtype : test_case.operands) operands.push_back(Quoted(ir::Name(dtype)));
  return StrCat("{\"op\": ", Quoted(test_case.op), ", \"operands\": [",
                absl::StrJoin(operands, ", "), "], \"declared\": ", DTypeJson(test_case.declared),
                ", \"result\": ", DTypeJson(test_case.result), "}");
}

std::string ConstraintCaseJson(const ConstraintCase& test_case) {
  std::vector<std::string> operands;
  for (const ir::Shape& shape : test_case.operands) operands.push_back(List(shape));
  std::vector<std::string> dtypes;
  for (const ir::DType dtype : test_case.dtypes) dtypes.push_back(DTypeJson(dtype));
  return StrCat("{\"op\": ", Quoted(test_case.op), ", \"operands\": [",
                absl::StrJoin(operands, ", "), "], \"dtypes\": [", absl::StrJoin(dtypes, ", "),
                "], \"attributes\": ", AttributesJson(test_case.attributes),
                ", \"declared\": ", DTypeJson(test_case.declared),
                ", \"holds\": ", test_case.holds ? "true" : "false", "}");
}

}  // namespace

std::string CasesJson() {
  std::vector<std::string> shapes;
  for (const ShapeCase& test_case : ShapeCases()) shapes.push_back(ShapeCaseJson(test_case));
  std::vector<std::string> dtypes;
  for (const DTypeCase& test_case : DTypeCases()) dtypes.push_back(DTypeCaseJson(test_case));
  std::vector<std::string> constraints;
  for (const ConstraintCase& test_case : ConstraintCases()) {
    constraints.push_back(ConstraintCaseJson(test_case));
  }
  return StrCat("{\n\"shapes\": [\n", absl::StrJoin(shapes, ",\n"), "\n],\n\"dtypes\": [\n",
                absl::StrJoin(dtypes, ",\n"), "\n],\n\"constraints\": [\n",
                absl::StrJoin(constraints, ",\n"), "\n]\n}\n");
}

}  // namespace kiln::ops
