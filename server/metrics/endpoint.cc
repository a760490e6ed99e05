#include "server/metrics/endpoint.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace kiln::metrics {
namespace {

// Of civetweb, as a row of names and values. A connection holds a thread until its request is
// there, so that there are several, and none is held for long.
std::vector<std::string> Options(const std::string& address, absl::Duration request_patience) {
  return {"listening_ports",    address,
          "num_threads",        "8",
          "request_timeout_ms", absl::StrCat(absl::ToInt64Milliseconds(request_patience))};
}

// Connects to a port of this machine and hangs up.
void Knock(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Nobody there is as good as somebody.
  [[maybe_unused]] const int connected =
      connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  close(connection);
}

}  // namespace

absl::StatusOr<int> Endpoint::Listen(const std::string& address, absl::Duration request_patience) {
  try {
    // The library reports a port that it cannot bind by an exception.
    exposer_ = std::make_unique<prometheus::Exposer>(Options(address, request_patience));
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", address, ": ", error.what(),
                     "; is the port in use? --metrics_listen gives another, or none"));
  }
  const std::vector<int> ports = exposer_->GetListeningPorts();
  return ports.empty() ? absl::StatusOr<int>(absl::UnavailableError("no metrics port"))
                       : ports.front();
}

void Endpoint::Serve(const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables) {
  for (const auto& collectable : collectables) exposer_->RegisterCollectable(collectable);
}

void Endpoint::Protect(const std::function<bool(const std::string&)>& allow) {
  if (!exposer_ || is_protected_) return;
  is_protected_ = true;
  exposer_->RegisterAuth(
      [allow](const std::string&, const std::string& password) { return allow(password); },
      "kilnd: a viewer's or an admin's token as the password");
}

void Endpoint::Stop() {
  if (!exposer_) return;
  // Asked before the other thread takes the exposer apart.
  const std::vector<int> ports = exposer_->GetListeningPorts();
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    exposer_.reset();
    stopped = true;
  });
  // civetweb looks at its stop flag every two seconds or when somebody connects.
  while (!stopped && !ports.empty()) {
    Knock(ports.front());
    absl::SleepFor(absl::Milliseconds(5));
  }
  stopper.join();
}

}  // namespace kiln::metrics
