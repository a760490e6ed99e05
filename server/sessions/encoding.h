// The encoding of sessions' files (proto/coding), and of statuses, types and sequences in it.
#ifndef KILN_SERVER_SESSIONS_ENCODING_H_
#define KILN_SERVER_SESSIONS_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/coding/coding.h"
#include "server/buffers/value.h"

namespace kiln::sessions {

class Encoder : public ByteWriter {
 public:
  void Text(absl::string_view text) { ByteWriter::Text({text.data(), text.size()}); }
  // Sequences follow their counts.
  void Numbers(absl::Span<const uint64_t> numbers);
  void Texts(absl::Span<const std::string> texts);
  // In nanoseconds.
  void Duration(absl::Duration duration) { Signed(absl::ToInt64Nanoseconds(duration)); }
  void Type(const buffers::TensorType& type);
  // Includes the payloads.
  void Status(const absl::Status& status);
};

class Decoder : public ByteReader {
 public:
  // Requires: `bytes` outlive the decoder and the strings that it returns.
  explicit Decoder(absl::string_view bytes) : ByteReader({bytes.data(), bytes.size()}) {}

  std::vector<uint64_t> Numbers();
  std::vector<std::string> Texts();
  absl::Duration Duration() { return absl::Nanoseconds(Signed()); }
  // The shape is not checked.
  buffers::TensorType Type();
  absl::Status Status();
  // Returns a sequence of numbers below `size`. A larger one is an error.
  std::vector<size_t> AllBelow(size_t size);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ENCODING_H_
