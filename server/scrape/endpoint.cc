#include "server/scrape/endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "server/rpc/connections/credentials.h"

namespace kiln::scrape {

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Start(Options options) {
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(options)));
  const std::string& address = endpoint->options_.address;
  auto socket =
      rpc::TcpSocket::Listen(address, [endpoint = endpoint.get()](int file, relay::Peer peer) {
        endpoint->Take(file, std::move(peer.origin));
      });
  if (!socket.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", address, ": ", socket.status().message(),
                     "; if the port is in use, choose another with --metrics_listen, or \"none\""));
  }
  endpoint->socket_ = *std::move(socket);
  endpoint->thread_ = std::thread([endpoint = endpoint.get()] { endpoint->Serve(); });
  endpoint->socket_->Start();
  return endpoint;
}

Endpoint::Wake::Wake() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
Endpoint::Wake::~Wake() { close(file_); }
void Endpoint::Wake::Ring() const { eventfd_write(file_, 1); }

Endpoint::Endpoint(Options options)
    : options_(std::move(options)), wake_(std::make_shared<const Wake>()) {}

Endpoint::~Endpoint() {
  if (socket_) socket_->Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  wake_->Ring();
  if (thread_.joinable()) thread_.join();
  for (const Arrived& arrived : arrived_) close(arrived.file);
}

void Endpoint::Take(int file, std::string origin) {
  {
    absl::MutexLock lock(&mutex_);
    // The thread may be busy for long, so the limits also apply to connections that wait for it.
    const auto is_of_origin = [&](const Arrived& other) { return other.origin == origin; };
    auto dropped = arrived_.end();
    if (std::count_if(arrived_.begin(), arrived_.end(), is_of_origin) >=
        static_cast<std::ptrdiff_t>(kOfOriginMax)) {
      dropped = std::find_if(arrived_.begin(), arrived_.end(), is_of_origin);
    } else if (arrived_.size() >= kConnectionsMax) {
      dropped = arrived_.begin();
    }
    if (dropped != arrived_.end()) {
      close(dropped->file);
      arrived_.erase(dropped);
    }
    arrived_.push_back({file, std::move(origin)});
  }
  wake_->Ring();
}

bool Endpoint::Wait(std::vector<short>* ready) {
  std::vector<pollfd> files = {{wake_->file(), POLLIN, 0}};
  absl::Time first = absl::InfiniteFuture();
  for (const auto& connection : connections_) {
    files.push_back({connection->file(), connection->events(), 0});
    first = std::min(first, connection->deadline());
  }
  const absl::Duration patience = first - options_.steady_now();
  // Rounded up; otherwise it would return before the deadline, repeatedly.
  const int milliseconds =
      first == absl::InfiniteFuture()
          ? -1
          : static_cast<int>(std::max<int64_t>(absl::ToInt64Milliseconds(patience) + 1, 0));
  poll(files.data(), files.size(), milliseconds);
  ready->clear();
  for (size_t i = 1; i < files.size(); ++i) ready->push_back(files[i].revents);
  eventfd_t count;
  eventfd_read(wake_->file(), &count);
  absl::MutexLock lock(&mutex_);
  return !stopped_;
}

void Endpoint::DropOne(const std::function<bool(const Connection&)>& matches) {
  auto dropped = connections_.end();
  for (auto each = connections_.begin(); each != connections_.end(); ++each) {
    if (!matches(**each)) continue;
    if (dropped == connections_.end()) dropped = each;
    if ((*each)->has_request()) continue;
    dropped = each;
    break;
  }
  if (dropped != connections_.end()) connections_.erase(dropped);
}

void Endpoint::Admit(Arrived arrived) {
  const auto is_of_origin = [&](const Connection& other) {
    return other.origin() == arrived.origin;
  };
  const auto of_origin = std::count_if(connections_.begin(), connections_.end(),
                                       [&](const auto& other) { return is_of_origin(*other); });
  if (static_cast<size_t>(of_origin) >= kOfOriginMax) {
    DropOne(is_of_origin);
  } else if (connections_.size() >= kConnectionsMax) {
    DropOne([](const Connection&) { return true; });
  }
  connections_.push_back(std::make_unique<Connection>(
      arrived.file, std::move(arrived.origin), options_.tls ? options_.tls() : nullptr,
      options_.steady_now() + options_.request_patience));
}

void Endpoint::Serve() {
  std::vector<short> ready;
  while (Wait(&ready)) {
    // Existing connections are served before new ones may replace them.
    const absl::Time now = options_.steady_now();
    size_t index = 0;
    std::erase_if(connections_, [&](const auto& connection) {
      const bool is_ready = ready[index++] != 0;
      if ((is_ready || connection->has_come()) && !Advance(*connection, is_ready)) return true;
      return connection->deadline() <= now;
    });
    std::vector<Arrived> arrived;
    {
      absl::MutexLock lock(&mutex_);
      arrived.swap(arrived_);
    }
    for (Arrived& each : arrived) {
      Admit(std::move(each));
      // Its request may have arrived already.
      if (!Advance(*connections_.back(), true)) connections_.pop_back();
    }
  }
}

bool Endpoint::Advance(Connection& connection, bool was_ready) const {
  const Connection::Responder responder = {
      .respond = [this](const Request& request, const Reply& reply) { Respond(request, reply); },
      .on_sent = [wake = wake_] { wake->Ring(); }};
  return connection.Advance(responder, options_.steady_now() + options_.answer_patience, was_ready);
}

void Endpoint::Respond(const Request& request, const Reply& reply) const {
  const bool is_known =
      request.path == "/metrics" || request.path == "/healthz" || request.path == "/readyz";
  if (is_known) return reply.Send(RespondToSupervisor(request));
  if (options_.pages && options_.pages(request, reply)) return;
  reply.Send({.status = 404, .body = "not found: the pages are /metrics, /healthz and /readyz\n"});
}

Response Endpoint::RespondToSupervisor(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD")
    return {.status = 405, .body = "method not allowed: use GET\n"};
  if (request.path == "/healthz") return {.body = "alive\n"};
  if (request.path == "/readyz") {
    const std::string why_not = options_.why_not_ready();
    if (!why_not.empty()) return {.status = 503, .body = absl::StrCat(why_not, "\n")};
    return {.body = "ready\n"};
  }
  if (const auto status = rpc::CheckHost(request.host, options_.is_open()); !status.ok())
    return {.status = 403, .body = absl::StrCat(std::string(status.message()), "\n")};
  if (!options_.allow(request.password)) {
    return {.status = 401,
            .body = "/metrics requires the token of a viewer or an admin as the password\n",
            .asks_for_password = true};
  }
  return {.status = 200, .body = options_.text()};
}

}  // namespace kiln::scrape
