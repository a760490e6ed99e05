#include "clients/cli/json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/timestamp.pb.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace kiln::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kTimestamp[] = "google.protobuf.Timestamp";

// The fewest digits that read back to the same number.
std::string RealText(double value) {
  if (!std::isfinite(value)) return "null";
  for (const int digits : {15, 16, 17}) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

// Reads one character of UTF-8; a byte that is none counts as U+FFFD.
uint32_t TakeCodePoint(std::string_view& text) {
  const auto byte = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const uint32_t first = byte(0);
  const size_t size = first < 0x80       ? 1
                      : first >> 5 == 6  ? 2
                      : first >> 4 == 14 ? 3
                      : first >> 3 == 30 ? 4
                                         : 0;
  uint32_t point = size <= 1 ? first : first & (0x7Fu >> size);
  bool is_right = size > 0;
  for (size_t i = 1; i < size; ++i) {
    is_right = is_right && byte(i) >> 6 == 2;
    point = point << 6 | (byte(i) & 0x3F);
  }
  is_right = is_right && point <= 0x10FFFF && point >> 11 != 0x1B;
  text.remove_prefix(is_right ? size : 1);
  return is_right ? point : 0xFFFD;
}

// Writes values with the line breaks between them.
class Printer {
 public:
  explicit Printer(bool on_many_lines) : on_many_lines_(on_many_lines) {}

  std::string Print(const Message& message, int depth) const {
    if (message.GetDescriptor()->full_name() == kTimestamp) return TimeText(message);
    const Reflection& reflection = *message.GetReflection();
    std::vector<std::string> members;
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      if (field.has_presence() && !reflection.HasField(message, &field)) continue;
      members.push_back(absl::StrCat(JsonString(field.name()), on_many_lines_ ? ": " : ":",
                                     FieldText(message, field, depth + 1)));
    }
    return Bracketed("{", members, "}", depth);
  }

  std::string Bracketed(const char* begin, const std::vector<std::string>& items, const char* end,
                        int depth) const {
    if (items.empty()) return absl::StrCat(begin, end);
    if (!on_many_lines_) return absl::StrCat(begin, absl::StrJoin(items, ","), end);
    const std::string inner = absl::StrCat("\n", std::string(static_cast<size_t>(depth) + 1, ' '));
    const std::string outer = absl::StrCat("\n", std::string(static_cast<size_t>(depth), ' '));
    return absl::StrCat(begin, inner, absl::StrJoin(items, "," + inner), outer, end);
  }

 private:
  static std::string TimeText(const Message& message) {
    google::protobuf::Timestamp time;
    time.CopyFrom(message);
    return JsonString(
        absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ",
                         absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()),
                         absl::UTCTimeZone()));
  }

  std::string FieldText(const Message& message, const FieldDescriptor& field, int depth) const {
    if (!field.is_repeated()) return ItemText(message, field, -1, depth);
    std::vector<std::string> items;
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      if (!field.is_map()) {
        items.push_back(ItemText(message, field, i, depth + 1));
        continue;
      }
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, i);
      std::string key = ItemText(entry, *field.message_type()->map_key(), -1, depth + 1);
      // A key is a string, also if it is a number.
      if (key[0] != '"') key = JsonString(key);
      items.push_back(
          absl::StrCat(key, on_many_lines_ ? ": " : ":",
                       ItemText(entry, *field.message_type()->map_value(), -1, depth + 1)));
    }
    return field.is_map() ? Bracketed("{", items, "}", depth) : Bracketed("[", items, "]", depth);
  }

  // `index`: of a repeated field; -1: the field is not repeated.
  std::string ItemText(const Message& message, const FieldDescriptor& field, int index,
                       int depth) const {
    const Reflection& reflection = *message.GetReflection();
    const auto get = [&](auto one, auto of_many) {
      return index < 0 ? (reflection.*one)(message, &field)
                       : (reflection.*of_many)(message, &field, index);
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return absl::StrCat(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
      case FieldDescriptor::CPPTYPE_INT64:
        return absl::StrCat(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
      case FieldDescriptor::CPPTYPE_UINT32:
        return absl::StrCat(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
      case FieldDescriptor::CPPTYPE_UINT64:
        return absl::StrCat(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return RealText(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return RealText(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat));
      case FieldDescriptor::CPPTYPE_BOOL:
        return get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int number = get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue);
        const auto* value = field.enum_type()->FindValueByNumber(number);
        // A newer daemon may know further values.
        return value == nullptr ? absl::StrCat(number) : JsonString(value->name());
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Print(index < 0 ? reflection.GetMessage(message, &field)
                               : reflection.GetRepeatedMessage(message, &field, index),
                     depth);
      default: {
        const std::string text = get(&Reflection::GetString, &Reflection::GetRepeatedString);
        return JsonString(field.type() == FieldDescriptor::TYPE_BYTES ? absl::Base64Escape(text)
                                                                      : text);
      }
    }
  }

  const bool on_many_lines_;
};

std::string TypeSchema(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return R"({"type": "integer", "minimum": 0})";
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return R"({"type": "integer"})";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return R"({"type": ["number", "null"]})";
    case FieldDescriptor::CPPTYPE_BOOL:
      return R"({"type": "boolean"})";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::vector<std::string> names;
      for (int i = 0; i < field.enum_type()->value_count(); ++i)
        names.push_back(JsonString(field.enum_type()->value(i)->name()));
      return absl::StrCat(R"({"anyOf": [{"enum": [)", absl::StrJoin(names, ", "),
                          R"(]}, {"type": "integer"}]})");
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return InnerSchemaOf(*field.message_type());
    default:
      return field.type() == FieldDescriptor::TYPE_BYTES
                 ? R"({"type": "string", "contentEncoding": "base64"})"
                 : R"({"type": "string"})";
  }
}

std::string FieldSchema(const FieldDescriptor& field) {
  if (field.is_map())
    return absl::StrCat(R"({"type": "object", "additionalProperties": )",
                        TypeSchema(*field.message_type()->map_value()), "}");
  if (field.is_repeated())
    return absl::StrCat(R"({"type": "array", "items": )", TypeSchema(field), "}");
  return TypeSchema(field);
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const uint32_t point = TakeCodePoint(text);
    if (point == '"' || point == '\\') {
      out += {'\\', static_cast<char>(point)};
    } else if (point == '\n') {
      out += "\\n";
    } else if (point == '\t') {
      out += "\\t";
    } else if (point >= 0x20 && point < 0x7F) {
      out.push_back(static_cast<char>(point));
    } else if (point < 0x10000) {
      absl::StrAppendFormat(&out, "\\u%04x", point);
    } else {
      absl::StrAppendFormat(&out, "\\u%04x\\u%04x", 0xD800 + ((point - 0x10000) >> 10),
                            0xDC00 + ((point - 0x10000) & 0x3FF));
    }
  }
  return out + "\"";
}

