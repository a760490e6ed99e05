// The tokens of a PTX text.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_TOKEN_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_TOKEN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::stand_ins::ptx {

struct Token {
  enum class Kind {
    kWord,         // a name, an opcode with its modifiers, a directive with its dot
    kNumber,       // as written
    kText,         // without its quotes
    kPunctuation,  // one character
    kEnd,
  };
  Kind kind;
  absl::string_view text;  // part of the text that was split
  int line;

  bool Is(absl::string_view other) const {
    return (kind == Kind::kWord || kind == Kind::kPunctuation) && text == other;
  }
};

// The result ends with kEnd. INVALID_ARGUMENT names the line of invalid PTX.
absl::StatusOr<std::vector<Token>> SplitIntoTokens(absl::string_view text);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_TOKEN_H_
