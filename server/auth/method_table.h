// The one table that says who may call what.
#ifndef KILN_SERVER_AUTH_METHOD_TABLE_H_
#define KILN_SERVER_AUTH_METHOD_TABLE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/auth/principal.h"

namespace kiln::auth {

struct MethodRule {
  absl::string_view method;  // "/kiln.v1.AdminService/Drain"
  Role least;
};

absl::Span<const MethodRule> MethodTable();

// Nothing for a method that is not in the table: nobody may call it.
std::optional<Role> LeastRole(absl::string_view method);

}  // namespace kiln::auth

#endif  // KILN_SERVER_AUTH_METHOD_TABLE_H_
