#include "compiler/ir/quoted.h"

#include "compiler/ir/str_cat.h"
#include "proto/text/printable.h"

namespace kiln {
namespace {
constexpr size_t kLongest = 80;
}  // namespace

std::string_view Shortened(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  // In UTF-8, bytes of the form 10xxxxxx continue a character.
  while (bytes > 0 && (text[bytes] & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

std::string Shown(std::string_view text) {
  const std::string_view head = Shortened(text, kLongest);
  return StrCat(PrintableInQuotes(head), head.size() < text.size() ? "..." : "");
}

std::string Quoted(std::string_view text) { return StrCat("\"", Shown(text), "\""); }

}  // namespace kiln
