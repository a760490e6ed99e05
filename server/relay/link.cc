#include "server/relay/link.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::relay {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// For a client whose user is not known. Its data may have to wait, and there may be thousands of
// such clients.
constexpr size_t kStrangersReadBytes = 8 << 10;
// A link that is held tries again after a quarter of the time that it has already been held, at
// most kHeldPauseMax: thousands may wait for the same tokens.
constexpr int kHeldFraction = 4;
constexpr absl::Duration kHeldPauseMax = absl::Seconds(1);
absl::Time LooksAgain(absl::Duration wait, absl::Time held_since, absl::Time now) {
  return now + std::max(wait, std::min((now - held_since) / kHeldFraction, kHeldPauseMax));
}
constexpr uint32_t kSmallFrameBytes = 1 << 10;
// Rounds of a busy link before others have their turn.
constexpr int kRoundsMax = 8;
// After the server has ended a connection and the last answers were sent, the client has this long
// to read them. Closing a socket with unread bytes resets it, and answers under way are lost.
constexpr absl::Duration kLinger = absl::Seconds(2);
// Limit for sending the last answers to the client.
constexpr absl::Duration kLastAnswers = absl::Seconds(10);
absl::Status Ended(absl::string_view which) {
  return absl::OutOfRangeError(absl::StrCat("the ", which, " has closed the connection"));
}

// One buffer for all links of the thread.
char* Scratch() {
  // On the heap: a thread_local array would take space on the stack of every thread of the process.
  static thread_local const std::unique_ptr<char[]> bytes(new char[kReadBytes]);
  return bytes.get();
}

// Two connected sockets. The first has a name, which gRPC reports as its peer's.
absl::StatusOr<std::array<int, 2>> NamedPair(const std::string& name) {
  std::array<int, 2> pair;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0)
    return absl::UnavailableError(
        absl::StrCat("cannot create a pair of sockets: ", strerror(errno)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A name with a leading zero byte is not a file (unix(7)).
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(pair[0], reinterpret_cast<sockaddr*>(&address), size) == 0) return pair;
  const absl::Status failed =
      absl::UnavailableError(absl::StrCat("cannot bind a socket to a name: ", strerror(errno)));
  for (const int file : pair) close(file);
  return failed;
}

}  // namespace

Link::Link(Options options)
    : options_(std::move(options)),
      client_(options_.tls == nullptr
                  ? MakePlainEnd(options_.client_file)
                  : MakeTlsEnd(options_.client_file, options_.tls, &why_no_tls_)) {
  KILN_CHECK_NE(options_.budgets, nullptr);
  KILN_CHECK_NE(options_.activity, nullptr);
}

Link::~Link() {
  if (connection_ != nullptr) connection_->MarkClosed();
  if (server_file_ >= 0) close(server_file_);
}

absl::Status Link::Advance(absl::Time now) {
  if (connection_ == nullptr) {
    if (absl::Status status = Introduce(now); !status.ok()) return status;
    if (connection_ == nullptr) return absl::OkStatus();
  }
  bool moved = true;
  for (int round = 0; moved && round < kRoundsMax; ++round) {
    moved = ReadClient(now);
    if (moved && server_reads_) options_.activity->Note(now);
    if (absl::Status status = AdmitFrames(now); !status.ok()) return status;
    moved |= WriteServer();
    moved |= ReadServer();
    moved |= WriteClient();
    KILN_VALIDATE(*this, 1);
  }
  // There is no client left to read the answers.
  if (client_ended_ && admitted_bytes_ == 0) return Ended("client");
  if (server_ended_) Linger(now);
  if (now >= close_at_) return Ended("server");
  SetInterest(now, moved);
  return absl::OkStatus();
}

