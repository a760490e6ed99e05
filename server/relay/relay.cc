#include "server/relay/relay.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/check/check.h"
#include "server/relay/link.h"

namespace kiln::relay {
namespace {

constexpr int kEventsMax = 64;

uint32_t Events(bool read, bool write) { return (read ? EPOLLIN : 0u) | (write ? EPOLLOUT : 0u); }

// Unpredictable, because any account could bind an abstract name before the relay does.
std::string NewName() {
  std::array<uint64_t, 2> number{};
  // Cannot fail for less than 256 bytes (getrandom(2)).
  static_cast<void>(getrandom(number.data(), sizeof(number), 0));
  return absl::StrCat("kiln.", absl::Hex(number[0], absl::kZeroPad16),
                      absl::Hex(number[1], absl::kZeroPad16));
}

int MillisecondsUntil(absl::Time time, absl::Time now) {
  if (time == absl::InfiniteFuture()) return -1;
  if (time <= now) return 0;
  // Rounded up: if it woke too early, it would try again at once.
  const absl::Duration wait = std::min<absl::Duration>(time - now, absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))));
}

}  // namespace

// A thread with the links that it serves.
class Relay::Loop {
 public:
  // Returns the loop that takes over a link after the client's preface.
  using NextLoop = std::function<Loop&(uint64_t number)>;

