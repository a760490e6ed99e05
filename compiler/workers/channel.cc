#include "compiler/workers/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "proto/coding/coding.h"

namespace kiln::workers {
namespace {

// Step in which memory for an incoming message is allocated, before the bytes arrive.
constexpr size_t kPiece = size_t{1} << 20;

// Waits until the socket can be read or written, as `events` says.
Transfer Await(int socket, short events, const Deadline& deadline) {
  pollfd poll_socket{socket, events, 0};
  while (true) {
    const int ready = poll(&poll_socket, 1, deadline.Milliseconds());
    // A closed peer makes the socket ready too; the call that follows reports it.
    if (ready > 0) return Transfer::kDone;
    if (ready < 0 && errno != EINTR) return Transfer::kClosed;
    if (ready == 0 && deadline.Milliseconds() == 0) return Transfer::kLate;
  }
}

bool IsTransient(int error) { return error == EINTR || error == EAGAIN || error == EWOULDBLOCK; }

Transfer SendAll(int socket, const char* data, size_t size, const Deadline& deadline) {
  while (size > 0) {
    if (const Transfer ready = Await(socket, POLLOUT, deadline); ready != Transfer::kDone)
      return ready;
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !IsTransient(errno)) return Transfer::kClosed;
    if (sent < 0) continue;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return Transfer::kDone;
}

Transfer ReceiveAll(int socket, char* data, size_t size, const Deadline& deadline) {
  while (size > 0) {
    if (const Transfer ready = Await(socket, POLLIN, deadline); ready != Transfer::kDone)
      return ready;
    const ssize_t received = recv(socket, data, size, MSG_DONTWAIT);
    if (received == 0 || (received < 0 && !IsTransient(errno))) return Transfer::kClosed;
    if (received < 0) continue;
    data += received;
    size -= static_cast<size_t>(received);
  }
  return Transfer::kDone;
}

}  // namespace

int Deadline::Milliseconds() const {
  if (!now_) return -1;
  // Rounded up, so that poll(2) does not return just before it.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - now_());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1000));
}

Transfer Send(int socket, std::string_view message, const Deadline& deadline) {
  if (message.size() > kMessageBytesMax) return Transfer::kTooLong;
  ByteWriter out;
  out.Fixed64(message.size());
  const std::string size = out.Take();
  const Transfer sent = SendAll(socket, size.data(), size.size(), deadline);
  return sent == Transfer::kDone ? SendAll(socket, message.data(), message.size(), deadline) : sent;
}

Transfer Receive(int socket, std::string* message, const Deadline& deadline) {
  char head[8];
  Transfer received = ReceiveAll(socket, head, sizeof head, deadline);
  if (received != Transfer::kDone) return received;
  const uint64_t size = ByteReader({head, sizeof head}).Fixed64();
  if (size > kMessageBytesMax) return Transfer::kTooLong;
  message->clear();
  while (message->size() < size) {
    const size_t before = message->size();
    const size_t piece = std::min<size_t>(size - before, kPiece);
    message->resize(before + piece);
    received = ReceiveAll(socket, message->data() + before, piece, deadline);
    if (received != Transfer::kDone) return received;
  }
  return Transfer::kDone;
}

}  // namespace kiln::workers
