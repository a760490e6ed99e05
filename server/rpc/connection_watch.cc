#include "server/rpc/connection_watch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"
#include "server/rpc/connection_statistics.h"
#include "server/rpc/received_bytes.h"

namespace kiln::rpc {
namespace {

// How many times the processor time of a look the thread waits before the next.
constexpr int kWaitsForLook = 20;
// What a connection brings without being asked for its messages.
constexpr int64_t kManyBytes = 4 << 20;
// From a call's acceptance until its one message is complete, over a slow link.
constexpr absl::Duration kLongestRequest = absl::Minutes(10);
constexpr size_t kMostAccepted = 1024;
// Between two looks at how many calls a connection has, and for how long after its last byte they
// go on; with several calls they do always.
constexpr absl::Duration kCallsInterval = absl::Seconds(1);
constexpr absl::Duration kCallsSettled = absl::Seconds(10);

// Of the processor, that this thread has had: under a flood it waits for its turn.
absl::Duration ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

uint64_t Cookie(int file) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return getsockopt(file, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

// As gRPC writes it: an IPv4 address that comes by an IPv6 socket is one.
std::string AddressOf(int file) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(file, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text));
    return absl::StrCat(text, ":", ntohs(four.sin_port));
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, sizeof(text));
    return absl::StrCat(text, ":", ntohs(six.sin6_port));
  }
  inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text));
  return absl::StrCat("[", text, "]:", ntohs(six.sin6_port));
}

// gRPC makes one for each call, once the call is accepted, and takes null for one that has nothing
// to do.
class CallCounter : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallCounter(ConnectionWatch& watch) : watch_(watch) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    watch_.CallBegun(*info->server_context());
    return nullptr;
  }

 private:
  ConnectionWatch& watch_;
};

}  // namespace

struct ConnectionWatch::Connection {
  explicit Connection(int file) : file(file), cookie(Cookie(file)), address(AddressOf(file)) {}

  const int file;         // may be another's by now
  const uint64_t cookie;  // the system's, so that this shows
  const std::string address;
  // Of the watch's mutex.
  bool accepted = false;  // a call has begun
  std::string user;       // whose that was; empty: not known

  // The rest is for the thread.

  int64_t unproven_bytes() const { return bytes - bytes_then; }
  // False if it has ended.
  bool CountBytes();
  // `numbers`: by address; needed until its own is known.
  void CountMessages(const std::optional<std::map<std::string, int64_t>>& numbers,
                     bool is_accepted);
  // Whether its calls may not be what they were when they were counted. What has come may wait for
  // gRPC to read it.
  bool MayHaveOtherCalls(absl::Time now) {
    if (std::exchange(bytes_seen, bytes) != bytes) changed = now;
    return (open_calls > 1 || now - changed < kCallsSettled) && now - counted >= kCallsInterval;
  }

  int64_t bytes = 0;              // that came
  int64_t bytes_then = 0;         // when a message was last complete
  std::optional<int64_t> number;  // connection_statistics.h
  int64_t messages = 0;
  int64_t open_calls = 0;
  absl::Time counted = absl::InfinitePast();  // its messages and calls
  int64_t bytes_seen = 0;
  absl::Time changed = absl::InfinitePast();  // its bytes
};

bool ConnectionWatch::Connection::CountBytes() {
  const auto received = ReceivedBytes(file);
  bytes = received.value_or(bytes);
  return received.has_value();
}

void ConnectionWatch::Connection::CountMessages(
    const std::optional<std::map<std::string, int64_t>>& numbers, bool is_accepted) {
  if (!number && numbers) {
    if (const auto found = numbers->find(address); found != numbers->end()) number = found->second;
  }
  const auto statistics = number ? ReadConnectionStatistics(*number) : std::nullopt;
  if (!statistics) return;
  open_calls = statistics->open_calls;
  if (!is_accepted) return;  // proves nothing
  if (std::exchange(messages, statistics->messages) != statistics->messages) bytes_then = bytes;
}

ConnectionWatch::ConnectionWatch(Options options) : options_(std::move(options)) {
  thread_ = std::thread([this] { Run(); });
}

ConnectionWatch::~ConnectionWatch() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void ConnectionWatch::Add(int file) {
  const auto connection = std::make_shared<Connection>(file);
  absl::MutexLock lock(&mutex_);
  // The system gives the number away again as soon as gRPC has closed a connection.
  if (const auto old = connections_.find(file); old != connections_.end()) {
    const ConnectionPointer ended = old->second;
    Remove(ended);
  }
  connections_.emplace(file, connection);
  addresses_.emplace(connection->address, connection);
}

void ConnectionWatch::CallAccepted() {
  const absl::Time now = options_.now();
  absl::MutexLock lock(&mutex_);
  if (accepted_.size() == kMostAccepted) accepted_.pop_front();
  accepted_.push_back(now);
}

