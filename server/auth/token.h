// Tokens: kiln_<id>_<secret>, in hexadecimal. The id is public. The secret is 128 random bits and a
// tag, the daemon's keyed hash of them, so that an invented token is refused cheaply.
#ifndef KILN_SERVER_AUTH_TOKEN_H_
#define KILN_SERVER_AUTH_TOKEN_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/cache/secret.h"

namespace kiln::auth {

struct Token {
  std::string id;      // 16 digits
  std::string secret;  // including its tag: 64 digits
};

Token MakeToken(const cache::Secret& key);
std::string Text(const Token& token);

// Returns nullopt if it is not a token of this daemon.
std::optional<Token> ParseToken(absl::string_view text, const cache::Secret& key);

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_TOKEN_H_
