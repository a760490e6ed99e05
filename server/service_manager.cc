#include "server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace kiln {

ServiceManager::ServiceManager(const config::Environment& environment, int process_id) {
  socket_ = environment("NOTIFY_SOCKET").value_or("");
  const auto watched = environment("WATCHDOG_PID");
  int64_t microseconds = 0;
  // Without WATCHDOG_PID, it applies to any process with the variable.
  if ((!watched || *watched == absl::StrCat(process_id)) &&
      absl::SimpleAtoi(environment("WATCHDOG_USEC").value_or(""), &microseconds) &&
      microseconds > 0)
    watchdog_interval_ = absl::Microseconds(microseconds) / 2;
}

void ServiceManager::Tell(const std::string& state) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof(address.sun_path)) return;
  memcpy(address.sun_path, socket_.data(), socket_.size());
  // The name of an abstract socket begins with a zero byte (unix(7)), written as "@".
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const int sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (sender < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  // A missing listener is no reason to stop.
  [[maybe_unused]] const ssize_t sent =
      sendto(sender, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
             reinterpret_cast<const sockaddr*>(&address), size);
  close(sender);
}

}  // namespace kiln