  // `next`: null for a loop that keeps its links.
  Loop(const Options& options, ConnectionTable& table, NextLoop next)
      : options_(options),
        table_(table),
        next_(std::move(next)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    uint32_t events = 0;
    Watch(wake_, nullptr, events, EPOLLIN);
    thread_ = std::thread([this] { Run(); });
  }
  ~Loop() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    Wake();
    thread_.join();
    close(epoll_);
    close(wake_);
  }

  void Add(std::unique_ptr<Link> link) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      ++links_count_;
      added_.push_back(std::move(link));
    }
    Wake();
  }
  void Close(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      closing_.push_back(number);
    }
    Wake();
  }
  // Closes links whose clients have not sent their preface.
  void CloseUnknown() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      closes_unknown_ = true;
    }
    Wake();
  }
  // Returns false if links were left at the deadline.
  bool WaitUntilEmpty(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto is_empty = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return links_count_ == 0; };
    return mutex_.AwaitWithDeadline(absl::Condition(&is_empty), deadline);
  }

 private:
  // A link, and the events registered for it.
  struct Served {
    std::unique_ptr<Link> link;
    uint32_t client_events = 0;
    uint32_t server_events = 0;
    absl::Time time = absl::InfiniteFuture();  // as in times_
    bool is_over = false;
    bool is_leaving = false;
  };

  // Holds between two rounds. Used by the thread only.
  void Validate() const ABSL_LOCKS_EXCLUDED(mutex_) {
    size_t timed = 0, leaving = 0;
    for (const auto& [number, one] : served_) {
      KILN_CHECK_NE(one->link, nullptr) << "connection " << number;
      KILN_CHECK_EQ(one->link->number(), number);
      KILN_CHECK(!one->is_over) << "connection " << number;
      leaving += one->is_leaving ? 1 : 0;
      if (one->time == absl::InfiniteFuture()) continue;
      ++timed;
      KILN_CHECK(times_.contains({one->time, one.get()})) << "connection " << number;
    }
    KILN_CHECK_EQ(timed, times_.size());
    KILN_CHECK_EQ(leaving, leaving_.size());
    KILN_CHECK(over_.empty());
    absl::MutexLock lock(&mutex_);
    KILN_CHECK_EQ(links_count_, served_.size() + added_.size());
  }

  void Wake() { eventfd_write(wake_, 1); }
  // An event's pointer identifies the end of the link: the lowest bit is set for the server's.
  static void* ClientOf(Served* served) { return served; }
  static void* ServerOf(Served* served) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(served) | 1);
  }

  void Run() {
    // OpenSSL writes to sockets without MSG_NOSIGNAL.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    while (TakeOrders()) {
      Wait();
      DropEnded();
      KILN_VALIDATE(*this, served_.size());
    }
    served_.clear();
  }

  // Returns false when the relay stops.
  bool TakeOrders() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::unique_ptr<Link>> added;
    bool closes_unknown = false;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return false;
      added.swap(added_);
      closes_unknown = closes_unknown_;
      for (const uint64_t number : std::exchange(closing_, {})) CloseOne(number, added);
      // Under the lock: Abort asks this loop to close a connection before it asks the next loop.
      for (Served* const one : std::exchange(leaving_, {})) Leave(*one);
    }
    for (std::unique_ptr<Link>& link : added) {
      if (link != nullptr) Serve(std::move(link));
    }
    if (closes_unknown) {
      for (const auto& [number, served] : served_) {
        if (served->link->connection() == nullptr) End(*served);
      }
    }
    DropEnded();
    return true;
  }

  void CloseOne(uint64_t number, std::vector<std::unique_ptr<Link>>& added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (const auto found = served_.find(number); found != served_.end()) End(*found->second);
    for (std::unique_ptr<Link>& link : added) {
      if (link == nullptr || link->number() != number) continue;
      link.reset();
      table_.Remove(number);
      KILN_CHECK_GT(links_count_, 0);
      --links_count_;
    }
  }

  void Leave(Served& one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (one.is_over) return;
    KILN_CHECK(one.is_leaving);
    KILN_CHECK_GT(links_count_, 0);
    Forget(one);
    std::unique_ptr<Link> link = std::move(one.link);
    const uint64_t number = link->number();
    served_.erase(number);
    link->ClientIsReadable();
    link->ServerIsReadable();
    next_(number).Add(std::move(link));
    --links_count_;
  }

  void Serve(std::unique_ptr<Link> link) {
    auto served = std::make_unique<Served>();
    served->link = std::move(link);
    Served* const one = served.get();
    const uint64_t number = one->link->number();
    const bool is_new = served_.emplace(number, std::move(served)).second;
    KILN_CHECK(is_new) << "connection " << number;
    Advance(*one);
  }

  void Wait() {
    const absl::Time now = options_.now();
    const absl::Time next = times_.empty() ? absl::InfiniteFuture() : times_.begin()->first;
    std::array<epoll_event, kEventsMax> events;
    const int count = epoll_wait(epoll_, events.data(), kEventsMax, MillisecondsUntil(next, now));
    ready_.clear();
    for (int i = 0; i < count; ++i) Note(events[static_cast<size_t>(i)]);
    const absl::Time after = options_.now();
    for (auto each = times_.begin(); each != times_.end() && each->first <= after; ++each)
      ready_.insert(each->second);
    for (Served* const one : ready_) {
      if (!one->is_over) Advance(*one);
    }
  }

  void Note(const epoll_event& event) {
    if (event.data.ptr == nullptr) {
      eventfd_t orders = 0;
      eventfd_read(wake_, &orders);
      return;
    }
    const auto bits = reinterpret_cast<uintptr_t>(event.data.ptr);
    auto* const one = reinterpret_cast<Served*>(bits & ~uintptr_t{1});
    // Errors and closed ends are found by reading. Both directions are tried, since TLS may have to
    // write before it can read.
    (bits & 1) != 0 ? one->link->ServerIsReadable() : one->link->ClientIsReadable();
    ready_.insert(one);
  }

  void Advance(Served& one) {
    if (one.is_leaving) return;
    absl::Status status = one.link->Advance(options_.now());
    if (status.ok() && next_ != nullptr && one.link->connection() != nullptr) {
      one.is_leaving = true;
      leaving_.push_back(&one);
      return Wake();
    }
    if (status.ok() && !Tell(one))
      status =
          absl::UnavailableError(absl::StrCat("cannot watch another socket: ", strerror(errno)));
    if (status.ok()) return;
    if (!absl::IsOutOfRange(status)) options_.on_refused(one.link->peer(), status);
    End(one);
  }

  // Registers the events that the link waits for, if they have changed. Returns false if the system
  // refuses.
  bool Tell(Served& one) {
    const Interest& interest = one.link->interest();
    SetTime(one, interest.time);
    return Watch(one.link->client_file(), ClientOf(&one), one.client_events,
                 Events(interest.client_read, interest.client_write)) &&
           Watch(one.link->server_file(), ServerOf(&one), one.server_events,
                 Events(interest.server_read, interest.server_write));
  }
  // The peer's hang-up is always reported, so a socket without wanted events is not registered at
  // all.
  bool Watch(int file, void* what, uint32_t& now, uint32_t wanted) {
    if (now == wanted) return true;
    epoll_event event{};
    event.events = wanted;
    event.data.ptr = what;
    const int change = wanted == 0 ? EPOLL_CTL_DEL : now == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(epoll_, change, file, &event) != 0) return false;
    now = wanted;
    return true;
  }

  void SetTime(Served& one, absl::Time time) {
    if (one.time == time) return;
    if (one.time != absl::InfiniteFuture()) times_.erase({one.time, &one});
    if (time != absl::InfiniteFuture()) times_.emplace(time, &one);
    one.time = time;
  }

  void End(Served& one) {
    if (std::exchange(one.is_over, true)) return;
    Forget(one);
    over_.push_back(&one);
  }
  void Forget(Served& one) {
    SetTime(one, absl::InfiniteFuture());
    // Closing is not enough: a process forked a moment ago also has the sockets, and the system
    // would continue to report their events.
    Watch(one.link->client_file(), ClientOf(&one), one.client_events, 0);
    Watch(one.link->server_file(), ServerOf(&one), one.server_events, 0);
  }

  // Deferred to the end of a round, since its remaining events may name them.
  void DropEnded() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (over_.empty()) return;
    const size_t count = over_.size();
    for (Served* const one : std::exchange(over_, {})) {
      table_.Remove(one->link->number());
      served_.erase(one->link->number());
    }
    absl::MutexLock lock(&mutex_);
    KILN_CHECK_GE(links_count_, count);
    links_count_ -= count;
  }

  const Options& options_;
  ConnectionTable& table_;
  const NextLoop next_;
  const int epoll_;
  const int wake_;  // an eventfd

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Link>> added_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> closing_ ABSL_GUARDED_BY(mutex_);
  bool closes_unknown_ ABSL_GUARDED_BY(mutex_) = false;
  size_t links_count_ ABSL_GUARDED_BY(mutex_) = 0;  // added and not dropped

  // Used by the thread only.
  std::unordered_map<uint64_t, std::unique_ptr<Served>> served_;  // by the links' numbers
  std::set<std::pair<absl::Time, Served*>> times_;
  std::set<Served*> ready_;
  std::vector<Served*> over_;
  std::vector<Served*> leaving_;
  std::thread thread_;  // last
};

