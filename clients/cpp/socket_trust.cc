#include "clients/cpp/socket_trust.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace kiln::client {
namespace {

constexpr unsigned kRoot = 0;
constexpr int kLinksMax = 40;

std::deque<std::string> NamesIn(const std::string& path) {
  const std::vector<std::string> names = absl::StrSplit(path, '/', absl::SkipEmpty());
  return {names.begin(), names.end()};
}

}  // namespace

std::string WhyDistrusted(const std::string& path, unsigned user_id) {
  std::set<unsigned> trusted = {kRoot, user_id};
  std::string folder = "/";
  std::deque<std::string> names = NamesIn(path);
  for (int links = 0; !names.empty();) {
    const std::string place = absl::StrCat(absl::StripSuffix(folder, "/"), "/", names.front());
    names.pop_front();
    struct stat above = {}, here = {};
    if (stat(folder.c_str(), &above) != 0)
      return absl::StrCat(folder, " cannot be examined: ", strerror(errno));
    const bool is_open = (above.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (lstat(place.c_str(), &here) != 0) {
      if (errno != ENOENT) return absl::StrCat(place, " cannot be examined: ", strerror(errno));
      // Connecting fails until the socket is created; a client keeps retrying.
      return is_open ? absl::StrCat("other accounts can create ", place, ", which does not exist")
                     : "";
    }
    if (is_open) {
      const bool is_socket = names.empty() && !S_ISLNK(here.st_mode);
      if ((above.st_mode & S_ISVTX) == 0 || is_socket) {
        return absl::StrCat("other accounts can replace files in ", folder, " (mode ",
                            absl::StrFormat("%o", above.st_mode & 07777), ")");
      }
      if (!trusted.contains(here.st_uid))
        return absl::StrCat(place, " belongs to the account with the number ", here.st_uid);
    }
    trusted.insert(here.st_uid);
    if (!S_ISLNK(here.st_mode)) {
      folder = place;
      continue;
    }
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(place, error).string();
    // The system does not follow more links than this either.
    if (error || ++links > kLinksMax) return "";
    if (absl::StartsWith(target, "/")) folder.assign(1, '/');
    const std::deque<std::string> more = NamesIn(target);
    names.insert(names.begin(), more.begin(), more.end());
  }
  return "";
}

absl::Status RequireTrusted(const std::string& address, unsigned user_id) {
  absl::string_view path = address;
  if (!absl::ConsumePrefix(&path, "unix:")) return absl::OkStatus();
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(std::string(path), error).string();
  const std::string why = WhyDistrusted(absolute, user_id);
  if (why.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(absolute, " may be another account's socket: ", why,
                   ". Let kilnd listen in a folder that only its account or root can write to, "
                   "such as $XDG_RUNTIME_DIR/kiln or /run/kiln, and name it in KILN_ADDRESS"));
}

}  // namespace kiln::client
