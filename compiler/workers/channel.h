// Sends and receives whole messages over a stream socket, each preceded by its size, until a
// deadline.
#ifndef KILN_COMPILER_WORKERS_CHANNEL_H_
#define KILN_COMPILER_WORKERS_CHANNEL_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kiln::workers {

// Far larger than any kernel or image.
inline constexpr size_t kMessageBytesMax = size_t{256} << 20;

using SteadyTime = std::chrono::steady_clock::time_point;
using SteadyClock = std::function<SteadyTime()>;

class Deadline {
 public:
  // Never passes.
  Deadline() = default;
  Deadline(SteadyClock now, std::chrono::nanoseconds left) : now_(std::move(now)) {
    until_ = now_() + left;
  }
  // Returns the time left in poll(2)'s form: -1 for no limit, 0 if the deadline has passed. Returns
  // a second at most, because the clock need not be the system's.
  int Milliseconds() const;

 private:
  SteadyClock now_;
  SteadyTime until_;
};

enum class Transfer {
  kDone,
  kClosed,   // the peer has closed the socket
  kLate,     // the deadline has passed
  kTooLong,  // more than kMessageBytesMax
};

// Neither raises SIGPIPE. After a result other than kDone the socket must not be used any more.
Transfer Send(int socket, std::string_view message, const Deadline& deadline);
// Allocates memory only for bytes that have arrived.
Transfer Receive(int socket, std::string* message, const Deadline& deadline);

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_CHANNEL_H_
