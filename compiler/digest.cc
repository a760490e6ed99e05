#include "compiler/digest.h"

#include <openssl/evp.h>

#include <cstdlib>

#include "absl/strings/escaping.h"

namespace kiln::compiler {

std::string Sha256Hex(std::string_view data) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  // Fails only when memory has run out.
  if (EVP_Digest(data.data(), data.size(), digest, &size, EVP_sha256(), nullptr) != 1) std::abort();
  return absl::BytesToHexString(std::string(reinterpret_cast<const char*>(digest), size));
}

}  // namespace kiln::compiler
