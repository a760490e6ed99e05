// absl::StrCat and absl::StrAppend that also take std::string_view. Distributions build Abseil with
// its own string_view type, to which std::string_view does not convert.
#ifndef KILN_COMPILER_IR_STR_CAT_H_
#define KILN_COMPILER_IR_STR_CAT_H_

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kiln {

// Returns the same characters as Abseil's type.
inline absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

namespace internal {
inline absl::string_view Piece(std::string_view text) { return View(text); }
inline absl::string_view Piece(absl::string_view text) { return text; }
inline absl::string_view Piece(const std::string& text) { return text; }
inline absl::string_view Piece(const char* text) { return text; }
template <typename T>
const T& Piece(const T& value) {
  return value;
}
}  // namespace internal

template <typename... Args>
std::string StrCat(const Args&... args) {
  return absl::StrCat(internal::Piece(args)...);
}
template <typename... Args>
void StrAppend(std::string* text, const Args&... args) {
  absl::StrAppend(text, internal::Piece(args)...);
}

}  // namespace kiln

#endif  // KILN_COMPILER_IR_STR_CAT_H_
