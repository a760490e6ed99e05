#include "server/rpc/connections/waiting_room.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::rpc {
namespace {

using kiln::testing::Eventually;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// The preface and a SETTINGS frame of one setting.
const std::string& Beginning() {
  static const std::string bytes = kPreface + std::string(
                                                  "\0\0\6\4\0\0\0\0\0"
                                                  "\0\2\0\0\0\0",
                                                  15);
  return bytes;
}

class WaitingRoomTest : public ::testing::Test {
 protected:
  WaitingRoomTest() {
    room_ = std::make_unique<WaitingRoom>(WaitingRoom::Options{
        .of_account_max = 4,
        .now = [this] { return absl::FromUnixSeconds(now_); },
        .take =
            [this](int file, const relay::Peer& peer) {
              absl::MutexLock lock(&mutex_);
              taken_.push_back(peer.address);
              served_.push_back(file);
            },
        .on_refused =
            [this](const relay::Peer& peer, const absl::Status& why) {
              absl::MutexLock lock(&mutex_);
              refused_.push_back(peer.address + ": " + std::string(why.message()));
            }});
  }
  ~WaitingRoomTest() override {
    room_.reset();
    for (const int file : served_) close(file);
    for (const int file : clients_) close(file);
  }

  // Returns the number of a client's end.
  size_t Come(const std::string& account, const std::string& name) {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    clients_.push_back(pair[0]);
    room_->Add(pair[1], {.address = name, .origin = account});
    return clients_.size() - 1;
  }
  void Say(size_t client, const std::string& bytes) const {
    EXPECT_EQ(send(clients_[client], bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Waits until the client's connection is closed.
  bool IsClosed(size_t client) const {
    char byte = 0;
    const ssize_t got = recv(clients_[client], &byte, 1, 0);
    // The second, if the daemon has left what the client has sent.
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  std::vector<std::string> taken() {
    absl::MutexLock lock(&mutex_);
    return taken_;
  }
  std::vector<std::string> refused() {
    absl::MutexLock lock(&mutex_);
    return refused_;
  }

  std::atomic<int64_t> now_{1000};
  absl::Mutex mutex_;
  std::vector<std::string> taken_, refused_;
  std::vector<int> served_, clients_;
  std::unique_ptr<WaitingRoom> room_;
};

TEST_F(WaitingRoomTest, AClientIsServedOnceItHasBegun) {
  const size_t quick = Come("uid=0", "quick"), slow = Come("uid=0", "slow");
  Say(Come("uid=0", "has no settings"), kPreface);
  Come("uid=0", "silent");
  Say(quick, Beginning() + "and more");
  EXPECT_TRUE(Eventually([&] { return taken().size() == 1; }));
  // In pieces.
  for (const char byte : Beginning()) Say(slow, {byte});
  EXPECT_TRUE(Eventually([&] { return taken().size() == 2; }));
  EXPECT_THAT(taken(), ElementsAre("quick", "slow"));
  EXPECT_EQ(room_->size(), 2u);
  // Nothing was read.
  std::string said(100, '\0');
  said.resize(static_cast<size_t>(recv(served_[0], said.data(), said.size(), 0)));
  EXPECT_EQ(said, Beginning() + "and more");
  EXPECT_THAT(refused(), IsEmpty());
}

TEST_F(WaitingRoomTest, SomethingElseIsAnsweredByTheServer) {
  Say(Come("uid=0", "browser"), "GET / HTTP/1.1\r\n");
  EXPECT_TRUE(Eventually([&] { return taken().size() == 1; }));
  Say(Come("uid=0", "begins with a ping"), kPreface + std::string("\0\0\x8\6\0\0\0\0\0", 9));
  EXPECT_TRUE(Eventually([&] { return taken().size() == 2; }));
}

TEST_F(WaitingRoomTest, OfTooManyOfAnAccountTheOldestIsClosed) {
  const size_t first = Come("uid=0", "first");
  Say(first, "PRI");
  Come("uid=0", "second");
  Come("uid=0", "third");
  Come("uid=0", "fourth");
  const size_t other = Come("uid=7", "other");
  EXPECT_THAT(refused(), IsEmpty());
  Come("uid=0", "fifth");
  EXPECT_TRUE(IsClosed(first));
  EXPECT_THAT(refused(), ElementsAre(HasSubstr("first: the account has 4 other")));
  EXPECT_EQ(room_->size(), 5u);
  Say(other, Beginning());
  EXPECT_TRUE(Eventually([&] { return taken().size() == 1; }));
}

TEST_F(WaitingRoomTest, ASilentClientHasItsTime) {
  const size_t early = Come("uid=0", "early");
  now_ += 10;
  Come("uid=0", "late");
  now_ += 11;
  // The thread looks at the clock when anything happens.
  Come("uid=7", "next");
  EXPECT_TRUE(IsClosed(early));
  EXPECT_TRUE(Eventually([&] { return !refused().empty(); }));
  EXPECT_THAT(refused(), ElementsAre("early: it was not begun for 20s"));
  EXPECT_EQ(room_->size(), 2u);
}

TEST_F(WaitingRoomTest, GuestsThatLeaveOrStayAtTheEndAreForgotten) {
  close(clients_[Come("uid=0", "leaves")]);
  clients_.pop_back();
  EXPECT_TRUE(Eventually([&] { return room_->size() == 0; }));
  const size_t stays = Come("uid=0", "stays");
  room_->Stop();
  EXPECT_TRUE(IsClosed(stays));
  EXPECT_TRUE(IsClosed(Come("uid=0", "comes too late")));
  EXPECT_THAT(refused(), IsEmpty());
}

}  // namespace
}  // namespace kiln::rpc