bool Link::IsGreeted(absl::Time now) {
  if (is_greeted_) return true;
  if (now < held_until_) return false;
  const absl::Duration wait = options_.budgets->Greet(options_.peer.origin, now);
  is_greeted_ = wait <= absl::ZeroDuration();
  held_since_ = is_greeted_ ? absl::InfiniteFuture() : std::min(held_since_, now);
  if (!is_greeted_) held_until_ = LooksAgain(wait, held_since_, now);
  return is_greeted_;
}

absl::Status Link::Introduce(absl::Time now) {
  if (now >= options_.handshake_until)
    return absl::DeadlineExceededError("the client did not complete the handshake in time");
  if (!IsGreeted(now)) {
    interest_ = {.time = std::min(held_until_, options_.handshake_until)};
    return absl::OkStatus();
  }
  if (!has_shaken_hands_) {
    const Io io = client_->Handshake();
    if (io.outcome == Io::kEnded) return absl::UnauthenticatedError(why_no_tls_);
    has_shaken_hands_ = io.outcome == Io::kDone;
    read_waits_ = io.outcome == Io::kWantsWrite ? Io::kWantsWrite : Io::kWantsRead;
  }
  if (has_shaken_hands_) {
    while (!meter_.has_preface() && ReadClient(now)) {
      if (absl::Status status = AdmitFrames(now); !status.ok()) return status;
    }
    if (meter_.has_preface()) return HandOver(now);
    if (client_ended_) return Ended("client");
  }
  interest_ = {.client_read = read_waits_ == Io::kWantsRead,
               .client_write = read_waits_ == Io::kWantsWrite,
               .time = options_.handshake_until};
  return absl::OkStatus();
}

absl::Status Link::HandOver(absl::Time now) {
  KILN_CHECK(connection_ == nullptr) << options_.name;
  KILN_CHECK(meter_.has_preface()) << options_.name;
  Peer peer = options_.peer;
  peer.certificate_name = client_->CertificateName();
  auto budget = options_.budgets->Open(peer.origin, now);
  const auto pair = NamedPair(options_.name);
  if (!pair.ok()) return pair.status();
  server_file_ = (*pair)[0];
  connection_ = std::make_shared<Connection>(options_.number, options_.name, std::move(peer),
                                             std::move(budget));
  options_.hand_over(connection_, (*pair)[1]);
  return absl::OkStatus();
}

absl::Status Link::AdmitFrames(absl::Time now) {
  if (now < held_until_ || !server_reads_) return absl::OkStatus();
  const absl::string_view waiting = to_server_.bytes().substr(admitted_bytes_);
  const auto passed = meter_.Pass(waiting, [&](const Frame& frame) { return Admit(frame, now); });
  if (!passed.ok()) return passed.status();
  admitted_bytes_ += *passed;
  KILN_CHECK_LE(admitted_bytes_, to_server_.size());
  if (now >= held_until_) held_since_ = absl::InfiniteFuture();
  if (now - held_since_ < kHeldMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "the client starts calls or sends small frames faster than allowed");
}

bool Link::Admit(const Frame& frame, absl::Time now) {
  // Frames directly after the preface wait until there is a budget.
  if (connection_ == nullptr) return false;
  absl::Duration wait = absl::ZeroDuration();
  if (frame.BeginsCall()) {
    wait = connection_->budget().BeginCall(now);
  } else if (frame.payload_bytes < kSmallFrameBytes) {
    wait = connection_->budget().SendSmallFrame(now);
  }
  if (wait <= absl::ZeroDuration()) return true;
  held_since_ = std::min(held_since_, now);
  held_until_ = LooksAgain(wait, held_since_, now);
  return false;
}

size_t Link::ReadBytes() const {
  return connection_ != nullptr && connection_->is_users() ? kReadBytes : kStrangersReadBytes;
}

