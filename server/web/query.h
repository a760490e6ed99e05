// The query of a request: "sort=runs&limit=20".
#ifndef KILN_SERVER_WEB_QUERY_H_
#define KILN_SERVER_WEB_QUERY_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::web {

class Query {
 public:
  // INVALID_ARGUMENT: a part is not NAME=VALUE, a name is not one of `known` or occurs twice, or a
  // value is badly encoded.
  static absl::StatusOr<Query> Parse(absl::string_view text,
                                     std::initializer_list<absl::string_view> known);

  // Returns "" for a name that was not given.
  std::string Text(const std::string& name) const;
  // INVALID_ARGUMENT: it is not a number from `min` to `max`.
  absl::StatusOr<int64_t> Number(const std::string& name, int64_t unless_given, int64_t min,
                                 int64_t max) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace kiln::web

#endif  // KILN_SERVER_WEB_QUERY_H_