std::string ToJson(const Message& message, bool on_many_lines) {
  return Printer(on_many_lines).Print(message, 0) + (on_many_lines ? "\n" : "");
}

void JsonObject::Add(std::string_view name, const Message& message) {
  members_.emplace_back(name, Printer(true).Print(message, 1));
}

void JsonObject::Add(std::string_view name, std::vector<const Message*> list) {
  std::vector<std::string> items;
  for (const Message* message : list) items.push_back(Printer(true).Print(*message, 2));
  members_.emplace_back(name, Printer(true).Bracketed("[", items, "]", 1));
}

void JsonObject::Add(std::string_view name, std::string_view text) {
  members_.emplace_back(name, JsonString(text));
}

void JsonObject::Add(std::string_view name, const std::vector<Texts>& list) {
  std::vector<std::string> items;
  for (const Texts& texts : list) {
    std::vector<std::string> members;
    for (const auto& [key, text] : texts)
      members.push_back(absl::StrCat(JsonString(key), ": ", JsonString(text)));
    items.push_back(Printer(true).Bracketed("{", members, "}", 2));
  }
  members_.emplace_back(name, Printer(true).Bracketed("[", items, "]", 1));
}

std::string JsonObject::Text() const {
  std::vector<std::string> members;
  for (const auto& [name, value] : members_)
    members.push_back(absl::StrCat(JsonString(name), ": ", value));
  return Printer(true).Bracketed("{", members, "}", 0) + "\n";
}

std::string InnerSchemaOf(const Descriptor& type) {
  if (type.full_name() == kTimestamp) return R"({"type": "string", "format": "date-time"})";
  std::vector<std::string> properties, required;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    properties.push_back(absl::StrCat(JsonString(field.name()), ": ", FieldSchema(field)));
    if (!field.has_presence()) required.push_back(JsonString(field.name()));
  }
  return absl::StrCat(R"({"type": "object", "properties": {)", absl::StrJoin(properties, ", "),
                      R"(}, "required": [)", absl::StrJoin(required, ", "),
                      R"(], "additionalProperties": false})");
}

std::string WholeSchema(std::string_view title, std::string_view inner) {
  return absl::StrCat(R"({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": )",
                      JsonString(title), ", ",
                      absl::string_view(inner.data() + 1, inner.size() - 1), "\n");
}

}  // namespace kiln::cli
