#include "server/scrape/http.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace kiln::scrape {
namespace {

absl::Status NoRequest() { return absl::InvalidArgumentError("not an HTTP/1.1 request"); }

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 302:
      return "Found";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 429:
      return "Too Many Requests";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

// Decodes "Basic dXNlcjpzZWNyZXQ=".
std::optional<std::string> PasswordOf(absl::string_view value) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(value, absl::MaxSplits(' ', 1));
  std::string decoded;
  if (!absl::EqualsIgnoreCase(parts.first, "Basic") ||
      !absl::Base64Unescape(absl::StripAsciiWhitespace(parts.second), &decoded))
    return std::nullopt;
  const size_t colon = decoded.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return decoded.substr(colon + 1);
}

void SetAuthorization(std::string value, Request* request) {
  if (request->authorization) {
    request->authorization = "";
    request->password.reset();
    return;
  }
  request->password = PasswordOf(value);
  request->authorization = std::move(value);
}

void SetField(absl::string_view line, Request* request) {
  const std::pair<absl::string_view, absl::string_view> field =
      absl::StrSplit(line, absl::MaxSplits(':', 1));
  std::string value(absl::StripAsciiWhitespace(field.second));
  if (absl::EqualsIgnoreCase(field.first, "authorization")) {
    SetAuthorization(std::move(value), request);
  } else if (absl::EqualsIgnoreCase(field.first, "host")) {
    request->host = std::move(value);
  } else if (absl::EqualsIgnoreCase(field.first, "sec-fetch-site")) {
    request->fetch_site = std::move(value);
  }
}

}  // namespace

absl::StatusOr<std::optional<Request>> ParseRequest(absl::string_view text) {
  const size_t end = text.find("\r\n\r\n");
  if (end == absl::string_view::npos) {
    if (text.size() > kHeaderBytesMax) return NoRequest();
    return std::nullopt;
  }
  if (end > kHeaderBytesMax) return NoRequest();
  const std::vector<absl::string_view> lines = absl::StrSplit(text.substr(0, end), "\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(lines.front(), ' ');
  if (words.size() != 3 || !absl::StartsWith(words[1], "/") ||
      !absl::StartsWith(words[2], "HTTP/1."))
    return NoRequest();
  Request request;
  request.method = std::string(words[0]);
  const std::pair<absl::string_view, absl::string_view> target =
      absl::StrSplit(words[1], absl::MaxSplits('?', 1));
  request.path = std::string(target.first);
  request.query = std::string(target.second);
  for (size_t i = 1; i < lines.size(); ++i) SetField(lines[i], &request);
  return request;
}

std::string Text(const Response& response, bool with_body) {
  std::string text =
      absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
                   "\r\nContent-Type: ", response.content_type,
                   "\r\nContent-Length: ", response.body.size(), "\r\nConnection: close\r\n");
  for (const auto& [name, value] : response.fields)
    absl::StrAppend(&text, name, ": ", value, "\r\n");
  if (response.asks_for_password) {
    absl::StrAppend(&text,
                    "WWW-Authenticate: Basic realm=\"kilnd: a viewer's or an admin's token as the "
                    "password\"\r\n");
  }
  absl::StrAppend(&text, "\r\n");
  if (with_body) text.append(response.body);
  return text;
}

}  // namespace kiln::scrape
