#include "server/auth/accounts.h"

#include <pwd.h>
#include <unistd.h>

#include <vector>

namespace kiln::auth {
namespace {

constexpr size_t kEntryBytes = 1 << 14;

}  // namespace

std::optional<std::string> AccountName(unsigned user_id) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> text(kEntryBytes);
  if (getpwuid_r(user_id, &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
    return std::nullopt;
  return std::string(found->pw_name);
}

bool HasAccount(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> text(kEntryBytes);
  return getpwnam_r(name.c_str(), &entry, text.data(), text.size(), &found) == 0 &&
         found != nullptr;
}

bool RunsDaemon(unsigned user_id) { return user_id == geteuid() || user_id == 0; }

}  // namespace kiln::auth
