// The part of HTTP/1.1 (RFC 9112) that a scrape and the web view need.
#ifndef KILN_SERVER_SCRAPE_HTTP_H_
#define KILN_SERVER_SCRAPE_HTTP_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::scrape {

inline constexpr size_t kHeaderBytesMax = 8 << 10;

struct Request {
  std::string method;                   // "GET"
  std::string path;                     // "/metrics", without a query
  std::string query;                    // what follows "?", encoded
  std::optional<std::string> password;  // of Basic authentication (RFC 7617), with any user name
  // The value of the field Authorization. Empty if there are two, which are ambiguous.
  std::optional<std::string> authorization;
  std::string host;        // the value of the field Host
  std::string fetch_site;  // the value of the field Sec-Fetch-Site, which browsers send
};

// Returns the request whose header is at the beginning of `text`; nullopt if the header is
// incomplete. INVALID_ARGUMENT: it is not a request, or the header is longer than kHeaderBytesMax.
absl::StatusOr<std::optional<Request>> ParseRequest(absl::string_view text);

struct Response {
  int status = 200;
  std::string body = {};
  bool asks_for_password = false;
  std::string content_type = "text/plain; version=0.0.4; charset=utf-8";
  // Further fields of the header. Requires: no name or value has a line break.
  std::vector<std::pair<std::string, std::string>> fields = {};
  // Lives until the response has been sent or dropped; a charge for its memory, for example.
  std::shared_ptr<const void> held = nullptr;
};

// The response's header says that the connection will be closed. `with_body`: false for HEAD.
std::string Text(const Response& response, bool with_body);

}  // namespace kiln::scrape

#endif  // KILN_SERVER_SCRAPE_HTTP_H_
