#include "compiler/ir/text_attribute.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"

namespace kiln::ir {
namespace {

// How an attribute is written: kInts is one list; kEachInt has one key per number.
enum class Form { kNone, kConst, kInput, kInt, kInts, kEachInt, kRange, kReduce, kScatter };

struct Keys {
  Form form = Form::kNone;
  std::vector<std::string_view> keys;
};

const Keys& KeysOf(Op op) {
  static const auto& table = *new std::array<Keys, kNumOps>([] {
    std::array<Keys, kNumOps> keys;
    auto set = [&](Op key, Form form, std::vector<std::string_view> names) {
      keys[static_cast<size_t>(key)] = {form, std::move(names)};
    };
    set(Op::kConst, Form::kConst, {"value"});
    set(Op::kInput, Form::kInput, {"index"});
    set(Op::kIota, Form::kInt, {"axis"});
    set(Op::kReduceSum, Form::kInts, {"axes"});
    set(Op::kReduceProd, Form::kInts, {"axes"});
    set(Op::kReduceMax, Form::kInts, {"axes"});
    set(Op::kPermute, Form::kInts, {"order"});
    set(Op::kPad, Form::kInts, {"padding"});
    set(Op::kShrink, Form::kInts, {"bounds"});
    set(Op::kFlip, Form::kInts, {"axes"});
    set(Op::kWindow, Form::kEachInt, {"axis", "size", "stride", "dilation"});
    set(Op::kUnwindow, Form::kEachInt, {"axis", "size", "stride", "dilation"});
    set(Op::kGatherElements, Form::kInt, {"axis"});
    set(Op::kScatterElements, Form::kScatter, {"axis", "mode"});
    set(Op::kShard, Form::kInts, {"spec"});
    set(Op::kSend, Form::kEachInt, {"source", "target"});
    set(Op::kMutable, Form::kInt, {"copy"});
    set(Op::kRange, Form::kRange, {"id", "extent"});
    set(Op::kLoad, Form::kInt, {"buffer"});
    set(Op::kReduce, Form::kReduce, {"kind"});
    return keys;
  }());
  return table[static_cast<size_t>(op)];
}

std::string JoinWords(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::string_view word : words) StrAppend(&text, text.empty() ? "" : ", ", word);
  return text;
}

// In the order of ReduceKind.
constexpr std::array<std::string_view, 3> kReduceNames = {"sum", "prod", "max"};

std::string FloatText(ConstValue value) {
  double v = value.AsDouble();
  if (std::isnan(v)) {
    bool usual = value == ConstValue::Float(std::numeric_limits<double>::quiet_NaN());
    return usual ? "nan" : StrCat("bits:0x", absl::Hex(value.bits, absl::kZeroPad16));
  }
  // to_chars writes the fewest digits that read back to the same double.
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), v).ptr};
}

std::string ConstText(DType dtype, ConstValue value) {
  if (IsFloat(dtype)) return FloatText(value);
  if (dtype == DType::kBool && value.bits <= 1) return value.bits == 0 ? "false" : "true";
  if (IsInteger(dtype) && !IsSigned(dtype)) return StrCat(value.bits);
  return StrCat(value.AsInt());
}

absl::Status BadValue(std::string_view text, std::string_view wanted) {
  return absl::InvalidArgumentError(StrCat("'", text, "' is not ", wanted));
}

template <typename T, typename... Base>
std::optional<T> ReadNumber(std::string_view text, Base... base) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::StatusOr<ConstValue> ParseFloat(std::string_view text) {
  constexpr std::string_view kBits = "bits:0x";
  if (text.starts_with(kBits)) {
    std::optional<uint64_t> bits = ReadNumber<uint64_t>(text.substr(kBits.size()), 16);
    if (bits.has_value()) return ConstValue{*bits};
    return BadValue(text, "the bits of a double");
  }
  if (text == "nan") return ConstValue::Float(std::numeric_limits<double>::quiet_NaN());
  std::optional<double> value = ReadNumber<double>(text);
  if (!value.has_value()) return BadValue(text, "a float");
  return ConstValue::Float(*value);
}

absl::StatusOr<ConstValue> ParseConst(DType dtype, std::string_view text) {
  if (IsFloat(dtype)) return ParseFloat(text);
  if (dtype == DType::kBool) {
    if (text == "true" || text == "false") return ConstValue::Int(text == "true" ? 1 : 0);
    return BadValue(text, "true or false");
  }
  if (!IsSigned(dtype)) {
    std::optional<uint64_t> value = ReadNumber<uint64_t>(text);
    if (!value.has_value()) return BadValue(text, "an unsigned integer of 64 bits");
    return ConstValue{*value};
  }
  absl::StatusOr<int64_t> value = ParseInt(text);
  if (!value.ok()) return value.status();
  return ConstValue::Int(*value);
}

