#include "compiler/ops/bindings/opgen_tables.h"

#include <cmath>
#include <optional>
#include <string_view>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/attributes.h"
#include "compiler/ops/bindings/opgen_examples.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {
namespace {

std::string_view KindName(Kind kind) {
  static constexpr std::string_view kNames[] = {"source",  "unary",     "binary",
                                                "ternary", "reduce",    "movement",
                                                "indexed", "structure", "composite"};
  return kNames[static_cast<int>(kind)];
}

std::string PythonFloat(double value) {
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "-float(\"inf\")";
  std::string text = StrCat(value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

struct PythonValue {
  std::string operator()(int64_t value) const { return StrCat(value); }
  std::string operator()(double value) const { return PythonFloat(value); }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(const std::string& value) const { return Quoted(value); }
  std::string operator()(const std::vector<int64_t>& values) const {
    std::string text = "(";
    for (size_t i = 0; i < values.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", values[i]);
    // In Python a tuple of one needs the trailing comma.
    return text + (values.size() == 1 ? ",)" : ")");
  }
};

std::string Default(const AttributeDef& attribute) {
  return attribute.default_value.has_value() ? std::visit(PythonValue{}, *attribute.default_value)
                                             : "None";
}

// A Python tuple of expressions.
std::string Tuple(const std::vector<std::string>& items) {
  std::string text = "(";
  for (size_t i = 0; i < items.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", items[i]);
  return text + (items.size() == 1 ? ",)" : ")");
}

// Returns the text after an attribute's default.
std::string Demands(const AttributeDef& attribute) {
  if (!attribute.choices.empty()) {
    std::vector<std::string> choices;
    for (const std::string_view choice : attribute.choices) choices.push_back(Quoted(choice));
    return StrCat(", choices=", Tuple(choices));
  }
  if (attribute.range == AttributeDef::Range::kAny) return "";
  return StrCat(", range=", Quoted(Name(attribute.range)));
}

// ((operands' shapes), {attributes}), or None.
std::string PythonExample(const OpDef& op) {
  const std::optional<OpExample> example = ExampleOf(op);
  if (!example.has_value()) return "None";
  std::vector<std::string> shapes;
  for (const ir::Shape& shape : example->operands) shapes.push_back(PythonValue{}(shape));
  std::string attributes;
  for (const AttributeDef& attribute : op.attributes) {
    const auto given = example->attributes.find(std::string(attribute.name));
    if (given == example->attributes.end()) continue;
    StrAppend(&attributes, attributes.empty() ? "" : ", ", Quoted(attribute.name), ": ",
              std::visit(PythonValue{}, given->second));
  }
  return StrCat("(", Tuple(shapes), ", {", attributes, "})");
}

std::string PythonRow(const OpDef& op) {
  std::vector<std::string> operands;
  for (const std::string_view name : op.operands) operands.push_back(Quoted(name));
  std::vector<std::string> attributes;
  for (const AttributeDef& attribute : op.attributes) {
    attributes.push_back(StrCat("A(", Quoted(attribute.name), ", ", Quoted(Name(attribute.type)),
                                ", ", Default(attribute), Demands(attribute), ")"));
  }
  std::vector<std::string> constraints;
  for (const Rule& one : op.constraints) constraints.push_back(Quoted(one.name));
  return StrCat("    Op(", Quoted(op.name), ", ", Quoted(KindName(op.kind)), ", ", Tuple(operands),
                ", ", Tuple(attributes), ", ", Quoted(op.shape_rule.name), ", ",
                Quoted(Name(op.dtype_rule)), ", ", Quoted(Name(op.operand_class)), ", ",
                op.special_operand, ", ", Quoted(Name(op.special_class)), ", ", Tuple(constraints),
                ",\n       ", Quoted(op.doc), ",\n       ", PythonExample(op), "),\n");
}

std::string Signature(const OpDef& op) {
  std::string text;
  for (const std::string_view name : op.operands) StrAppend(&text, text.empty() ? "" : ", ", name);
  for (const AttributeDef& attribute : op.attributes) {
    StrAppend(&text, text.empty() ? "" : ", ", attribute.name);
    if (attribute.default_value.has_value()) StrAppend(&text, "=", Default(attribute));
  }
  return StrCat(op.name, "(", text, ")");
}

// Returns the names of the shape rule and of the constraints.
std::string Demanded(const OpDef& op) {
  std::string text(op.shape_rule.name);
  for (const Rule& one : op.constraints) StrAppend(&text, ", ", one.name);
  return text;
}

// Returns a cell of a Markdown table; escapes bars, which would end it.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    // The escapes are valid in Python and in JSON.
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string PythonTable() {
  std::string text = StrCat(
      "\"\"\"The table of ops. Generated from compiler/ops by opgen; do not edit.\"\"\"\n\n"
      "# ruff: noqa: E501\n"
      "from kiln._ops.definition import Attribute as A\nfrom kiln._ops.definition import "
      "Op\n\nOP_SET_VERSION = ",
      kOpSetVersion, "\n\nOPS = (\n");
  for (const OpDef& op : AllOps()) text += PythonRow(op);
  return text + ")\n";
}

std::string MarkdownTable() {
  std::string text =
      "# Ops\n\nGenerated from `compiler/ops` by `opgen`; do not edit. After an operand's name `?` "
      "marks it optional, `*` any number of them. The rules of shapes and dtypes, "
      "and the constraints that follow the first, stand by their names in "
      "`kiln/_rules/generated.py`.\n\nDtypes "
      "promote as in the Python array API. Where it leaves the "
      "result open: bool gives way to every other dtype, an integer to a float of any width (int64 "
      "and float32 give float32), float16 and bfloat16 give float32; uint64 and a signed integer "
      "are an error. `promote_float` makes float32 of integers and bool. Clients give a bare "
      "number "
      "the dtype of the tensor beside it.\n\nOf float16 and bfloat16 every primitive is computed "
      "in float32 and rounded at once; sums and products over axes add up in float32 and round at "
      "the end, and a composite rounds its result alone. The float8 dtypes store numbers: they can "
      "be cast, moved, gathered, chosen among and compared, and arithmetic on them is refused. "
      "Integers wrap.\n\n| op | shape | dtype | what it computes |\n| --- | --- | --- | "
      "--- |\n";
  for (const OpDef& op : AllOps()) {
    StrAppend(&text, "| `", Cell(Signature(op)), "` | ", Demanded(op), " | ", Name(op.dtype_rule),
              " | ", Cell(op.doc), " |\n");
  }
  return text;
}

}  // namespace kiln::ops
