// One client of the endpoint: non-blocking reading of its request and writing of the response,
// which may come later.
#ifndef KILN_SERVER_SCRAPE_CONNECTION_H_
#define KILN_SERVER_SCRAPE_CONNECTION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/relay/tls_context.h"
#include "server/scrape/http.h"
#include "server/scrape/reply.h"

struct ssl_st;

namespace kiln::scrape {

// Used by one thread at a time.
class Connection {
 public:
  // Owns `file`, which must be non-blocking. `tls`: null for plain HTTP. `deadline`: for the
  // request.
  Connection(int file, std::string origin, const relay::TlsContext& tls, absl::Time deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int file() const { return file_; }
  const std::string& origin() const { return origin_; }
  // The events that it waits for, for poll(2).
  short events() const { return events_; }
  bool has_request() const { return answer_.has_value() || reply_.has_value(); }
  // Whether the response has come that it waits for, so that Advance can go on.
  bool has_come() const { return reply_ && reply_->has_come(); }
  // The connection is closed at this time.
  absl::Time deadline() const { return deadline_; }

  // Continues as far as possible without blocking. `respond` is called once the request is
  // complete; the deadline is then `answer_deadline`. Returns false when the connection is over.
  // While it waits for a response, `was_ready` says that poll(2) has reported something: the client
  // has gone.
  struct Responder {
    std::function<void(const Request&, const Reply&)> respond;
    std::function<void()> on_sent;  // of Reply
  };
  bool Advance(const Responder& responder, absl::Time answer_deadline, bool was_ready);

 private:
  enum class Moved { kSome, kWaits, kEnd };
  // Reads until the request is complete, and asks for its response.
  Moved ReadRequest(const Responder& responder, absl::Time answer_deadline);
  void TakeResponse();
  Moved Read();
  Moved Write();
  // Interprets the result of OpenSSL, or of the system.
  Moved Outcome(long result, short events);

  const int file_;
  const std::string origin_;
  const std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
  absl::Time deadline_;
  short events_;
  std::string received_;
  std::optional<Reply> reply_;  // once the request is complete
  bool with_body_ = true;
  std::optional<std::string> answer_;
  std::shared_ptr<const void> held_;  // Response::held
  size_t sent_ = 0;
};

}  // namespace kiln::scrape

#endif  // KILN_SERVER_SCRAPE_CONNECTION_H_