Relay::Relay(Options options)
    : options_(std::move(options)), table_(options_.limits), budgets_(options_.rates) {
  for (int i = 0; i < options_.threads; ++i)
    loops_.push_back(std::make_unique<Loop>(options_, table_, nullptr));
  entrance_ = std::make_unique<Loop>(options_, table_,
                                     [this](uint64_t number) -> Loop& { return LoopOf(number); });
}

Relay::~Relay() = default;

void Relay::Add(int client_file, Peer peer, TlsContext tls) {
  const uint64_t number = added_.fetch_add(1);
  auto hand_over = [this](const ConnectionPointer& connection, int server_file) {
    absl::MutexLock handing_over(&hand_over_mutex_);
    if (!hands_over_) {
      close(server_file);
      return;
    }
    options_.hand_over(connection, server_file);
  };
  const absl::Time now = options_.now();
  absl::MutexLock lock(&add_mutex_);
  auto activity = std::make_shared<ConnectionTable::Activity>(now);
  // Before the loop gets the link, which it may end at once.
  const std::vector<uint64_t> closed = table_.Add(number, peer.origin, activity);
  entrance_->Add(std::make_unique<Link>(Link::Options{.client_file = client_file,
                                                      .number = number,
                                                      .tls = std::move(tls),
                                                      .name = NewName(),
                                                      .peer = std::move(peer),
                                                      .budgets = &budgets_,
                                                      .activity = std::move(activity),
                                                      .handshake_until = now + options_.handshake,
                                                      .hand_over = std::move(hand_over)}));
  Close(closed);
}

void Relay::SetUser(Connection& connection, const std::string& user) {
  connection.MarkUsers();
  connection.budget().SetUser(user);
  absl::MutexLock lock(&add_mutex_);
  Close(table_.SetUser(connection.number(), user));
}

void Relay::Close(const std::vector<uint64_t>& numbers) {
  for (const uint64_t number : numbers) {
    entrance_->Close(number);  // this order is required, see TakeOrders
    LoopOf(number).Close(number);
  }
}

void Relay::StopHandingOver() {
  absl::MutexLock lock(&hand_over_mutex_);
  hands_over_ = false;
  entrance_->CloseUnknown();
}

void Relay::Drain(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  entrance_->WaitUntilEmpty(deadline);
  for (const auto& loop : loops_) loop->WaitUntilEmpty(deadline);
}

}  // namespace kiln::relay
