#include "compiler/ops/bindings/opgen_cpp.h"

#include <cctype>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/attributes.h"
#include "compiler/ops/bindings/opgen_tables.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using Type = AttributeDef::Type;

constexpr size_t kColumns = 100;

// Returns the number of columns of UTF-8 text.
size_t Width(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return width;
}

// Joins pieces with spaces and wraps the lines; all but the first begin with `indent`.
std::string Wrap(std::string_view first, std::string_view indent,
                 const std::vector<std::string>& pieces) {
  std::string lines(first);
  size_t column = Width(first);
  bool fresh = true;
  for (const std::string& piece : pieces) {
    if (!fresh && column + 1 + Width(piece) > kColumns) {
      StrAppend(&lines, "\n", indent);
      column = Width(indent);
      fresh = true;
    }
    StrAppend(&lines, fresh ? "" : " ", piece);
    column += (fresh ? 0 : 1) + Width(piece);
    fresh = false;
  }
  return lines;
}

std::string Comment(const std::string& text) {
  return Wrap("// ", "// ", absl::StrSplit(text, ' ')) + "\n";
}

// Returns the pieces of a list of arguments, or of a nested list.
std::vector<std::string> Separated(std::vector<std::string> items, std::string_view end) {
  for (size_t i = 0; i < items.size(); ++i) items[i] += i + 1 < items.size() ? "," : end;
  return items;
}

struct CppLiteral {
  std::string operator()(int64_t value) const { return StrCat(value); }
  std::string operator()(double value) const {
    if (std::isinf(value)) {
      return StrCat(value < 0 ? "-" : "", "std::numeric_limits<double>::infinity()");
    }
    // 17 digits always read back as the same double; the short form is more readable if it does,
    // too.
    const std::string text = absl::StrFormat("%.17g", value);
    const std::string brief = StrCat(value);
    const std::string& exact = std::stod(brief) == value ? brief : text;
    return exact.find_first_of(".e") == std::string::npos ? exact + ".0" : exact;
  }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return StrCat("\"", value, "\""); }
  std::string operator()(const std::vector<int64_t>& values) const {
    return StrCat("{", absl::StrJoin(values, ", "), "}");
  }
};

// The type of an attribute in an options struct.
std::string_view CppType(Type type) {
  static constexpr std::string_view kTypes[] = {"Dimension",  "double",     "bool",  "std::string",
                                                "Dimensions", "Dimensions", "Number"};
  return kTypes[static_cast<int>(type)];
}

// The type of an attribute as a parameter.
std::string CppParameter(Type type) {
  return type == Type::kFloat || type == Type::kBool ? std::string(CppType(type))
                                                     : StrCat("const ", CppType(type), "&");
}

bool HasOptions(const OpDef& op) {
  for (const std::string_view operand : op.operands) {
    if (IsOptional(operand)) return true;
  }
  for (const AttributeDef& attribute : op.attributes) {
    if (attribute.default_value.has_value()) return true;
  }
  return false;
}

std::string OptionsStruct(const OpDef& op) {
  if (!HasOptions(op)) return "";
  std::string fields;
  for (const std::string_view operand : op.operands) {
    if (!IsOptional(operand)) continue;
    StrAppend(&fields, "  std::optional<Value> ", PlainName(operand), " = std::nullopt;\n");
  }
  for (const AttributeDef& attribute : op.attributes) {
    if (!attribute.default_value.has_value()) continue;
    StrAppend(&fields, "  ", CppType(attribute.type), " ", attribute.name, " = ",
              CppValue(*attribute.default_value), ";\n");
  }
  return StrCat("struct ", CppName(op.name), "Options {\n", fields, "};\n");
}

// Returns whether numbers may be passed instead of tensors: where operands broadcast.
bool TakesNumbers(const OpDef& op, size_t operand) {
  return op.shape_rule.name == kBroadcastShape.name && !IsSpecial(op, operand);
}

