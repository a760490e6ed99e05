// Makes untrusted text safe for a terminal, a log or a message.
#ifndef KILN_PROTO_TEXT_PRINTABLE_H_
#define KILN_PROTO_TEXT_PRINTABLE_H_

#include <string>
#include <string_view>

namespace kiln {

// Returns `text` with every character escaped that a terminal interprets or a reader cannot see:
// control characters (C0, DEL, C1) and line breaks, characters that change the direction of writing
// or have no width, and bytes that are not UTF-8. They become \n, \t, \u{202E} or \x9B. Backslashes
// are unchanged.
std::string Printable(std::string_view text);

// The same for text of several lines: keeps line breaks and tabs.
std::string PrintableLines(std::string_view text);

// As Printable, for text between quotation marks: puts a backslash before quotation marks and
// backslashes.
std::string PrintableInQuotes(std::string_view text);

// Returns true if Printable would leave `text` unchanged.
bool IsPrintable(std::string_view text);

}  // namespace kiln

#endif  // KILN_PROTO_TEXT_PRINTABLE_H_
