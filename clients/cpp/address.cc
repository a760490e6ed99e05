#include "clients/cpp/address.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln::client {
namespace {

std::string AsGrpcAddress(const std::string& address) {
  return absl::StartsWith(address, "/") ? absl::StrCat("unix:", address) : address;
}

}  // namespace

Surroundings ProcessSurroundings() {
  return {.environment = [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            // An empty variable counts as none, as it does for the daemon.
            if (value == nullptr || *value == '\0') return std::nullopt;
            return value;
          },
          .exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; },
          .user_id = getuid(),
          .read = [](const std::string& path) -> std::optional<std::string> {
            std::ifstream stream(path);
            if (!stream) return std::nullopt;
            std::stringstream text;
            text << stream.rdbuf();
            return text.str();
          }};
}

std::string FindAddress(const std::string& given, const Surroundings& surroundings) {
  if (!given.empty()) return AsGrpcAddress(given);
  if (auto address = surroundings.environment("KILN_ADDRESS")) return AsGrpcAddress(*address);
  std::string folder = absl::StrCat("/tmp/kiln-", surroundings.user_id);
  if (auto runtime = surroundings.environment("XDG_RUNTIME_DIR")) {
    folder = absl::StrCat(*runtime, "/kiln");
  }
  const std::string socket = folder + "/kilnd.sock";
  if (surroundings.exists(socket)) return "unix:" + socket;
  return "127.0.0.1:7433";
}

bool IsLocal(const std::string& address) {
  if (absl::StartsWith(address, "127.")) {
    // A name may begin like a number: 127.0.0.1.example.org.
    const std::string host = address.substr(0, address.rfind(':'));
    return host.find_first_not_of("0123456789.") == std::string::npos;
  }
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "localhost:") ||
         absl::StartsWith(address, "[::1]");
}

}  // namespace kiln::client
