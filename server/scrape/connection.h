// One client of the endpoint: its request comes in, its answer goes out, and nothing waits for it.
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

struct ssl_st;

namespace kiln::scrape {

// For one thread at a time.
class Connection {
 public:
  // Owns `file`, which does not block. `tls`: null for plain HTTP. `deadline`: for the request.
  Connection(int file, std::string origin, const relay::TlsContext& tls, absl::Time deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int file() const { return file_; }
  const std::string& origin() const { return origin_; }
  // What it waits for, as poll(2) has it.
  short events() const { return events_; }
  bool has_request() const { return answer_.has_value(); }
  // It is closed then.
  absl::Time deadline() const { return deadline_; }

  // Goes on as far as it can without waiting. `respond` is called once the request is there, after
  // which there is time until `answer_deadline`. Returns false at the end: nothing more will come.
  using Respond = std::function<Response(const Request&)>;
  bool Advance(const Respond& respond, absl::Time answer_deadline);

 private:
  enum class Moved { kSome, kWaits, kEnd };
  Moved Read();
  Moved Write();
  // Of what OpenSSL, or the system, returned.
  Moved Outcome(long result, short events);

  const int file_;
  const std::string origin_;
  const std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
  absl::Time deadline_;
  short events_;
  std::string received_;
  std::optional<std::string> answer_;
  size_t sent_ = 0;
};

}  // namespace kiln::scrape

#endif  // KILN_SERVER_SCRAPE_CONNECTION_H_
