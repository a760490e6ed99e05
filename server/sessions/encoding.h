// Encodes numbers and strings as bytes and decodes them. Numbers use LEB128 (7 bits per byte);
// strings follow their sizes.
#ifndef KILN_SERVER_SESSIONS_ENCODING_H_
#define KILN_SERVER_SESSIONS_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/buffers/value.h"

namespace kiln::sessions {

class Encoder {
 public:
  void Number(uint64_t number);
  void Signed(int64_t number);
  void Real(double number);
  void Text(absl::string_view text);
  // Sequences follow their counts.
  void Numbers(absl::Span<const uint64_t> numbers);
  void Texts(absl::Span<const std::string> texts);
  // In nanoseconds.
  void Duration(absl::Duration duration) { Signed(absl::ToInt64Nanoseconds(duration)); }
  void Type(const buffers::TensorType& type);
  // Includes the payloads.
  void Status(const absl::Status& status);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Decodes untrusted bytes. After the first decoding error, all results are 0 or empty.
class Decoder {
 public:
  // Requires: `bytes` outlive the decoder and the strings that it returns.
  explicit Decoder(absl::string_view bytes) : rest_(bytes) {}

  uint64_t Number();
  int64_t Signed();
  double Real();
  absl::string_view Text();
  std::vector<uint64_t> Numbers();
  std::vector<std::string> Texts();
  absl::Duration Duration() { return absl::Nanoseconds(Signed()); }
  // The shape is not checked.
  buffers::TensorType Type();
  absl::Status Status();
  // Returns all remaining bytes.
  absl::string_view Rest() { return std::exchange(rest_, {}); }
  // Returns the count of items that follow. Each takes at least 1 byte, so a count above the number
  // of remaining bytes is an error.
  size_t Count();
  // Returns a number below `size`. A larger one is an error, for which it returns 0.
  size_t Below(size_t size);
  // Returns a sequence of such numbers.
  std::vector<size_t> AllBelow(size_t size);
  void Fail() { ok_ = false, rest_ = {}; }

  bool ok() const { return ok_; }
  // True if all bytes have been read without an error.
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ENCODING_H_
