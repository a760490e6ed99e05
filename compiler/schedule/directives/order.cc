#include "compiler/schedule/directives/order.h"

#include "absl/strings/str_join.h"
#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {

std::string Order::Print() const {
  return StrCat(kName, " ", stage, axes.empty() ? "" : " ", absl::StrJoin(axes, " "));
}

absl::StatusOr<Order> Order::Parse(absl::Span<const std::string_view> words) {
  auto numbers = ParseNumbers(words, 1, 1000);
  if (!numbers.ok()) return numbers.status();
  Order order{static_cast<int>((*numbers)[0]), {}};
  order.axes.assign(numbers->begin() + 1, numbers->end());
  return order;
}

}  // namespace kiln::schedule
