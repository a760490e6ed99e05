#include "server/rpc/connections/accept_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "proto/check/check.h"

namespace kiln::rpc {
namespace {

// While the process is out of file descriptors, connections wait this long for the next attempt.
constexpr int kRetryMilliseconds = 50;

bool MayHaveOneLater(int error) {
  return error == EAGAIN || error == EINTR || error == ECONNABORTED;
}

}  // namespace

AcceptLoop::AcceptLoop(std::vector<int> listeners, Take take)
    : listeners_(std::move(listeners)),
      take_(std::move(take)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  KILN_CHECK(take_ != nullptr);
}

void AcceptLoop::Start() {
  KILN_CHECK(!thread_.joinable() && !stopped_);
  thread_ = std::thread([this] { AcceptAll(); });
}

void AcceptLoop::Stop() {
  if (std::exchange(stopped_, true)) return;
  eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  for (const int listener : listeners_) close(listener);
  close(wake_);
}

void AcceptLoop::AcceptAll() {
  std::vector<pollfd> files = {{wake_, POLLIN, 0}};
  for (const int listener : listeners_) files.push_back({listener, POLLIN, 0});
  bool exhausted = false;
  while (true) {
    // Without a free descriptor for accept4, poll(2) would return at once, repeatedly.
    poll(files.data(), exhausted ? 1 : files.size(), exhausted ? kRetryMilliseconds : -1);
    if (files[0].revents != 0) return;
    exhausted = false;
    for (const int listener : listeners_) {
      const int file = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (file >= 0) {
        take_(listener, file);
      } else if (!MayHaveOneLater(errno)) {
        exhausted = true;
      }
    }
  }
}

}  // namespace kiln::rpc
