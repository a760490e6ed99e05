#include "server/auth/token.h"

#include <sodium.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace kiln::auth {
namespace {

constexpr size_t kIdBytes = 8;
constexpr size_t kSecretBytes = 16;
constexpr size_t kTagBytes = 16;

std::string RandomDigits(size_t bytes) {
  std::string random(bytes, '\0');
  randombytes_buf(random.data(), random.size());
  return absl::BytesToHexString(random);
}

std::string TagOf(absl::string_view id, absl::string_view secret, const cache::Secret& key) {
  return absl::BytesToHexString(key.Seal(id, secret).substr(0, kTagBytes));
}

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c)) &&
           !absl::ascii_isupper(static_cast<unsigned char>(c));
  });
}

}  // namespace

Token MakeToken(const cache::Secret& key) {
  Token token;
  token.id = RandomDigits(kIdBytes);
  const std::string secret = RandomDigits(kSecretBytes);
  token.secret = absl::StrCat(secret, TagOf(token.id, secret, key));
  return token;
}

std::string Text(const Token& token) { return absl::StrCat("kiln_", token.id, "_", token.secret); }

std::optional<Token> ParseToken(absl::string_view text, const cache::Secret& key) {
  if (!absl::ConsumePrefix(&text, "kiln_")) return std::nullopt;
  if (text.size() != 2 * kIdBytes + 1 + 2 * (kSecretBytes + kTagBytes)) return std::nullopt;
  const absl::string_view id = text.substr(0, 2 * kIdBytes);
  const absl::string_view secret = text.substr(2 * kIdBytes + 1);
  if (text[2 * kIdBytes] != '_' || !IsHex(id) || !IsHex(secret)) return std::nullopt;
  const std::string tag = TagOf(id, secret.substr(0, 2 * kSecretBytes), key);
  const absl::string_view given = secret.substr(2 * kSecretBytes);
  if (sodium_memcmp(tag.data(), given.data(), tag.size()) != 0) return std::nullopt;
  return Token{std::string(id), std::string(secret)};
}

}  // namespace kiln::auth
