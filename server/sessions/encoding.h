// The encoding of sessions' files (proto/coding), and of statuses in it.
#ifndef KILN_SERVER_SESSIONS_ENCODING_H_
#define KILN_SERVER_SESSIONS_ENCODING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/coding/coding.h"

namespace kiln::sessions {

class Encoder : public ByteWriter {
 public:
  void Text(absl::string_view text) { ByteWriter::Text({text.data(), text.size()}); }
  // Includes the payloads.
  void Status(const absl::Status& status);
};

class Decoder : public ByteReader {
 public:
  // Requires: `bytes` outlive the decoder and the strings that it returns.
  explicit Decoder(absl::string_view bytes) : ByteReader({bytes.data(), bytes.size()}) {}

  absl::Status Status();
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ENCODING_H_
