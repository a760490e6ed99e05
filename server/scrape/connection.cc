#include "server/scrape/connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace kiln::scrape {
namespace {

constexpr size_t kPieceBytes = 4 << 10;

ssl_st* MakeTls(const relay::TlsContext& context, int file) {
  if (context == nullptr) return nullptr;
  ssl_st* const tls = SSL_new(context.get());
  SSL_set_fd(tls, file);
  SSL_set_accept_state(tls);
  return tls;
}

}  // namespace

Connection::Connection(int file, std::string origin, const relay::TlsContext& tls,
                       absl::Time deadline)
    : file_(file),
      origin_(std::move(origin)),
      tls_(MakeTls(tls, file), &SSL_free),
      deadline_(deadline),
      events_(POLLIN) {}

Connection::~Connection() {
  if (reply_) reply_->Abandon();
  close(file_);
}

Connection::Moved Connection::Outcome(long result, short events) {
  if (result > 0) return Moved::kSome;
  if (tls_ == nullptr) {
    events_ = events;
    return result < 0 && (errno == EAGAIN || errno == EINTR) ? Moved::kWaits : Moved::kEnd;
  }
  const int error = SSL_get_error(tls_.get(), static_cast<int>(result));
  ERR_clear_error();
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return Moved::kEnd;
  events_ = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
  return Moved::kWaits;
}

Connection::Moved Connection::Read() {
  char piece[kPieceBytes];
  const long result =
      tls_ ? SSL_read(tls_.get(), piece, sizeof(piece)) : recv(file_, piece, sizeof(piece), 0);
  if (result > 0) received_.append(piece, static_cast<size_t>(result));
  return Outcome(result, POLLIN);
}

Connection::Moved Connection::Write() {
  const char* const begin = answer_->data() + sent_;
  const size_t size = answer_->size() - sent_;
  const long result = tls_ ? SSL_write(tls_.get(), begin, static_cast<int>(size))
                           : send(file_, begin, size, MSG_NOSIGNAL);
  if (result > 0) sent_ += static_cast<size_t>(result);
  return Outcome(result, POLLOUT);
}

Connection::Moved Connection::ReadRequest(const Responder& responder, absl::Time answer_deadline) {
  while (true) {
    const Moved moved = Read();
    const auto request = ParseRequest(received_);
    if (request.ok() && !*request) {
      if (moved != Moved::kSome) return moved;
      continue;
    }
    deadline_ = answer_deadline;
    reply_.emplace(responder.on_sent);
    if (request.ok()) {
      with_body_ = (*request)->method != "HEAD";
      responder.respond(**request, *reply_);
    } else {
      reply_->Send({.status = 400, .body = "not an HTTP/1.1 request\n"});
    }
    return Moved::kSome;
  }
}

void Connection::TakeResponse() {
  auto response = reply_->Take();
  if (!response) return;
  answer_ = Text(*response, with_body_);
  held_ = std::move(response->held);
}

bool Connection::Advance(const Responder& responder, absl::Time answer_deadline, bool was_ready) {
  const bool was_waiting = reply_ && !answer_;
  Moved moved = Moved::kSome;
  if (!reply_) moved = ReadRequest(responder, answer_deadline);
  if (reply_ && !answer_) TakeResponse();
  if (reply_ && !answer_) {
    events_ = POLLRDHUP;
    return !(was_waiting && was_ready);
  }
  while (answer_ && moved == Moved::kSome && sent_ < answer_->size()) moved = Write();
  if (moved == Moved::kWaits) return true;
  // Tells the client that the response is complete.
  if (tls_ && moved == Moved::kSome) SSL_shutdown(tls_.get());
  return false;
}

}  // namespace kiln::scrape
