// Shortens and escapes names and texts of clients for messages, lists and logs.
#ifndef KILN_COMPILER_IR_QUOTED_H_
#define KILN_COMPILER_IR_QUOTED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

// Returns the longest prefix of at most `bytes` bytes that ends between two UTF-8 characters: the
// wire refuses a message that contains a partial character. The result is a view of `text`.
std::string_view Shortened(std::string_view text, size_t bytes);

// Returns `text` escaped by PrintableInQuotes, cut after 80 bytes; "..." marks the cut.
std::string Shown(std::string_view text);

// Returns Shown(text) in quotation marks.
std::string Quoted(std::string_view text);

}  // namespace kiln

#endif  // KILN_COMPILER_IR_QUOTED_H_
