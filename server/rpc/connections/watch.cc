#include "server/rpc/connections/watch.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/log/log.h"
#include "server/rpc/connections/statistics.h"

namespace kiln::rpc {
namespace {

// After each check the thread waits at least this many times the processor time that the check
// took.
constexpr int kWaitsForLook = 20;
// Bytes after which a connection's messages are counted.
constexpr int64_t kManyBytes = 4 << 20;
// The longest time from a call's acceptance until its one message is complete, over a slow link.
constexpr absl::Duration kLongestRequest = absl::Minutes(10);
constexpr size_t kAcceptedMax = 1024;
// The time between two counts of a connection's calls, and how long after its last byte they
// continue; with several calls they always continue.
constexpr absl::Duration kCallsInterval = absl::Seconds(1);
constexpr absl::Duration kCallsSettled = absl::Seconds(10);

// Processor time of this thread, which excludes waiting for the processor under a flood.
absl::Duration ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// gRPC creates an interceptor for each call once it is accepted; returning null means that there is
// nothing to do.
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

struct ConnectionWatch::Watched {
  explicit Watched(relay::ConnectionPointer connection) : connection(std::move(connection)) {}

  const relay::ConnectionPointer connection;
  // Guarded by the watch's mutex.
  bool accepted = false;  // a call has begun
  std::string user;       // of the first call; empty: unknown

  // Used by the thread only.

  int64_t unproven_bytes() const { return bytes - bytes_then; }
  // Returns false if the connection has ended.
  bool CountBytes() {
    bytes = connection->received_bytes();
    return connection->is_open();
  }
  // `numbers`: by name; needed until this connection's number is known.
  void CountMessages(const std::optional<std::map<std::string, int64_t>>& numbers,
                     bool is_accepted);
  // Whether its number of calls may have changed since it was counted. Received bytes may still
  // wait to be read by gRPC.
  bool MayHaveOtherCalls(absl::Time now) {
    if (std::exchange(bytes_seen, bytes) != bytes) changed = now;
    return (open_calls > 1 || now - changed < kCallsSettled) && now - counted >= kCallsInterval;
  }

