#include "proto/digest/sha256.h"

#include <openssl/evp.h>

#include <cstdlib>

#include "absl/strings/escaping.h"

namespace kiln {
namespace {

// OpenSSL fails here only when memory has run out.
void Require(bool succeeded) {
  if (!succeeded) std::abort();
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  Require(context_ != nullptr && EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::Update(std::string_view data) {
  Require(EVP_DigestUpdate(context_, data.data(), data.size()) == 1);
}

std::string Sha256::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Require(EVP_DigestFinal_ex(context_, digest, &size) == 1);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

std::string Sha256::FinishHex() { return absl::BytesToHexString(Finish()); }

std::string Sha256Hex(std::string_view data) {
  Sha256 digest;
  digest.Update(data);
  return digest.FinishHex();
}

}  // namespace kiln
