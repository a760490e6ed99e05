#include "tests/stand_ins/cuda/ptx/token.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kiln::stand_ins::ptx {
namespace {

bool StartsWord(char c) { return absl::ascii_isalpha(c) || c == '_' || c == '%' || c == '$'; }
bool ContinuesWord(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '%' || c == '$'; }

class Splitter {
 public:
  explicit Splitter(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Split() {
    while (SkipBlanks()) {
      const char c = text_[at_];
      if (StartsWord(c) || (c == '.' && at_ + 1 < text_.size() && StartsWord(text_[at_ + 1]))) {
        Add(Token::Kind::kWord, WordEnd());
      } else if (absl::ascii_isdigit(c)) {
        Add(Token::Kind::kNumber, NumberEnd());
      } else if (c == '"') {
        const size_t end = text_.find('"', at_ + 1);
        if (end == text_.npos) return Error("a text that does not end");
        ++at_;
        Add(Token::Kind::kText, end);
        ++at_;
      } else if (absl::string_view("{}()[]<>,;:+-=|@!").find(c) != absl::string_view::npos) {
        Add(Token::Kind::kPunctuation, at_ + 1);
      } else {
        return Error(absl::StrCat("'", absl::string_view(&c, 1), "' is no part of PTX"));
      }
    }
    if (open_comment_) return Error("a comment that does not end");
    tokens_.push_back({Token::Kind::kEnd, "", line_});
    return std::move(tokens_);
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", what));
  }
  void Add(Token::Kind kind, size_t end) {
    tokens_.push_back({kind, text_.substr(at_, end - at_), line_});
    at_ = end;
  }
  bool At(absl::string_view what) const { return text_.substr(at_, what.size()) == what; }

  // Returns false at the end.
  bool SkipBlanks() {
    while (at_ < text_.size() && text_[at_] != '\0') {
      if (text_[at_] == '\n') {
        ++line_;
        ++at_;
      } else if (absl::ascii_isspace(text_[at_])) {
        ++at_;
      } else if (At("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (At("/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        open_comment_ = end == text_.npos;
        if (open_comment_) return false;
        line_ += std::count(text_.begin() + at_, text_.begin() + end, '\n');
        at_ = end + 2;
      } else {
        return true;
      }
    }
    return false;
  }

  // Dots, and pairs of colons as in .L2::128B, belong to a word if more of it follows.
  size_t WordEnd() const {
    size_t end = at_ + 1;
    while (end < text_.size()) {
      if (ContinuesWord(text_[end])) {
        ++end;
      } else if (text_[end] == '.' && end + 1 < text_.size() && ContinuesWord(text_[end + 1])) {
        end += 2;
      } else if (text_.substr(end, 2) == "::" && end + 2 < text_.size() &&
                 ContinuesWord(text_[end + 2])) {
        end += 3;
      } else {
        break;
      }
    }
    return end;
  }
  size_t NumberEnd() const {
    size_t end = at_;
    while (end < text_.size() && (absl::ascii_isalnum(text_[end]) || text_[end] == '.')) ++end;
    return end;
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool open_comment_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> SplitIntoTokens(absl::string_view text) {
  return Splitter(text).Split();
}

}  // namespace kiln::stand_ins::ptx