void ConnectionWatch::CallBegun(const grpc::ServerContextBase& call) {
  const std::string address = AddressOfPeer(call.peer());
  std::vector<ConnectionPointer> first_of;
  {
    absl::MutexLock lock(&mutex_);
    const auto [first, end] = addresses_.equal_range(address);
    for (auto found = first; found != end; ++found) {
      if (std::exchange(found->second->accepted, true)) continue;
      first_of.push_back(found->second);
      if (!accepted_.empty()) accepted_.pop_front();
    }
  }
  if (first_of.empty()) return;
  const std::string user = options_.user_of(call);
  absl::MutexLock lock(&mutex_);
  for (const ConnectionPointer& each : first_of) each->user = user;
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
ConnectionWatch::MakeInterceptorFactory() {
  return std::make_unique<CallCounter>(*this);
}

void ConnectionWatch::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto something = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !connections_.empty();
      };
      mutex_.Await(absl::Condition(&something));
      if (stopping_) return;
    }
    const absl::Duration begin = ThreadTime();
    LookAtAll();
    const absl::Duration took = ThreadTime() - begin;
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_),
                            std::max(options_.interval, kWaitsForLook * took));
  }
}

void ConnectionWatch::LookAtAll() {
  std::vector<ConnectionPointer> all;
  {
    absl::MutexLock lock(&mutex_);
    all.reserve(connections_.size());
    for (const auto& [file, connection] : connections_) all.push_back(connection);
  }
  const auto ended = std::partition(
      all.begin(), all.end(), [](const ConnectionPointer& each) { return each->CountBytes(); });
  std::for_each(ended, all.end(), [this](const ConnectionPointer& each) { Forget(each); });
  all.erase(ended, all.end());
  // After the bytes, so that who was accepted meanwhile is held to no stranger's bound; and before
  // the connections whose calls have begun, which count no more here.
  const size_t more_accepted = CountAccepted();
  const std::vector<Traffic> traffic = TrafficOf(all);
  for (const size_t index : BeyondBounds(options_.bounds, traffic, more_accepted))
    End(all[index], traffic[index].accepted ? "they make no message of a call"
                                            : "no call that it brought was accepted");
  for (const size_t index : BeyondCalls(options_.bounds, traffic))
    End(all[index], "its user has too many calls at once");
}

size_t ConnectionWatch::CountAccepted() {
  const absl::Time now = options_.now();
  absl::MutexLock lock(&mutex_);
  while (!accepted_.empty() && now - accepted_.front() > kLongestRequest) accepted_.pop_front();
  return accepted_.size();
}

std::vector<Traffic> ConnectionWatch::TrafficOf(const std::vector<ConnectionPointer>& all) {
  std::vector<Traffic> traffic;
  traffic.reserve(all.size());
  {
    absl::MutexLock lock(&mutex_);
    for (const ConnectionPointer& each : all)
      traffic.push_back({.accepted = each->accepted, .user = each->user});
  }
  const absl::Time now = options_.now();
  std::optional<std::map<std::string, int64_t>> numbers;  // of all, when they are first asked for
  for (size_t i = 0; i < all.size(); ++i) {
    Connection& connection = *all[i];
    const bool has_brought_much = traffic[i].accepted && connection.unproven_bytes() >= kManyBytes;
    if (connection.MayHaveOtherCalls(now) || has_brought_much) {
      if (!connection.number && !numbers) numbers = ListConnections();
      connection.CountMessages(numbers, traffic[i].accepted);
      connection.counted = now;
    }
    traffic[i].bytes = connection.unproven_bytes();
    traffic[i].open_calls = connection.open_calls;
  }
  return traffic;
}

void ConnectionWatch::Forget(const ConnectionPointer& connection) {
  absl::MutexLock lock(&mutex_);
  Remove(connection);
}

void ConnectionWatch::Remove(const ConnectionPointer& connection) {
  // Another may have its file's number by now.
  if (const auto found = connections_.find(connection->file);
      found != connections_.end() && found->second == connection)
    connections_.erase(found);
  const auto [first, end] = addresses_.equal_range(connection->address);
  const auto found =
      std::find_if(first, end, [&](const auto& each) { return each.second == connection; });
  if (found != end) addresses_.erase(found);
}

void ConnectionWatch::End(const ConnectionPointer& connection, absl::string_view why) {
  Forget(connection);
  // gRPC owns the file. Should it close it, and the system give its number to another, between
  // these two, then some client connects once more.
  if (Cookie(connection->file) != connection->cookie) return;
  // So that it is reset when gRPC closes it: what the peer still sends is waited for by nobody.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(connection->file, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  if (shutdown(connection->file, SHUT_RDWR) != 0) return;
  if (const auto held_back = logged_.Admit(options_.now())) {
    log::Warning("connection_ended", {{"peer", connection->address},
                                      {"bytes", absl::StrCat(connection->unproven_bytes())},
                                      {"why", std::string(why)},
                                      {"unlogged", absl::StrCat(*held_back)}});
  }
}

}  // namespace kiln::rpc
