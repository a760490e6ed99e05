// Whole messages over a stream socket, each with its size before it, until a deadline.
#ifndef KILN_COMPILER_WORKERS_CHANNEL_H_
#define KILN_COMPILER_WORKERS_CHANNEL_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kiln::workers {

// Far above any kernel and any image.
inline constexpr size_t kMessageBytesMax = size_t{256} << 20;

using SteadyTime = std::chrono::steady_clock::time_point;
using SteadyClock = std::function<SteadyTime()>;

class Deadline {
 public:
  // Never.
  Deadline() = default;
  Deadline(SteadyClock now, std::chrono::nanoseconds left) : now_(std::move(now)) {
    until_ = now_() + left;
  }
  // Returns what is left, as poll(2) takes it: -1 for ever, 0 if it has passed. Returns a second at
  // most, because the clock need not be the system's.
  int Milliseconds() const;

 private:
  SteadyClock now_;
  SteadyTime until_;
};

enum class Transfer {
  kDone,
  kClosed,   // the other side has gone
  kLate,     // the deadline has passed
  kTooLong,  // more than kMessageBytesMax
};

// Neither raises SIGPIPE. After anything but kDone the socket is of no more use.
Transfer Send(int socket, std::string_view message, const Deadline& deadline);
// Takes memory only for what has come.
Transfer Receive(int socket, std::string* message, const Deadline& deadline);

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_CHANNEL_H_
