// Names and texts of clients, short and harmless enough for messages, lists and logs.
#ifndef KILN_COMPILER_IR_QUOTED_H_
#define KILN_COMPILER_IR_QUOTED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

// The longest prefix of at most `bytes` bytes that ends between two characters of UTF-8: the wire
// refuses halves of one, and with it the whole message. A view of `text`.
std::string_view Shortened(std::string_view text, size_t bytes);

// Escaped by PrintableInQuotes; cut after 80 bytes, which "..." shows.
std::string Shown(std::string_view text);

// The same in quotation marks.
std::string Quoted(std::string_view text);

}  // namespace kiln

#endif  // KILN_COMPILER_IR_QUOTED_H_
