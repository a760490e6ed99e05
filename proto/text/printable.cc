#include "proto/text/printable.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_format.h"

namespace kiln {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Unicode's control characters, direction marks and characters without width.
constexpr Range kHidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},    {0x115f, 0x1160},
    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
    {0xfff9, 0xfffb}, {0xd800, 0xdfff}, {0xfffe, 0xffff}, {0xe0000, 0xe007f}};

bool IsHidden(char32_t character) {
  return std::any_of(std::begin(kHidden), std::end(kHidden), [=](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

struct Character {
  char32_t code = 0;
  size_t bytes = 0;  // 0: the text does not begin with a character
};

// The character at the beginning of the text. Overlong forms and surrogates are not characters.
Character First(std::string_view text) {
  constexpr char32_t kCodeMin[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((text[i] & 0xc0) != 0x80) return {};
    code = code << 6 | (text[i] & 0x3f);
  }
  const bool is_one =
      code >= kCodeMin[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return is_one ? Character{code, bytes} : Character{};
}

std::string Escaped(char32_t character) {
  if (character == '\n') return "\\n";
  if (character == '\t') return "\\t";
  if (character == '\r') return "\\r";
  return character < 0x100 ? absl::StrFormat("\\x%02X", static_cast<uint32_t>(character))
                           : absl::StrFormat("\\u{%X}", static_cast<uint32_t>(character));
}

// Keeps the characters in `as_is` unescaped and puts a backslash before those in `marked`.
std::string Escape(std::string_view text, std::string_view as_is, std::string_view marked = "") {
  std::string printable;
  while (!text.empty()) {
    const Character first = First(text);
    if (marked.find(text[0]) != std::string_view::npos) printable += '\\';
    if (first.bytes == 0) {
      printable += absl::StrFormat("\\x%02X", static_cast<unsigned char>(text[0]));
    } else if (IsHidden(first.code) && as_is.find(text[0]) == std::string_view::npos) {
      printable += Escaped(first.code);
    } else {
      printable += text.substr(0, first.bytes);
    }
    text.remove_prefix(std::max<size_t>(1, first.bytes));
  }
  return printable;
}

}  // namespace

std::string Printable(std::string_view text) { return Escape(text, ""); }
std::string PrintableLines(std::string_view text) { return Escape(text, "\n\t"); }
std::string PrintableInQuotes(std::string_view text) { return Escape(text, "", "\"\\"); }
bool IsPrintable(std::string_view text) { return Printable(text) == text; }

}  // namespace kiln
