#include "compiler/schedule/directives/bind.h"

#include <array>

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {
namespace {

// In the order of Binding.
constexpr std::array<std::string_view, 6> kBindings = {"serial", "task",   "unroll",
                                                       "vector", "thread", "matrix"};

}  // namespace

std::string Bind::Print() const {
  return StrCat(kName, " ", axis, " ", kBindings[static_cast<int>(binding)]);
}

absl::StatusOr<Bind> Bind::Parse(absl::Span<const std::string_view> words) {
  if (words.size() != 2) return absl::InvalidArgumentError("bind takes an axis and a binding");
  auto numbers = ParseNumbers(words.subspan(0, 1), 1, 1);
  if (!numbers.ok()) return numbers.status();
  for (size_t i = 0; i < kBindings.size(); ++i) {
    if (words[1] == kBindings[i]) {
      return Bind{static_cast<int>((*numbers)[0]), static_cast<Binding>(i)};
    }
  }
  return absl::InvalidArgumentError(
      StrCat("'", words[1], "' is not serial, task, unroll, vector, thread or matrix"));
}

}  // namespace kiln::schedule
