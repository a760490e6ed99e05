#include "server/scrape/endpoint.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/clock.h"
#include "tests/eventually.h"

namespace kiln::scrape {
namespace {

using kiln::testing::Eventually;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kRequest[] = "GET /metrics HTTP/1.1\r\nHost: box\r\n\r\n";

// A client's connection to a port of this machine.
class Scraper {
 public:
  // Connects from 127.0.0.`number`.
  explicit Scraper(int port, int number = 1)
      : file_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number - 1);
    EXPECT_EQ(bind(file_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  Scraper(Scraper&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  ~Scraper() {
    if (file_ >= 0) close(file_);
  }

  void Send(const std::string& text) const {
    EXPECT_EQ(send(file_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Returns all bytes up to the end of the connection.
  std::string Receive() const {
    std::string all;
    char piece[4096];
    for (ssize_t size; (size = recv(file_, piece, sizeof(piece), 0)) > 0;)
      all.append(piece, static_cast<size_t>(size));
    return all;
  }
  bool HasEnded() const {
    char byte;
    const ssize_t size = recv(file_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return size == 0 || (size < 0 && errno != EAGAIN);
  }

 private:
  int file_;
};

class EndpointTest : public ::testing::Test {
 protected:
  void Start(Allow allow = [](const auto&) { return true; }) {
    auto started = Endpoint::Start({.address = "127.0.0.1:0",
                                    .text = [] { return std::string("kiln_sessions 3\n"); },
                                    .allow = std::move(allow),
                                    .is_open = [this] { return is_open_.load(); },
                                    .why_not_ready = [this] { return why_not_ready_; },
                                    .pages = pages_,
                                    .steady_now = [this] { return absl::FromUnixSeconds(now_); }});
    ASSERT_TRUE(started.ok()) << started.status();
    endpoint_ = *std::move(started);
  }
  std::string Scrape(const std::string& request = kRequest, int number = 1) {
    const Scraper scraper(endpoint_->port(), number);
    scraper.Send(request);
    return scraper.Receive();
  }

  std::atomic<int64_t> now_{1'000};
  std::atomic<bool> is_open_{false};
  std::string why_not_ready_;  // set before Start, like the next
  Pages pages_;
  std::unique_ptr<Endpoint> endpoint_;
};

TEST_F(EndpointTest, ServesMetricsAlone) {
  Start();
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Scrape(), HasSubstr("\r\n\r\nkiln_sessions 3\n"));
  EXPECT_THAT(Scrape("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Scrape("POST /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Scrape("no request\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(EndpointTest, SupervisorsAskWithoutAPasswordWhetherItIsAliveAndReady) {
  Start([](const auto&) { return false; });
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(Scrape("GET /healthz HTTP/1.1\r\n\r\n"), HasSubstr("\r\n\r\nalive\n"));
  EXPECT_THAT(Scrape("GET /readyz HTTP/1.1\r\n\r\n"), HasSubstr("\r\n\r\nready\n"));
  EXPECT_THAT(Scrape("POST /readyz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
}

TEST_F(EndpointTest, ADaemonThatTakesNoWorkIsAliveButNotReady) {
  why_not_ready_ = "draining";
  Start();
  EXPECT_THAT(Scrape("GET /healthz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  const std::string answer = Scrape("GET /readyz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\ndraining\n"));
}

TEST_F(EndpointTest, APortThatIsTakenIsNamed) {
  Start();
  const auto second = Endpoint::Start({.address = absl::StrCat("127.0.0.1:", endpoint_->port()),
                                       .text = {},
                                       .allow = {},
                                       .is_open = {},
                                       .why_not_ready = {},
                                       .steady_now = SteadyNow});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--metrics_listen"));
}

TEST_F(EndpointTest, TakesAPasswordOnceItIsProtected) {
  std::atomic<bool> is_open{true};
  Start([&](const auto& password) { return is_open || password == "token"; });
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 "));
  is_open = false;
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 401 "));
  const auto with = [&](const std::string& password) {
    return Scrape(absl::StrCat("GET /metrics HTTP/1.1\r\nAuthorization: Basic ",
                               absl::Base64Escape("any:" + password), "\r\n\r\n"));
  };
  EXPECT_THAT(with("other"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(with("token"), StartsWith("HTTP/1.1 200 "));
}

// A page of another site may have given its own name the address 127.0.0.1.
TEST_F(EndpointTest, WithoutUsersTheMetricsAreForThisMachinesNames) {
  is_open_ = true;
  Start();
  const auto scrape_as = [&](const std::string& host) {
    return Scrape(absl::StrCat("GET /metrics HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
  };
  for (const char* host : {"localhost:7434", "127.0.0.1:7434", "127.0.0.1", "[::1]:7434"})
    EXPECT_THAT(scrape_as(host), StartsWith("HTTP/1.1 200 ")) << host;
  for (const char* host :
       {"example.org", "127.0.0.1.example.org:7434", "localhost.example.org", ""}) {
    const std::string refused = scrape_as(host);
    EXPECT_THAT(refused, StartsWith("HTTP/1.1 403 ")) << host;
    EXPECT_THAT(refused, HasSubstr("answers only calls to localhost or 127.0.0.1"));
  }
  // Supervisors may know any name, and learn nothing.
  EXPECT_THAT(Scrape("GET /healthz HTTP/1.1\r\nHost: example.org\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  is_open_ = false;
  EXPECT_THAT(scrape_as("example.org"), StartsWith("HTTP/1.1 200 "));
}

// The clock does not advance, so no slow client is closed because its time is over.
TEST_F(EndpointTest, SlowClientsHoldUpNoScrape) {
  Start();
  std::vector<Scraper> slow;
  for (int i = 0; i < 300; ++i) {
    slow.emplace_back(endpoint_->port());
    if (i % 2 == 0) slow.back().Send("GET /metr");
  }
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Scrape(kRequest, 2), StartsWith("HTTP/1.1 200 OK\r\n"));
  // An address has no more connections than allowed, and these are the most recent ones.
  const auto ended = [&] {
    size_t count = 0;
    for (const Scraper& scraper : slow) count += scraper.HasEnded() ? 1 : 0;
    return count;
  };
  EXPECT_TRUE(Eventually([&] { return ended() >= slow.size() - Endpoint::kOfOriginMax; }));
  EXPECT_FALSE(slow.back().HasEnded());
}

TEST_F(EndpointTest, ClientsOfManyAddressesAreBoundedTogether) {
  Start();
  std::vector<Scraper> slow;
  for (size_t i = 0; i < Endpoint::kConnectionsMax + 20; ++i)
    slow.emplace_back(endpoint_->port(), 2 + static_cast<int>(i % 200));
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(Eventually([&] { return slow[19].HasEnded(); }));
  EXPECT_FALSE(slow.back().HasEnded());
}

TEST_F(EndpointTest, ARequestHasItsTime) {
  Start();
  const Scraper before(endpoint_->port());
  before.Send("GET /metr");
  // The server has seen it.
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  now_ += 1;
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_FALSE(before.HasEnded());
  now_ += 1;
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(before.Receive(), "");
}

TEST_F(EndpointTest, AnAnswerThatNobodyTakesHasItsTime) {
  auto started = Endpoint::Start({.address = "127.0.0.1:0",
                                  .text = [] { return std::string(64 << 20, 'x'); },
                                  .allow = [](const auto&) { return true; },
                                  .is_open = [] { return false; },
                                  .steady_now = [this] { return absl::FromUnixSeconds(now_); }});
  ASSERT_TRUE(started.ok()) << started.status();
  endpoint_ = *std::move(started);
  const Scraper slow(endpoint_->port());
  slow.Send(kRequest);
  // It is being answered.
  EXPECT_TRUE(Eventually([&] { return Scrape("GET / HTTP/1.1\r\n\r\n") != ""; }));
  now_ += 31;
  EXPECT_THAT(Scrape("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_LT(slow.Receive().size(), size_t{64} << 20);
}

// Pages that answer when the test lets them.
class LatePages {
 public:
  Pages Get() {
    return [this](const Request& request, const Reply& reply) {
      if (request.path != "/late") return false;
      absl::MutexLock lock(&mutex_);
      waiting_.push_back(reply);
      return true;
    };
  }
  // Waits for the next request.
  Reply Next() {
    EXPECT_TRUE(Eventually([&] {
      absl::MutexLock lock(&mutex_);
      return !waiting_.empty();
    }));
    absl::MutexLock lock(&mutex_);
    Reply next = waiting_.front();
    waiting_.erase(waiting_.begin());
    return next;
  }

 private:
  absl::Mutex mutex_;
  std::vector<Reply> waiting_ ABSL_GUARDED_BY(mutex_);
};

constexpr char kLateRequest[] = "GET /late HTTP/1.1\r\n\r\n";

TEST_F(EndpointTest, AnAnswerMayComeLaterAndHoldsUpNoScrape) {
  LatePages pages;
  pages_ = pages.Get();
  Start();
  const Scraper late(endpoint_->port());
  late.Send(kLateRequest);
  const Reply reply = pages.Next();
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_FALSE(late.HasEnded());
  reply.Send({.status = 404, .body = "at last"});
  EXPECT_THAT(late.Receive(), HasSubstr("\r\n\r\nat last"));
  EXPECT_THAT(Scrape("GET /other HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(EndpointTest, WhatAnAnswerHoldsIsFreedWithIt) {
  LatePages pages;
  pages_ = pages.Get();
  Start();
  const Scraper late(endpoint_->port());
  late.Send(kLateRequest);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  pages.Next().Send({.body = "x", .held = std::move(held)});
  EXPECT_THAT(late.Receive(), HasSubstr("\r\n\r\nx"));
  EXPECT_TRUE(Eventually([&] { return watched.expired(); }));
}

TEST_F(EndpointTest, AnAnswerForAClientThatHasGoneIsNotWanted) {
  LatePages pages;
  pages_ = pages.Get();
  Start();
  std::optional<Scraper> late(endpoint_->port());
  late->Send(kLateRequest);
  const Reply reply = pages.Next();
  EXPECT_TRUE(reply.is_wanted());
  late.reset();
  EXPECT_TRUE(Eventually([&] { return !reply.is_wanted(); }));
  reply.Send({.body = std::string(100, 'x')});
  EXPECT_FALSE(reply.has_come());
}

TEST_F(EndpointTest, AnAnswerThatNeverComesHasItsTime) {
  LatePages pages;
  pages_ = pages.Get();
  Start();
  const Scraper late(endpoint_->port());
  late.Send(kLateRequest);
  const Reply reply = pages.Next();
  now_ += 31;
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(late.Receive(), "");
  EXPECT_FALSE(reply.is_wanted());
}

// The thread that makes it may need longer than the daemon lives.
TEST_F(EndpointTest, AnAnswerMayComeAfterTheEnd) {
  LatePages pages;
  pages_ = pages.Get();
  Start();
  const Scraper late(endpoint_->port());
  late.Send(kLateRequest);
  const Reply reply = pages.Next();
  endpoint_.reset();
  EXPECT_FALSE(reply.is_wanted());
  reply.Send({.body = "too late"});
  EXPECT_EQ(late.Receive(), "");
}

}  // namespace
}  // namespace kiln::scrape
