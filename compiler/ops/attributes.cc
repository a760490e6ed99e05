#include "compiler/ops/attributes.h"

#include <algorithm>

#include "compiler/ir/quoted.h"
#include "compiler/ir/str_cat.h"

namespace kiln::ops {
namespace {

using Type = AttributeDef::Type;

bool Fits(Type type, const AttributeValue& value) {
  const bool is_int = std::holds_alternative<int64_t>(value);
  const bool is_float = std::holds_alternative<double>(value);
  switch (type) {
    case Type::kInt:
      return is_int;
    case Type::kFloat:
      // Clients may write 1 for 1.0.
      return is_float || is_int;
    case Type::kBool:
      return std::holds_alternative<bool>(value);
    case Type::kString:
      return std::holds_alternative<std::string>(value);
    case Type::kInts:
    case Type::kShape:
      return std::holds_alternative<std::vector<int64_t>>(value);
    case Type::kNumber:
      return is_float || is_int || std::holds_alternative<bool>(value);
  }
  return false;
}

std::string_view TypeOf(const AttributeValue& value) {
  // In the order of AttributeValue's alternatives.
  static constexpr std::string_view kNames[] = {"int", "float", "bool", "string", "ints"};
  return kNames[value.index()];
}

bool InRange(AttributeDef::Range range, const AttributeValue& value) {
  using Range = AttributeDef::Range;
  if (range == Range::kAny) return true;
  const bool is_int = std::holds_alternative<int64_t>(value);
  const double number =
      is_int ? static_cast<double>(std::get<int64_t>(value)) : std::get<double>(value);
  switch (range) {
    case Range::kAny:
      return true;
    case Range::kPositive:
      return number > 0;
    case Range::kNotNegative:
      return number >= 0;
    case Range::kNotZero:
      // Unlike != 0, false for NaN.
      return number < 0 || number > 0;
    case Range::kFraction:
      return number >= 0 && number <= 1;
  }
  return false;
}

std::string_view Meaning(AttributeDef::Range range) {
  static constexpr std::string_view kMeanings[] = {"a number", "above 0", "0 or above",
                                                   "other than 0", "in [0, 1]"};
  return kMeanings[static_cast<int>(range)];
}

std::string Listed(absl::Span<const std::string_view> choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    const bool last = i + 1 == choices.size();
    StrAppend(&text, i == 0 ? "\"" : last ? " or \"" : ", \"", choices[i], "\"");
  }
  return text;
}

absl::Status CheckValue(const OpDef& op, const AttributeDef& def, const AttributeValue& value) {
  if (!def.choices.empty()) {
    const std::string& text = std::get<std::string>(value);
    if (std::find(def.choices.begin(), def.choices.end(), text) != def.choices.end()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(StrCat("the attribute \"", def.name, "\" of \"", op.name,
                                             "\" is ", Quoted(text), "; it must be ",
                                             Listed(def.choices)));
  }
  if (InRange(def.range, value)) return absl::OkStatus();
  const std::string shown = std::holds_alternative<int64_t>(value)
                                ? StrCat(std::get<int64_t>(value))
                                : StrCat(std::get<double>(value));
  return absl::InvalidArgumentError(StrCat("the attribute \"", def.name, "\" of \"", op.name,
                                           "\" is ", shown, "; it must be ", Meaning(def.range)));
}

const AttributeDef* Find(const OpDef& op, std::string_view name) {
  for (const AttributeDef& def : op.attributes) {
    if (def.name == name) return &def;
  }
  return nullptr;
}

std::string Known(const OpDef& op) {
  if (op.attributes.empty()) return "it takes none";
  std::string known = "it takes ";
  for (size_t i = 0; i < op.attributes.size(); ++i) {
    StrAppend(&known, i == 0 ? "\"" : ", \"", op.attributes[i].name, "\"");
  }
  return known;
}

}  // namespace

std::string_view Name(AttributeDef::Range range) {
  static constexpr std::string_view kNames[] = {"any", "positive", "not_negative", "not_zero",
                                                "fraction"};
  return kNames[static_cast<int>(range)];
}

std::string_view Name(Type type) {
  static constexpr std::string_view kNames[] = {"int",  "float", "bool",  "string",
                                                "ints", "shape", "number"};
  return kNames[static_cast<int>(type)];
}

absl::StatusOr<Attributes> CompleteAttributes(const OpDef& op, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    // An error, not ignored: with a misspelt name an optional attribute would silently have its
    // default.
    if (Find(op, name) == nullptr) {
      return absl::InvalidArgumentError(
          StrCat("\"", op.name, "\" has no attribute ", Quoted(name), "; ", Known(op)));
    }
  }
  Attributes completed;
  for (const AttributeDef& def : op.attributes) {
    const auto given = attributes.find(std::string(def.name));
    if (given == attributes.end() && !def.default_value.has_value()) {
      return absl::InvalidArgumentError(StrCat("\"", op.name, "\" needs the attribute \"", def.name,
                                               "\" (", Name(def.type), ")"));
    }
    const AttributeValue& value = given == attributes.end() ? *def.default_value : given->second;
    if (!Fits(def.type, value)) {
      return absl::InvalidArgumentError(StrCat("the attribute \"", def.name, "\" of \"", op.name,
                                               "\" is ", TypeOf(value), "; it must be ",
                                               Name(def.type)));
    }
    if (absl::Status fits = CheckValue(op, def, value); !fits.ok()) return fits;
    // FloatOf requires a double.
    if (def.type == Type::kFloat && std::holds_alternative<int64_t>(value)) {
      completed[std::string(def.name)] = static_cast<double>(std::get<int64_t>(value));
    } else {
      completed[std::string(def.name)] = value;
    }
  }
  return completed;
}

int64_t IntOf(const Attributes& attributes, std::string_view name) {
  return std::get<int64_t>(attributes.at(std::string(name)));
}
double FloatOf(const Attributes& attributes, std::string_view name) {
  return std::get<double>(attributes.at(std::string(name)));
}
bool BoolOf(const Attributes& attributes, std::string_view name) {
  return std::get<bool>(attributes.at(std::string(name)));
}
const std::string& StringOf(const Attributes& attributes, std::string_view name) {
  return std::get<std::string>(attributes.at(std::string(name)));
}
const std::vector<int64_t>& IntsOf(const Attributes& attributes, std::string_view name) {
  return std::get<std::vector<int64_t>>(attributes.at(std::string(name)));
}

}  // namespace kiln::ops
