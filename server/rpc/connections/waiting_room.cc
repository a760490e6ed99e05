#include "server/rpc/connections/waiting_room.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/check/check.h"

namespace kiln::rpc {
namespace {

constexpr int kWaitingEventsMax = 64;
// The number of the eventfd.
constexpr uint64_t kWakeNumber = 0;
// RFC 9113, sections 3.4, 4.1 and 6.5. gRPC's clients send about 40 bytes of settings.
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kFrameHeadBytes = 9;
constexpr char kSettingsType = 4;
constexpr size_t kSettingsBytesMax = 1 << 10;

enum class Said { kNothing, kPart, kBegun, kGone };

// Whether these are all bytes that a client sends first. gRPC answers what is something else.
Said WhatIsSaid(absl::string_view said) {
  if (said.size() < kPreface.size())
    return absl::StartsWith(kPreface, said) ? Said::kPart : Said::kBegun;
  if (!absl::ConsumePrefix(&said, kPreface)) return Said::kBegun;
  if (said.size() < kFrameHeadBytes) return Said::kPart;
  size_t size = 0;  // of the frame's payload
  for (size_t i = 0; i < 3; ++i) size = size << 8 | static_cast<unsigned char>(said[i]);
  const bool is_settings = said[3] == kSettingsType && size <= kSettingsBytesMax;
  return is_settings && said.size() < kFrameHeadBytes + size ? Said::kPart : Said::kBegun;
}

// Leaves the bytes where they are.
Said WhatIsSaidOn(int file) {
  std::array<char, kPreface.size() + kFrameHeadBytes + kSettingsBytesMax> bytes{};
  const ssize_t size = recv(file, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR ? Said::kNothing : Said::kGone;
  if (size == 0) return Said::kGone;
  return WhatIsSaid({bytes.data(), static_cast<size_t>(size)});
}

}  // namespace

WaitingRoom::WaitingRoom(Options options)
    : options_(std::move(options)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  KILN_CHECK(options_.now && options_.take && options_.on_refused);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeNumber;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  thread_ = std::thread([this] { Run(); });
}

void WaitingRoom::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  eventfd_write(wake_, 1);
  thread_.join();
  absl::MutexLock lock(&mutex_);
  while (!guests_.empty()) close(Remove(guests_.begin()).file);
  KILN_CHECK(of_account_.empty());
  close(epoll_);
  close(wake_);
}

void WaitingRoom::Add(int file, relay::Peer peer) {
  absl::Status why;
  Guest turned_out;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) {
      close(file);
      return;
    }
    if (of_account_[peer.origin] >= options_.of_account_max) {
      turned_out = Remove(absl::c_find_if(
          guests_, [&](const auto& guest) { return guest.second.peer.origin == peer.origin; }));
      why = absl::ResourceExhaustedError(
          absl::StrCat("the account has ", options_.of_account_max,
                       " other connections that it has not begun; this was the oldest"));
    }
    const uint64_t number = ++last_number_;
    // Edge-triggered: a part of a preface must not be reported again and again.
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    event.data.u64 = number;
    ++of_account_[peer.origin];
    const auto [guest, is_new] =
        guests_.emplace(number, Guest{file, std::move(peer), options_.now() + options_.patience});
    KILN_CHECK(is_new);
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event) != 0) close(Remove(guest).file);
    // So that the thread looks at the clock. Under the lock, because Stop closes the eventfd.
    eventfd_write(wake_, 1);
  }
  if (!why.ok()) TurnOut(turned_out, why);
}

size_t WaitingRoom::size() const {
  absl::MutexLock lock(&mutex_);
  return guests_.size();
}

WaitingRoom::Guest WaitingRoom::Remove(Guests::iterator guest) {
  KILN_CHECK(guest != guests_.end());
  Guest removed = std::move(guest->second);
  guests_.erase(guest);
  epoll_ctl(epoll_, EPOLL_CTL_DEL, removed.file, nullptr);
  const auto of_account = of_account_.find(removed.peer.origin);
  KILN_CHECK(of_account != of_account_.end() && of_account->second > 0) << removed.peer.origin;
  if (--of_account->second == 0) of_account_.erase(of_account);
  return removed;
}

void WaitingRoom::TurnOut(const Guest& guest, const absl::Status& why) const {
  close(guest.file);
  options_.on_refused(guest.peer, why);
}

int WaitingRoom::MillisecondsToWait() const {
  absl::MutexLock lock(&mutex_);
  if (guests_.empty()) return -1;
  const absl::Duration left = guests_.begin()->second.until - options_.now();
  return static_cast<int>(absl::ToInt64Milliseconds(
      absl::Ceil(std::clamp(left, absl::ZeroDuration(), absl::Duration(absl::Hours(1))),
                 absl::Milliseconds(1))));
}

void WaitingRoom::TurnOutLate() {
  while (true) {
    Guest late;
    {
      absl::MutexLock lock(&mutex_);
      if (guests_.empty() || guests_.begin()->second.until > options_.now()) return;
      late = Remove(guests_.begin());
    }
    TurnOut(late, absl::DeadlineExceededError(absl::StrCat(
                      "it was not begun for ", absl::FormatDuration(options_.patience))));
  }
}

void WaitingRoom::Look(uint64_t number) {
  Guest begun;
  {
    absl::MutexLock lock(&mutex_);
    const auto guest = guests_.find(number);
    if (guest == guests_.end()) return;
    switch (WhatIsSaidOn(guest->second.file)) {
      case Said::kNothing:
      case Said::kPart:
        return;
      case Said::kGone:
        close(Remove(guest).file);
        return;
      case Said::kBegun:
        begun = Remove(guest);
        break;
    }
  }
  options_.take(begun.file, begun.peer);
}

void WaitingRoom::Run() {
  std::array<epoll_event, kWaitingEventsMax> events;
  while (true) {
    const int count = epoll_wait(epoll_, events.data(), kWaitingEventsMax, MillisecondsToWait());
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_) return;
    }
    for (int i = 0; i < count; ++i) {
      const uint64_t number = events[static_cast<size_t>(i)].data.u64;
      eventfd_t orders = 0;
      if (number == kWakeNumber) {
        eventfd_read(wake_, &orders);
      } else {
        Look(number);
      }
    }
    TurnOutLate();
  }
}

}  // namespace kiln::rpc
