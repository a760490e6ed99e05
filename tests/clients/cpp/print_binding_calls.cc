// Prints the source of Calls() in binding_calls.h: each case as C++ that calls the op's binding.
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/bindings/opgen_cpp.h"
#include "tests/clients/cpp/binding_cases.h"

namespace kiln::bindings {
namespace {

using numerics::Case;

// Returns the arguments of the call: operands, dtype and attributes without a default, then
// options.
std::string Arguments(const Case& test_case, const ops::OpDef& op) {
  std::vector<std::string> arguments;
  std::vector<std::string> options;
  if (op.operands.empty()) arguments.push_back("b");
  for (size_t i = 0; i < op.operands.size() && i < test_case.operands.size(); ++i) {
    const std::string_view name = op.operands[i];
    if (ops::IsOptional(name)) {
      options.push_back(StrCat(".", ops::PlainName(name), " = x[", i, "]"));
    } else {
      arguments.push_back(ops::IsMany(name) ? StrCat("x.subspan(", i, ")") : StrCat("x[", i, "]"));
    }
  }
  if (op.dtype_rule == ops::DTypeRule::kAttribute) {
    arguments.push_back(StrCat("DType::", ir::RowOf(test_case.declared).constant));
  }
  for (const ops::AttributeDef& attribute : op.attributes) {
    const auto given = test_case.attributes.find(std::string(attribute.name));
    if (given == test_case.attributes.end()) continue;
    const std::string value = ops::CppValue(given->second);
    if (attribute.default_value.has_value()) {
      options.push_back(StrCat(".", attribute.name, " = ", value));
    } else {
      arguments.push_back(value);
    }
  }
  if (!options.empty()) arguments.push_back(StrCat("{", absl::StrJoin(options, ", "), "}"));
  return absl::StrJoin(arguments, ", ");
}

void Print() {
  std::cout << "#include <limits>\n\n#include \"kiln/ops.h\"\n"
               "#include \"tests/clients/cpp/binding_calls.h\"\n\n"
               "namespace kiln::bindings {\nnamespace {\n\nconstexpr Call kCalls[] = {\n";
  for (const Case& test_case : Cases()) {
    const ops::OpDef& op = *ops::FindOp(test_case.op);
    std::cout << "    {\"" << test_case.name
              << "\", [](GraphBuilder& b, absl::Span<const Value> x) { return ops::"
              << ops::CppName(op.name) << "(" << Arguments(test_case, op) << "); }},\n";
  }
  std::cout << "};\n\n}  // namespace\n\nabsl::Span<const Call> Calls() { return kCalls; }\n\n"
               "}  // namespace kiln::bindings\n";
}

}  // namespace
}  // namespace kiln::bindings

int main() { kiln::bindings::Print(); }
