// Writes the rules as functions of the Python client. Their notation is Python's: only steps are
// rewritten, expressions are unchanged.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/bindings/opgen_cpp.h"
#include "compiler/ops/bindings/opgen_tables.h"
#include "compiler/ops/op_def.h"
#include "compiler/ops/rules/rule_functions.h"
#include "compiler/ops/rules/rule_text.h"

namespace kiln::ops {
namespace {

constexpr std::string_view kModuleBegin =
    R"module("""Rules of shapes, and what must hold besides. Generated from compiler/ops by opgen; do not edit."""

# ruff: noqa: E501
from typing import Any, Dict, Sequence

from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op
)module";

constexpr std::string_view kModuleImports = R"module(from kiln._rules.query import Constraint
from kiln._rules.shapes import Attributes, Shape, ShapeRule
)module";

// By name; a std::map, so that the order does not depend on which row comes first.
using PythonFunctions = std::map<std::string_view, std::string>;

// Writes one literal per line.
std::string PythonMessage(const std::vector<std::string>& literals, std::string_view indent) {
  std::string message;
  for (const std::string& literal : literals) {
    StrAppend(&message, "\n", indent, "        ", absl::StrContains(literal, "{") ? "f" : "",
              literal);
  }
  return message;
}

std::string PythonStep(const RuleStep& step) {
  switch (step.kind) {
    case RuleStep::Kind::kAssign:
      return StrCat("    ", step.variable_text, " = ", step.value_text, "\n");
    case RuleStep::Kind::kCall:
      return StrCat("    ", step.value_text, "\n");
    case RuleStep::Kind::kResult:
      return StrCat("    return ", step.value_text, "\n");
    case RuleStep::Kind::kCheck:
      break;
  }
  const std::string indent = !step.each.has_value() ? "    " : "        ";
  const std::string loop = !step.each.has_value() ? ""
                                                  : StrCat("    for ", step.variable_text, " in ",
                                                           step.each_text, ":\n");
  return StrCat(loop, indent, "if not (", step.value_text, "):\n", indent,
                "    raise InvalidArgument(", PythonMessage(step.message_text, indent), ")\n");
}

// The operands after the first optional one are optional, too.
std::string PythonOperands(const RuleProgram& program) {
  std::string text;
  for (size_t i = 0; i < program.operands.size(); ++i) {
    const std::string_view name = PlainName(program.operands[i]);
    if (IsOptional(program.operands[i])) {
      StrAppend(&text, "    ", name, ": Any = shapes[", i, "] if len(shapes) > ", i,
                " else None\n");
    } else {
      StrAppend(&text, "    ", name, " = shapes[", i, "]\n");
    }
  }
  return text;
}

std::string PythonFunction(std::string_view parameters, std::string_view result,
                           std::string_view prefix, const Rule& rule, const RuleProgram& program) {
  std::string text = StrCat("def ", prefix, rule.name, "(", parameters, ") -> ", result, ":\n",
                            PythonOperands(program));
  for (const RuleStep& step : program.steps) text += PythonStep(step);
  return text;
}

std::string PythonDict(std::string_view name, std::string_view type, std::string_view prefix,
                       const PythonFunctions& functions) {
  std::string text = StrCat(name, ": Dict[str, ", type, "] = {\n");
  for (const auto& [rule, unused] : functions) {
    StrAppend(&text, "    ", Quoted(rule), ": ", prefix, rule, ",\n");
  }
  return text + "}\n";
}

std::string Imports(const std::string& functions) {
  std::set<std::string> used;
  for (const RuleFunction& function : RuleFunctions()) {
    // Imports only what is used: a linter refuses unused imports.
    const bool is_used = absl::StrContains(functions, StrCat(function.name, "("));
    if (is_used && !function.is_python) used.insert(StrCat("    ", function.name, ",\n"));
  }
  return StrCat("from kiln._rules.functions import (\n", absl::StrJoin(used, ""), ")\n");
}

}  // namespace

std::string PythonRules() {
  PythonFunctions shapes;
  PythonFunctions constraints;
  for (const OpDef& op : AllOps()) {
    // Rules that several ops share become one function: emplace keeps the first.
    shapes.emplace(op.shape_rule.name,
                   PythonFunction("op: Op, shapes: Sequence[Shape], attributes: Attributes",
                                  "Shape", "_shape_", op.shape_rule, *op.programs[0]));
    for (size_t i = 0; i < op.constraints.size(); ++i) {
      constraints.emplace(
          op.constraints[i].name,
          PythonFunction("op: Op, shapes: Sequence[Shape], dtypes: Sequence[DType], attributes: "
                         "Attributes, shape: Shape, dtype: DType",
                         "None", "_check_", op.constraints[i], *op.programs[i + 1]));
    }
  }
  std::string functions;
  for (const auto& [name, text] : shapes) StrAppend(&functions, "\n\n", text);
  for (const auto& [name, text] : constraints) StrAppend(&functions, "\n\n", text);
  return StrCat(kModuleBegin, Imports(functions), kModuleImports, functions, "\n\n",
                PythonDict("SHAPE_RULES", "ShapeRule", "_shape_", shapes), "\n",
                PythonDict("CONSTRAINTS", "Constraint", "_check_", constraints));
}

}  // namespace kiln::ops