std::string Signature(const OpDef& op, bool declares) {
  std::vector<std::string> parameters;
  if (op.operands.empty()) parameters.push_back("GraphBuilder& builder");
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const std::string_view name = op.operands[i];
    if (IsOptional(name)) continue;
    const std::string_view type = IsMany(name)          ? "absl::Span<const Value> "
                                  : TakesNumbers(op, i) ? "const Operand& "
                                                        : "Value ";
    parameters.push_back(StrCat(type, PlainName(name)));
  }
  if (op.dtype_rule == DTypeRule::kAttribute) parameters.push_back("DType dtype");
  for (const AttributeDef& attribute : op.attributes) {
    if (attribute.default_value.has_value()) continue;
    parameters.push_back(StrCat(CppParameter(attribute.type), " ", attribute.name));
  }
  if (HasOptions(op)) {
    parameters.push_back(
        StrCat("const ", CppName(op.name), "Options& options", declares ? " = {}" : ""));
  }
  parameters.push_back(declares ? "Location location = Location::current()" : "Location location");
  const std::string first = StrCat("Value ", CppName(op.name), "(");
  return Wrap(first, std::string(first.size(), ' '), Separated(std::move(parameters), ")"));
}

std::string Documentation(const OpDef& op) {
  return StrCat(
      Comment(StrCat(op.doc, ".")),
      Comment(StrCat("Shape: ", op.shape_rule.name, ". DType: ", Name(op.dtype_rule), ".")));
}

std::string OperandList(const OpDef& op) {
  std::vector<std::string> one;
  std::string_view many;
  for (const std::string_view operand : op.operands) {
    const std::string_view name = PlainName(operand);
    if (IsMany(operand)) {
      many = name;
    } else {
      one.push_back(StrCat(IsOptional(operand) ? "options." : "", name));
    }
  }
  const std::string list = StrCat("{", absl::StrJoin(one, ", "), "}");
  return many.empty() ? list : StrCat("Join(", list, ", ", many, ")");
}

// {"axis", AttributeOf(options.axis)} for each attribute.
std::vector<std::string> AttributeList(const OpDef& op) {
  std::vector<std::string> items;
  for (const AttributeDef& attribute : op.attributes) {
    const std::string value =
        StrCat(attribute.default_value.has_value() ? "options." : "", attribute.name);
    const bool is_plain = attribute.type == Type::kFloat || attribute.type == Type::kBool ||
                          attribute.type == Type::kString;
    items.push_back(StrCat("{\"", attribute.name, "\", ",
                           is_plain ? value : StrCat("AttributeOf(", value, ")"), "}"));
  }
  if (items.empty()) return {"{}"};
  items.front() = StrCat("{", items.front());
  items.back() += "}";
  return items;
}

std::string Definition(const OpDef& op) {
  const std::string name = StrCat("\"", op.name, "\"");
  std::vector<std::string> arguments;
  if (op.operands.empty()) {
    arguments = {StrCat("builder.AddNode(", name), "{}"};
  } else {
    arguments = {StrCat("Call(", name), OperandList(op)};
  }
  for (std::string& item : AttributeList(op)) arguments.push_back(std::move(item));
  const bool is_declared = op.dtype_rule == DTypeRule::kAttribute;
  arguments.push_back(is_declared ? "dtype" : "DType::kUnspecified");
  arguments.push_back("location");
  return StrCat(Signature(op, false), " {\n",
                Wrap("  return ", "      ", Separated(std::move(arguments), ");")), "\n}\n");
}

std::string Row(const OpDef& op) {
  return StrCat(
      "    {\"", op.name, "\", \"",
      absl::StrJoin(op.operands, ", ", [](auto* out, auto name) { StrAppend(out, name); }),
      "\", DTypeRule::k", CppName(Name(op.dtype_rule)), ", ", op.special_operand, "},\n");
}