bool Link::ReadClient(absl::Time now) {
  if (client_drained_ || client_ended_ || held_until_ > now || to_server_.size() >= kBufferBytesMax)
    return false;
  const size_t size = ReadBytes();
  const Io io = client_->Read(Scratch(), size);
  // TLS returns one record at a time.
  client_drained_ = io.outcome != Io::kDone || (options_.tls == nullptr && io.bytes < size);
  if (io.outcome == Io::kEnded) client_ended_ = true;
  if (io.outcome != Io::kDone) read_waits_ = io.outcome;
  KILN_CHECK_LE(io.bytes, size);
  if (server_reads_) to_server_.Append({Scratch(), io.bytes});
  return io.outcome == Io::kDone;
}

bool Link::WriteServer() {
  if (admitted_bytes_ == 0) return false;
  const Io io = WriteSocket(server_file_, to_server_.bytes().substr(0, admitted_bytes_));
  if (io.outcome == Io::kEnded) {
    // Data that the server sent before closing can still be read.
    server_reads_ = false;
    admitted_bytes_ = 0;
    to_server_.Clear();
    server_drained_ = false;
    return false;
  }
  KILN_CHECK_LE(io.bytes, admitted_bytes_);
  connection_->AddReceived(io.bytes);
  admitted_bytes_ -= io.bytes;
  to_server_.Consume(io.bytes);
  return io.bytes > 0;
}

bool Link::ReadServer() {
  if (server_drained_ || server_ended_ || to_client_.size() >= kBufferBytesMax) return false;
  const Io io = ReadSocket(server_file_, Scratch(), kReadBytes);
  server_drained_ = io.outcome != Io::kDone || io.bytes < kReadBytes;
  if (io.outcome == Io::kEnded) {
    server_ended_ = true;
    server_reads_ = false;
  }
  to_client_.Append({Scratch(), io.bytes});
  return io.outcome == Io::kDone;
}

bool Link::WriteClient() {
  if (to_client_.empty() || client_ended_) return false;
  const Io io = client_->Write(to_client_.bytes());
  if (io.outcome == Io::kEnded) client_ended_ = true;
  if (io.outcome != Io::kDone) {
    write_waits_ = io.outcome;
    return false;
  }
  to_client_.Consume(io.bytes);
  return io.bytes > 0;
}

void Link::Linger(absl::Time now) {
  close_at_ = std::min(close_at_, now + kLastAnswers);
  if (!to_client_.empty() || std::exchange(said_end_, true)) return;
  client_->EndWriting();
  close_at_ = std::min(close_at_, now + kLinger);
}

void Link::Validate() const {
  KILN_CHECK_EQ(connection_ != nullptr, server_file_ >= 0);
  KILN_CHECK_LE(admitted_bytes_, to_server_.size());
  KILN_CHECK_LT(to_server_.size(), kBufferBytesMax + kReadBytes);
  KILN_CHECK_LT(to_client_.size(), kBufferBytesMax + kReadBytes);
  // An end that has closed the connection takes nothing any more.
  KILN_CHECK(!server_ended_ || !server_reads_);
  KILN_CHECK(!said_end_ || server_ended_);
  KILN_CHECK(server_reads_ || admitted_bytes_ == 0 || server_ended_);
}

void Link::SetInterest(absl::Time now, bool may_go_on) {
  const bool reads = !client_ended_ && held_until_ <= now && to_server_.size() < kBufferBytesMax;
  const bool writes = !client_ended_ && !to_client_.empty();
  interest_ = {};
  for (const auto& [active, waits] :
       {std::pair(reads, read_waits_), std::pair(writes, write_waits_)}) {
    interest_.client_read |= active && waits == Io::kWantsRead;
    interest_.client_write |= active && waits == Io::kWantsWrite;
  }
  interest_.server_read = !server_ended_ && to_client_.size() < kBufferBytesMax;
  interest_.server_write = !server_ended_ && admitted_bytes_ > 0;
  interest_.time = close_at_;
  if (held_until_ > now) interest_.time = std::min(interest_.time, held_until_);
  if (may_go_on) interest_.time = now;
}

}  // namespace kiln::relay
