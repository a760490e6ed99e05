// Numbers and texts as bytes, and back: numbers take seven bits a byte (LEB128), texts stand behind
// their sizes.
#ifndef KILN_SERVER_SESSIONS_ENCODING_H_
#define KILN_SERVER_SESSIONS_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln::sessions {

class Encoder {
 public:
  void Number(uint64_t number);
  void Signed(int64_t number);
  void Real(double number);
  void Text(absl::string_view text);
  // With its payloads.
  void Status(const absl::Status& status);
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Bytes that may be anything. After the first that make no sense all that follows is 0 and empty.
class Decoder {
 public:
  // `bytes` outlive this and the texts.
  explicit Decoder(absl::string_view bytes) : rest_(bytes) {}

  uint64_t Number();
  int64_t Signed();
  double Real();
  absl::string_view Text();
  absl::Status Status();
  // All that is left.
  absl::string_view Rest() { return std::exchange(rest_, {}); }
  // A number of things that follow, each of a byte at least: never more than bytes are left.
  size_t Count();
  // A number below `size`; 0 if it is not.
  size_t Below(size_t size);
  void Fail() { ok_ = false, rest_ = {}; }

  bool ok() const { return ok_; }
  // Everything has been read, and made sense.
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ENCODING_H_