constexpr std::string_view kHeaderBegin = R"(// Every op of the daemon's table as a function.
// Generated from compiler/ops by `opgen cpp_header`; do not edit.
//
//   Value y = ops::Relu(ops::Conv2d(x, weight, {.bias = bias, .padding = {1, 1}}));
//   Value loss = ops::CrossEntropy(y, labels);
//
// Operands come first, then what has no default; the rest is in a struct of options. Operands that
// broadcast may be numbers, which take the dtype of the tensor beside them. Dimensions, and all
// other integers, may be variables: see Dimension. The last parameter is where messages say that
// the node was built; a function of your own that builds several hands its caller's on.
//
// Mistakes in a graph come out of GraphBuilder::Build and, where only the daemon sees them, out of
// Program::digest, with op, operands and source line. The rules of shapes and dtypes stand in
// clients/python/OPS.md.
#ifndef KILN_CLIENTS_CPP_KILN_OPS_H_
#define KILN_CLIENTS_CPP_KILN_OPS_H_
)";

constexpr std::string_view kHeaderIncludes[] = {"<limits>", "<optional>", "<string>",
                                                "\"absl/types/span.h\"", "\"kiln/graph.h\""};

constexpr std::string_view kHeaderEnd = R"(
}  // namespace kiln::ops
// clang-format on

#endif  // KILN_CLIENTS_CPP_KILN_OPS_H_
)";

constexpr std::string_view kSourceBegin =
    R"(// The nodes that the functions of kiln/ops.h send, and the table's rules of dtypes.
// Generated from compiler/ops by `opgen cpp_source`; do not edit.
)";
constexpr std::string_view kSourceIncludes[] = {"\"kiln/ops.h\"", "\"clients/cpp/call.h\"",
                                                "\"clients/cpp/op_row.h\""};
constexpr std::string_view kRowsBegin = R"(
namespace kiln {
namespace internal {
namespace {

constexpr OpRow kRows[] = {
)";

std::string Includes(absl::Span<const std::string_view> files) {
  std::string text;
  for (const std::string_view file : files) StrAppend(&text, "#include ", file, "\n");
  return text;
}

}  // namespace

std::string CppName(std::string_view name) {
  std::string camel;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') camel += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = c == '_';
  }
  return camel;
}

bool HasCppBinding(const OpDef& op) { return op.name != "input"; }

std::string_view PlainName(std::string_view operand) {
  return operand.substr(0, operand.size() - (IsOptional(operand) || IsMany(operand)));
}

std::string CppValue(const AttributeValue& value) { return std::visit(CppLiteral{}, value); }

std::string CppHeader() {
  std::string text = StrCat(kHeaderBegin, "\n// clang-format off\n", Includes(kHeaderIncludes),
                            "\nnamespace kiln::ops {\n");
  for (const OpDef& op : AllOps()) {
    if (!HasCppBinding(op)) continue;
    StrAppend(&text, "\n", OptionsStruct(op), Documentation(op), Signature(op, true), ";\n");
  }
  return StrCat(text, kHeaderEnd);
}

std::string CppSource() {
  std::string text =
      StrCat(kSourceBegin, "// clang-format off\n", Includes(kSourceIncludes), kRowsBegin);
  for (const OpDef& op : AllOps()) text += Row(op);
  StrAppend(&text, "};\n\n}  // namespace\n\nabsl::Span<const OpRow> OpRows() { return kRows; }\n",
            "uint32_t OpSetVersion() { return ", kOpSetVersion,
            "; }\n\n}  // namespace internal\n\nnamespace ops {\n\nusing internal::AttributeOf;\n"
            "using internal::Call;\nusing internal::Join;\n");
  for (const OpDef& op : AllOps()) {
    if (HasCppBinding(op)) StrAppend(&text, "\n", Definition(op));
  }
  return text + "\n}  // namespace ops\n}  // namespace kiln\n// clang-format on\n";
}

}  // namespace kiln::ops
