// A buffer for bytes between two ends.
#ifndef KILN_SERVER_RELAY_BUFFER_H_
#define KILN_SERVER_RELAY_BUFFER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/check/check.h"

namespace kiln::relay {

// A queue of bytes. An empty one uses almost no memory, so that idle connections are cheap.
class Buffer {
 public:
  absl::string_view bytes() const { return absl::string_view(text_).substr(begin_); }
  size_t size() const { return text_.size() - begin_; }
  bool empty() const { return size() == 0; }

  void Append(absl::string_view more) { text_.append(more.data(), more.size()); }
  // Requires: count <= size().
  void Consume(size_t count) {
    KILN_CHECK_LE(count, size());
    begin_ += count;
    if (begin_ < text_.size()) {
      // Amortized: moving the rest costs no more than appending the consumed bytes did.
      if (begin_ < size()) return;
      text_.erase(0, begin_);
    } else if (text_.capacity() > kIdleCapacity) {
      std::string().swap(text_);
    } else {
      text_.clear();
    }
    begin_ = 0;
  }
  void Clear() { Consume(size()); }

 private:
  static constexpr size_t kIdleCapacity = 4 << 10;

  std::string text_;
  size_t begin_ = 0;  // the first byte not consumed
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_BUFFER_H_
