// Content digests: SHA-256 (FIPS 180-4).
#ifndef KILN_PROTO_DIGEST_SHA256_H_
#define KILN_PROTO_DIGEST_SHA256_H_

#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace kiln {

// Computes the digest of data that arrives in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::string_view data);
  // Returns the digest, 32 bytes. No other method may be called afterwards.
  std::string Finish();
  // The same, as 64 lower-case hexadecimal digits.
  std::string FinishHex();

 private:
  evp_md_ctx_st* const context_;
};

// 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view data);

}  // namespace kiln

#endif  // KILN_PROTO_DIGEST_SHA256_H_
