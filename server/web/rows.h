// Sorted parts of tables.
#ifndef KILN_SERVER_WEB_ROWS_H_
#define KILN_SERVER_WEB_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/ir/quoted.h"
#include "server/web/query.h"

namespace kiln::web {

inline constexpr int64_t kRowsMax = 500;
inline constexpr int64_t kRowsUsual = 100;
inline constexpr int64_t kOffsetMax = int64_t{1} << 31;

// A column that a table can be sorted by. One of the two functions is set.
template <class Row>
struct Column {
  absl::string_view name;
  double (*number)(const Row&) = nullptr;
  const std::string& (*text)(const Row&) = nullptr;
};

template <class Row>
absl::StatusOr<const Column<Row>*> FindColumn(absl::Span<const Column<Row>> columns,
                                              const std::string& name) {
  for (const Column<Row>& column : columns)
    if (column.name == name) return &column;
  return absl::InvalidArgumentError(absl::StrCat(
      "query: there is no column ", Quoted(name),
      "; allowed: ", absl::StrJoin(columns, ", ", [](std::string* out, const Column<Row>& column) {
        absl::StrAppend(out, column.name);
      })));
}

// Sorts rows as the query says (sort=COLUMN, order=asc or desc), and keeps those of its part
// (offset, limit). Equal rows keep their order. Without "sort" they all do. INVALID_ARGUMENT: there
// is no such column, or a value is out of range.
template <class Row>
absl::Status KeepPart(const Query& query, absl::Span<const Column<Row>> columns,
                      std::vector<Row>* rows) {
  const auto offset = query.Number("offset", 0, 0, kOffsetMax);
  if (!offset.ok()) return offset.status();
  const auto limit = query.Number("limit", kRowsUsual, 1, kRowsMax);
  if (!limit.ok()) return limit.status();
  const std::string order = query.Text("order");
  if (!order.empty() && order != "asc" && order != "desc") {
    return absl::InvalidArgumentError(
        absl::StrCat("query: order is asc or desc, not ", Quoted(order)));
  }
  if (const std::string name = query.Text("sort"); !name.empty()) {
    const auto column = FindColumn(columns, name);
    if (!column.ok()) return column.status();
    const auto is_less = [&](const Row& a, const Row& b) {
      return (*column)->number ? (*column)->number(a) < (*column)->number(b)
                               : (*column)->text(a) < (*column)->text(b);
    };
    std::stable_sort(rows->begin(), rows->end(), [&](const Row& a, const Row& b) {
      return order == "desc" ? is_less(b, a) : is_less(a, b);
    });
  }
  const auto begin = std::min(rows->size(), static_cast<size_t>(*offset));
  rows->erase(rows->begin(), rows->begin() + static_cast<std::ptrdiff_t>(begin));
  const auto end = std::min(rows->size(), static_cast<size_t>(*limit));
  rows->erase(rows->begin() + static_cast<std::ptrdiff_t>(end), rows->end());
  return absl::OkStatus();
}

}  // namespace kiln::web

#endif  // KILN_SERVER_WEB_ROWS_H_
