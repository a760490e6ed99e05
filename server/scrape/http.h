// As much of HTTP/1.1 (RFC 9112) as a scrape takes.
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
  std::string path;                     // "/metrics", without what follows a question mark
  std::optional<std::string> password;  // of Basic authentication (RFC 7617), whatever the name
};

// The request whose header is at the beginning of `text`; nothing if the header has not ended.
// INVALID_ARGUMENT: it is no request, or the header is longer than kHeaderBytesMax.
absl::StatusOr<std::optional<Request>> ParseRequest(absl::string_view text);

struct Response {
  int status = 200;
  std::string body;
  bool asks_for_password = false;
};

// Ends the connection, as its header says. `with_body`: false for HEAD.
std::string Text(const Response& response, bool with_body);

}  // namespace kiln::scrape

#endif  // KILN_SERVER_SCRAPE_HTTP_H_
