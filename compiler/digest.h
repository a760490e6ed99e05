// Content digests.
#ifndef KILN_COMPILER_DIGEST_H_
#define KILN_COMPILER_DIGEST_H_

#include <string>
#include <string_view>

namespace kiln::compiler {

// SHA-256 (FIPS 180-4), 64 hexadecimal digits.
std::string Sha256Hex(std::string_view data);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_DIGEST_H_
