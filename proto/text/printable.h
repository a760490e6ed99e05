// What others wrote, as it may go to a terminal, a log or a message.
#ifndef KILN_PROTO_TEXT_PRINTABLE_H_
#define KILN_PROTO_TEXT_PRINTABLE_H_

#include <string>
#include <string_view>

namespace kiln {

// `text` with everything escaped that a terminal obeys or that a reader does not see: control
// characters (C0, DEL, C1) and line breaks, characters that change the direction of writing or have
// no width, and bytes that are no UTF-8. They become \n, \t, \u{202E} or \x9B; a backslash stays.
std::string Printable(std::string_view text);

// The same for text of several lines: line breaks and tabs stay.
std::string PrintableLines(std::string_view text);

// As Printable, to stand between quotation marks: those and backslashes get a backslash.
std::string PrintableInQuotes(std::string_view text);

// True if Printable would leave `text` as it is.
bool IsPrintable(std::string_view text);

}  // namespace kiln

#endif  // KILN_PROTO_TEXT_PRINTABLE_H_
