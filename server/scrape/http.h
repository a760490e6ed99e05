// The part of HTTP/1.1 (RFC 9112) that a scrape needs.
#ifndef KILN_SERVER_SCRAPE_HTTP_H_
#define KILN_SERVER_SCRAPE_HTTP_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::scrape {

inline constexpr size_t kHeaderBytesMax = 8 << 10;

struct Request {
  std::string method;                   // "GET"
  std::string path;                     // "/metrics", without a query
  std::optional<std::string> password;  // of Basic authentication (RFC 7617), with any user name
};

// Returns the request whose header is at the beginning of `text`; nullopt if the header is
// incomplete. INVALID_ARGUMENT: it is not a request, or the header is longer than kHeaderBytesMax.
absl::StatusOr<std::optional<Request>> ParseRequest(absl::string_view text);

struct Response {
  int status = 200;
  std::string body;
  bool asks_for_password = false;
};

// The response's header says that the connection will be closed. `with_body`: false for HEAD.
std::string Text(const Response& response, bool with_body);

}  // namespace kiln::scrape

#endif  // KILN_SERVER_SCRAPE_HTTP_H_
