#include "server/errors/shortened.h"

namespace kiln::errors {

absl::string_view Shortened(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (text[bytes] & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace kiln::errors