absl::StatusOr<std::vector<int64_t>> ParseInts(std::string_view text) {
  std::vector<int64_t> values;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return BadValue(text, "a list such as [0,1]");
  }
  std::string_view inner = text.substr(1, text.size() - 2);
  if (inner.empty()) return values;
  return ParseIntList(inner);
}

absl::StatusOr<std::vector<int64_t>> ParseEach(const std::vector<Field>& fields) {
  std::vector<int64_t> values;
  for (const Field& field : fields) {
    absl::StatusOr<int64_t> value = ParseInt(field.second);
    if (!value.ok()) return value.status();
    values.push_back(*value);
  }
  return values;
}

absl::StatusOr<Attribute> ParseReduceKind(std::string_view text) {
  for (size_t i = 0; i < kReduceNames.size(); ++i) {
    if (kReduceNames[i] == text) return ReduceAttr{static_cast<ReduceKind>(i)};
  }
  return BadValue(text, "sum, prod or max");
}

absl::StatusOr<Attribute> ParseScatter(std::string_view axis, std::string_view mode) {
  absl::StatusOr<int64_t> number = ParseInt(axis);
  if (!number.ok()) return number.status();
  const std::optional<ScatterMode> named = ParseScatterMode(mode);
  if (!named.has_value()) return BadValue(mode, "set, add, mul, max or min");
  return ScatterAttr{*number, *named};
}

// Returns the attribute of an op whose fields are all int64.
Attribute FromInts(Form form, std::vector<int64_t> values) {
  switch (form) {
    case Form::kInput:
      return InputAttr{values[0]};
    case Form::kInt:
      return IntAttr{values[0]};
    case Form::kRange:
      return RangeAttr{values[0], values[1]};
    default:
      return IntsAttr{std::move(values)};
  }
}

// Returns the values of an attribute as texts, in the order of the keys.
std::vector<std::string> Values(DType dtype, const Attribute& attribute, Form form) {
  struct Visitor {
    DType dtype;
    Form form;
    std::vector<std::string> operator()(std::monostate) const { return {}; }
    std::vector<std::string> operator()(const ConstValue& v) const { return {ConstText(dtype, v)}; }
    std::vector<std::string> operator()(const InputAttr& v) const { return {StrCat(v.index)}; }
    std::vector<std::string> operator()(const IntAttr& v) const { return {StrCat(v.value)}; }
    std::vector<std::string> operator()(const IntsAttr& v) const {
      if (form != Form::kEachInt) return {StrCat("[", absl::StrJoin(v.values, ","), "]")};
      std::vector<std::string> each;
      for (int64_t value : v.values) each.push_back(StrCat(value));
      return each;
    }
    std::vector<std::string> operator()(const RangeAttr& v) const {
      return {StrCat(v.id), StrCat(v.extent)};
    }
    std::vector<std::string> operator()(const ReduceAttr& v) const {
      return {std::string(kReduceNames[static_cast<size_t>(v.kind)])};
    }
    std::vector<std::string> operator()(const ScatterAttr& v) const {
      return {StrCat(v.axis), std::string(Name(v.mode))};
    }
  };
  return std::visit(Visitor{dtype, form}, attribute);
}

}  // namespace

// Also prints illegal attributes (for messages), with placeholder keys.
std::string AttributeText(Op op, DType dtype, const Attribute& attribute) {
  const Keys& keys = KeysOf(op);
  std::vector<std::string> values = Values(dtype, attribute, keys.form);
  std::vector<std::string> parts;
  for (size_t i = 0; i < values.size(); ++i) {
    std::string_view key = i < keys.keys.size() ? keys.keys[i] : "attribute";
    parts.push_back(StrCat(key, "=", values[i]));
  }
  return absl::StrJoin(parts, " ");
}

absl::StatusOr<Attribute> ParseAttribute(Op op, DType dtype, const std::vector<Field>& fields) {
  const Keys& keys = KeysOf(op);
  bool same = fields.size() == keys.keys.size();
  for (size_t i = 0; same && i < fields.size(); ++i) same = fields[i].first == keys.keys[i];
  if (!same) {
    return absl::InvalidArgumentError(
        StrCat(Name(op), " takes ", keys.keys.empty() ? "no attributes" : "the attributes ",
               JoinWords(keys.keys)));
  }
  switch (keys.form) {
    case Form::kNone:
      return Attribute();
    case Form::kConst:
      return ParseConst(dtype, fields[0].second);
    case Form::kReduce:
      return ParseReduceKind(fields[0].second);
    case Form::kScatter:
      return ParseScatter(fields[0].second, fields[1].second);
    case Form::kInts: {
      absl::StatusOr<std::vector<int64_t>> values = ParseInts(fields[0].second);
      if (!values.ok()) return values.status();
      return IntsAttr{*std::move(values)};
    }
    default: {
      absl::StatusOr<std::vector<int64_t>> values = ParseEach(fields);
      if (!values.ok()) return values.status();
      return FromInts(keys.form, *std::move(values));
    }
  }
}

}  // namespace kiln::ir