  int64_t bytes = 0;              // received
  int64_t bytes_then = 0;         // at the last complete message
  std::optional<int64_t> number;  // statistics.h
  int64_t messages = 0;
  int64_t open_calls = 0;
  absl::Time counted = absl::InfinitePast();  // when messages and calls were last counted
  int64_t bytes_seen = 0;
  absl::Time changed = absl::InfinitePast();  // when bytes last changed
};

void ConnectionWatch::Watched::CountMessages(
    const std::optional<std::map<std::string, int64_t>>& numbers, bool is_accepted) {
  if (!number && numbers) {
    if (const auto found = numbers->find(connection->name()); found != numbers->end())
      number = found->second;
  }
  const auto statistics = number ? ReadConnectionStatistics(*number) : std::nullopt;
  if (!statistics) return;
  open_calls = statistics->open_calls;
  if (!is_accepted) return;  // messages prove nothing
  if (std::exchange(messages, statistics->messages) != statistics->messages) bytes_then = bytes;
}

ConnectionWatch::ConnectionWatch(Options options) : options_(std::move(options)) {
  KILN_CHECK(options_.now && options_.abort && options_.set_user && options_.user_of);
  thread_ = std::thread([this] { Run(); });
}

ConnectionWatch::~ConnectionWatch() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void ConnectionWatch::Add(relay::ConnectionPointer connection) {
  KILN_CHECK(connection != nullptr);
  absl::MutexLock lock(&mutex_);
  std::string name = connection->name();
  const bool is_new =
      connections_.emplace(std::move(name), std::make_shared<Watched>(std::move(connection)))
          .second;
  KILN_CHECK(is_new) << "two connections have one name";
  KILN_VALIDATE(*this, connections_.size());
}

void ConnectionWatch::Validate() const {
  for (const auto& [name, watched] : connections_) {
    KILN_CHECK(watched != nullptr && watched->connection != nullptr) << name;
    KILN_CHECK_EQ(watched->connection->name(), name);
    KILN_CHECK(watched->accepted || watched->user.empty()) << name;
  }
  KILN_CHECK_LE(accepted_.size(), kAcceptedMax);
}

void ConnectionWatch::CallAccepted() {
  const absl::Time now = options_.now();
  absl::MutexLock lock(&mutex_);
  if (accepted_.size() == kAcceptedMax) accepted_.pop_front();
  accepted_.push_back(now);
  KILN_VALIDATE(*this, connections_.size());
}

void ConnectionWatch::CallBegun(const grpc::ServerContextBase& call) {
  WatchedPointer watched;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = connections_.find(NameOfPeer(call.peer()));
    if (found == connections_.end()) return;
    watched = found->second;
    if (std::exchange(watched->accepted, true)) return;
    if (!accepted_.empty()) accepted_.pop_front();
  }
  const std::string user = options_.user_of(call);
  options_.set_user(*watched->connection, user);
  absl::MutexLock lock(&mutex_);
  watched->user = user;
  KILN_VALIDATE(*this, connections_.size());
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
  std::vector<WatchedPointer> all;
  {
    absl::MutexLock lock(&mutex_);
    all.reserve(connections_.size());
    for (const auto& [name, watched] : connections_) all.push_back(watched);
  }
  const auto ended = std::partition(all.begin(), all.end(),
                                    [](const WatchedPointer& each) { return each->CountBytes(); });
  std::for_each(ended, all.end(), [this](const WatchedPointer& each) { Forget(*each); });
  all.erase(ended, all.end());
  // After counting bytes, so that a connection accepted meanwhile is not held to a stranger's
  // limit; and before looking at begun calls, which then no longer count here.
  const size_t more_accepted = CountAccepted();
  const std::vector<Traffic> traffic = TrafficOf(all);
  KILN_CHECK_EQ(traffic.size(), all.size());
  for (const size_t index : BeyondBounds(options_.bounds, traffic, more_accepted))
    End(*all[index], traffic[index].accepted ? "its bytes do not complete a message of a call"
                                             : "none of its calls was accepted");
  for (const size_t index : BeyondCalls(options_.bounds, traffic))
    End(*all[index], "its user has too many calls at once");
}

size_t ConnectionWatch::CountAccepted() {
  const absl::Time now = options_.now();
  absl::MutexLock lock(&mutex_);
  while (!accepted_.empty() && now - accepted_.front() > kLongestRequest) accepted_.pop_front();
  return accepted_.size();
}

std::vector<Traffic> ConnectionWatch::TrafficOf(const std::vector<WatchedPointer>& all) {
  std::vector<Traffic> traffic;
  traffic.reserve(all.size());
  {
    absl::MutexLock lock(&mutex_);
    for (const WatchedPointer& each : all)
      traffic.push_back({.accepted = each->accepted, .user = each->user});
  }
  const absl::Time now = options_.now();
  std::optional<std::map<std::string, int64_t>> numbers;  // of all; listed when first needed
  for (size_t i = 0; i < all.size(); ++i) {
    Watched& watched = *all[i];
    const bool has_brought_much = traffic[i].accepted && watched.unproven_bytes() >= kManyBytes;
    if (watched.MayHaveOtherCalls(now) || has_brought_much) {
      if (!watched.number && !numbers) numbers = ListConnections();
      watched.CountMessages(numbers, traffic[i].accepted);
      watched.counted = now;
    }
    traffic[i].bytes = watched.unproven_bytes();
    traffic[i].open_calls = watched.open_calls;
  }
  return traffic;
}

void ConnectionWatch::Forget(const Watched& watched) {
  absl::MutexLock lock(&mutex_);
  connections_.erase(watched.connection->name());
  KILN_VALIDATE(*this, connections_.size());
}

void ConnectionWatch::End(const Watched& watched, absl::string_view why) {
  Forget(watched);
  options_.abort(*watched.connection);
  if (const auto held_back = logged_.Admit(options_.now())) {
    log::Warning("connection_ended", {{"peer", watched.connection->peer().address},
                                      {"bytes", absl::StrCat(watched.unproven_bytes())},
                                      {"why", std::string(why)},
                                      {"unlogged", absl::StrCat(*held_back)}});
  }
}

}  // namespace kiln::rpc
