// Tests of connections through a relay; the test acts as the server.
#include "server/relay/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/relay/frame_meter.h"
#include "server/relay/link.h"
#include "server/relay/testing/frames.h"
#include "tests/eventually.h"

namespace kiln::relay {
namespace {

using kiln::testing::Eventually;
using testing::FrameBytes;
using ::testing::HasSubstr;
using testing::kPreface;

// Closed in the destructor.
class Socket {
 public:
  explicit Socket(int file) : file_(file) {}
  ~Socket() { Close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int file() const { return file_; }
  void Close() {
    if (file_ >= 0) close(std::exchange(file_, -1));
  }
  // Writes all bytes.
  void Write(absl::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (written <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  // Reads until there are `count` bytes, or the other end is closed.
  std::string Read(size_t count) const {
    std::string bytes(count, '\0');
    size_t at = 0;
    while (at < count) {
      const ssize_t got = recv(file_, bytes.data() + at, count - at, 0);
      if (got <= 0) break;
      at += static_cast<size_t>(got);
    }
    bytes.resize(at);
    return bytes;
  }

 private:
  int file_;
};

class RelayTest : public ::testing::Test {
 protected:
  struct Arrival {
    ConnectionPointer connection;
    std::unique_ptr<Socket> server;
  };

  ~RelayTest() override { relay_.reset(); }

  std::unique_ptr<Relay> MakeRelay(BudgetRates rates = {}, ConnectionLimits limits = {}) {
    return std::make_unique<Relay>(
        Relay::Options{.threads = 2,
                       .handshake = absl::Hours(1),
                       .rates = rates,
                       .limits = limits,
                       .now = [this] { return absl::UnixEpoch() + Skipped(); },
                       .hand_over =
                           [this](const ConnectionPointer& connection, int file) {
                             // Reads in the test block.
                             fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
                             absl::MutexLock lock(&mutex_);
                             arrivals_.push_back({connection, std::make_unique<Socket>(file)});
                           },
                       .on_refused =
                           [this](const Peer& peer, const absl::Status& why) {
                             absl::MutexLock lock(&mutex_);
                             refusals_.push_back(absl::StrCat(peer.address, ": ", why.ToString()));
                           }});
  }
  std::unique_ptr<Socket> Connect(const std::string& origin = "here") {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    fcntl(pair[1], F_SETFL, O_NONBLOCK);
    relay_->Add(pair[1], {.address = "client", .origin = origin}, nullptr);
    return std::make_unique<Socket>(pair[0]);
  }
  // Returns the next connection that the server gets.
  Arrival Arrive() {
    absl::MutexLock lock(&mutex_);
    const auto is_there = [this]()
                              ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !arrivals_.empty(); };
    mutex_.Await(absl::Condition(&is_there));
    Arrival arrival = std::move(arrivals_.front());
    arrivals_.erase(arrivals_.begin());
    return arrival;
  }
  std::vector<std::string> refusals() {
    absl::MutexLock lock(&mutex_);
    return refusals_;
  }
  absl::Duration Skipped() {
    absl::MutexLock lock(&mutex_);
    return skipped_;
  }
  void Skip(absl::Duration duration) {
    absl::MutexLock lock(&mutex_);
    skipped_ += duration;
  }

  absl::Mutex mutex_;
  std::vector<Arrival> arrivals_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> refusals_ ABSL_GUARDED_BY(mutex_);
  absl::Duration skipped_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Relay> relay_ = MakeRelay();
};

TEST_F(RelayTest, BytesGoBothWaysAndTheServersEndHasTheConnectionsName) {
  const auto client = Connect();
  const std::string request = absl::StrCat(kPreface, FrameBytes(4, 0, 0));
  client->Write(request);
  const Arrival arrival = Arrive();
  EXPECT_EQ(arrival.server->Read(request.size()), request);
  arrival.server->Write("answer");
  EXPECT_EQ(client->Read(6), "answer");
  EXPECT_EQ(arrival.connection->received_bytes(), request.size());

  sockaddr_un address{};
  socklen_t size = sizeof(address);
  ASSERT_EQ(getpeername(arrival.server->file(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(std::string(address.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1),
            arrival.connection->name());
}

// Far more than the buffers hold, while at first neither end reads.
TEST_F(RelayTest, MuchGoesThroughInOrder) {
  const auto client = Connect();
  std::string sent(kPreface);
  for (int i = 0; i < 300; ++i) {
    std::string frame = FrameBytes(Frame::kData, 0, 65'536);
    std::fill(frame.begin() + 9, frame.end(), static_cast<char>(i));
    sent += frame;
  }
  std::thread writer([&] { client->Write(sent); });
  const Arrival arrival = Arrive();
  EXPECT_EQ(arrival.server->Read(sent.size()), sent);
  writer.join();
  std::thread answerer([&] { arrival.server->Write(sent); });
  EXPECT_EQ(client->Read(sent.size()), sent);
  answerer.join();
}

TEST_F(RelayTest, EachEndLearnsOfTheOthers) {
  const auto first = Connect();
  first->Write(kPreface);
  Arrival arrival = Arrive();
  first->Close();
  EXPECT_EQ(arrival.server->Read(kPreface.size() + 1), kPreface);
  EXPECT_TRUE(Eventually([&] { return !arrival.connection->is_open(); }));

  const auto second = Connect();
  second->Write(kPreface);
  arrival = Arrive();
  arrival.server->Write("last words");
  arrival.server->Close();
  EXPECT_EQ(second->Read(100), "last words");
}

TEST_F(RelayTest, AnAbortedConnectionEndsForBoth) {
  const auto client = Connect();
  client->Write(kPreface);
  const Arrival arrival = Arrive();
  relay_->Abort(*arrival.connection);
  EXPECT_EQ(client->Read(1), "");
  EXPECT_EQ(arrival.server->Read(kPreface.size() + 1), kPreface);
}

// The server does not learn of it.
TEST_F(RelayTest, WhoeverDoesNotSpeakHttp2IsRefused) {
  const auto client = Connect();
  client->Write("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client->Read(1), "");
  ASSERT_TRUE(Eventually([&] { return !refusals().empty(); }));
  EXPECT_THAT(refusals()[0],
              HasSubstr("client: INVALID_ARGUMENT: the client does not speak HTTP/2"));
}

TEST_F(RelayTest, WhoeverSaysNothingIsRefusedAfterATime) {
  const auto silent = Connect();
  const auto slow = Connect();
  slow->Write(kPreface.substr(0, 20));
  Skip(absl::Hours(2));
  // Any event makes the relay check its clock.
  slow->Write(kPreface.substr(20, 1));
  EXPECT_EQ(slow->Read(1), "");
}

TEST_F(RelayTest, NewConnectionsBeyondTheRateOfTheirOriginWait) {
  relay_ = MakeRelay({.greetings_of_origin = {.per_second = 1, .burst = 2}});
  std::vector<std::unique_ptr<Socket>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Connect());
    clients.back()->Write(kPreface);
  }
  const Arrival first = Arrive(), second = Arrive();
  // Other origins do not wait.
  const auto other = Connect("there");
  other->Write(kPreface);
  EXPECT_EQ(Arrive().connection->peer().origin, "there");
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(arrivals_.empty());
  }
  Skip(absl::Seconds(1));
  clients.push_back(Connect("there"));  // any event makes the relay check its clock
  EXPECT_EQ(Arrive().connection->peer().origin, "here");
}

TEST_F(RelayTest, HeadersWithoutEndCloseTheConnection) {
  const auto client = Connect();
  client->Write(absl::StrCat(kPreface, FrameBytes(Frame::kHeaders, 0, 16'000)));
  const Arrival arrival = Arrive();
  for (int i = 0; i < 5; ++i) client->Write(FrameBytes(Frame::kContinuation, 0, 16'000));
  EXPECT_EQ(client->Read(1), "");
  EXPECT_THAT(refusals()[0], HasSubstr("RESOURCE_EXHAUSTED: the headers of a call"));
}

constexpr Rate kPlenty{.per_second = 1e6, .burst = 1e6};

TEST_F(RelayTest, CallsBeyondTheBudgetWaitAndAreNotLost) {
  relay_ = MakeRelay({.calls = {.connection = {.per_second = 1, .burst = 3},
                                .user = kPlenty,
                                .origin = kPlenty,
                                .strangers = kPlenty}});
  const auto client = Connect();
  const std::string pair =
      absl::StrCat(FrameBytes(Frame::kHeaders, 5, 10), FrameBytes(Frame::kReset, 0, 4));
  // In one piece, so that the relay has all of it before time goes on: what it reads later is held
  // from then on.
  std::string sent(kPreface);
  for (int i = 0; i < 50; ++i) sent += pair;
  client->Write(sent);
  const Arrival arrival = Arrive();
  EXPECT_EQ(arrival.server->Read(kPreface.size() + 3 * pair.size()).size(),
            kPreface.size() + 3 * pair.size());
  // The client's data is in the relay by now, or follows; none of it has passed through.
  arrival.server->Write("answers go on");
  EXPECT_EQ(client->Read(13), "answers go on");
  char byte;
  EXPECT_EQ(recv(arrival.server->file(), &byte, 1, MSG_DONTWAIT), -1);
  Skip(absl::Seconds(1));
  client->Write(FrameBytes(Frame::kData, 0, 1));
  EXPECT_EQ(arrival.server->Read(pair.size()), pair);
  // The rest is held for too long.
  Skip(Link::kHeldMax);
  client->Write(FrameBytes(Frame::kData, 0, 1));
  EXPECT_EQ(client->Read(1), "");
  ASSERT_TRUE(Eventually([&] { return !refusals().empty(); }));
  EXPECT_THAT(refusals()[0], HasSubstr("starts calls or sends small frames faster than allowed"));
}

TEST_F(RelayTest, ConnectionsThatAreTooManyClose) {
  relay_ = MakeRelay({}, {.connections_max = 3, .user_max = 3, .strangers_max = 3});
  std::vector<std::unique_ptr<Socket>> clients;
  std::vector<Arrival> arrivals;
  const auto connect = [&] {
    clients.push_back(Connect());
    clients.back()->Write(kPreface);
    arrivals.push_back(Arrive());
  };
  for (int i = 0; i < 3; ++i) connect();
  relay_->SetUser(*arrivals[0].connection, "ann");
  // The older one of the two strangers is closed.
  connect();
  EXPECT_EQ(clients[1]->Read(1), "");
  for (const int i : {0, 2, 3}) {
    arrivals[static_cast<size_t>(i)].server->Write("x");
    EXPECT_EQ(clients[static_cast<size_t>(i)]->Read(1), "x");
  }
}

TEST_F(RelayTest, ItStopsHandingOverAndWaitsForLastAnswers) {
  const auto client = Connect();
  client->Write(kPreface);
  Arrival arrival = Arrive();
  relay_->StopHandingOver();
  const auto late = Connect();
  late->Write(kPreface);
  EXPECT_EQ(late->Read(1), "");
  arrival.server->Write("bye");
  arrival.server->Close();
  std::thread reader([&] {
    EXPECT_EQ(client->Read(100), "bye");
    client->Close();
    late->Close();
  });
  relay_->Drain(absl::Hours(1));
  reader.join();
}

}  // namespace
}  // namespace kiln::relay
