// Names and texts of clients, short enough for lists, logs and messages.
#ifndef KILN_SERVER_ERRORS_SHORTENED_H_
#define KILN_SERVER_ERRORS_SHORTENED_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace kiln::errors {

// The longest prefix of at most `bytes` bytes that ends between two characters of UTF-8: the wire
// refuses halves of one, and with it the whole message. A view of `text`.
absl::string_view Shortened(absl::string_view text, size_t bytes);

}  // namespace kiln::errors

#endif  // KILN_SERVER_ERRORS_SHORTENED_H_
