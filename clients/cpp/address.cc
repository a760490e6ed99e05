#include "clients/cpp/address.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/socket_trust.h"

namespace kiln::client {
namespace {

constexpr char kDefaultPort[] = "7433";
constexpr char kSystemFolder[] = "/run/kiln";  // of a daemon that the system started

std::string AsGrpcAddress(const std::string& address) {
  for (const char* scheme : {"unix:", "dns:", "ipv4:", "ipv6:"})
    if (absl::StartsWith(address, scheme)) return address;
  if (absl::StrContains(address, '/')) return absl::StrCat("unix:", address);
  // The colons of an IPv6 address are inside brackets.
  const size_t bracket = address.rfind(']');
  const bool has_port =
      address.find(':', bracket == std::string::npos ? 0 : bracket) != std::string::npos;
  return has_port ? address : absl::StrCat(address, ":", kDefaultPort);
}

std::string Canonical(const std::string& address) {
  std::string target = AsGrpcAddress(address);
  if (absl::StartsWith(target, "unix:///")) return absl::StrCat("unix:/", target.substr(8));
  if (absl::StartsWith(target, "unix:")) return target;
  for (const absl::string_view scheme : {"dns:///", "dns:", "ipv4:"}) {
    if (!absl::StartsWith(target, scheme)) continue;
    target = AsGrpcAddress(target.substr(scheme.size()));
    break;
  }
  absl::AsciiStrToLower(&target);
  constexpr absl::string_view kLocal = "localhost:";
  return absl::StartsWith(target, kLocal) ? absl::StrCat("127.0.0.1:", target.substr(kLocal.size()))
                                          : target;
}

// Returns whether a process accepts connections at a Unix socket. The file alone says nothing: it
// stays if its daemon is killed.
bool Answers(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  memcpy(address.sun_path, path.data(), path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const absl::Cleanup close_probe = [probe] { close(probe); };
  if (connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    return true;
  return errno == EAGAIN;  // its queue of connections is full
}

absl::Status CannotRead(const std::string& path, int error) {
  const std::string message = absl::StrCat("cannot read ", path, ": ", strerror(error));
  return error == ENOENT || error == ENOTDIR ? absl::NotFoundError(message)
                                             : absl::InvalidArgumentError(message);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return CannotRead(path, errno);
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat about = {};
  if (fstat(file, &about) != 0) return CannotRead(path, errno);
  if (S_ISDIR(about.st_mode)) return CannotRead(path, EISDIR);
  if (!S_ISREG(about.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": Not a regular file"));
  std::string text;
  char part[4096];
  while (true) {
    const ssize_t count = read(file, part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CannotRead(path, errno);
    if (count == 0) return text;
    text.append(part, static_cast<size_t>(count));
    if (text.size() > bytes_max) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read ", path, ": It is larger than ", bytes_max >> 10, " KiB"));
    }
  }
}

}  // namespace

Surroundings ProcessSurroundings() {
  return {.environment = [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            // An empty variable counts as unset, as it does for the daemon.
            if (value == nullptr || *value == '\0') return std::nullopt;
            return value;
          },
          .answers = Answers,
          .user_id = getuid(),
          .why_distrusted = [](const std::string& path) { return WhyDistrusted(path, getuid()); },
          .read = ReadFile};
}

std::string FindAddress(const std::string& given, const Surroundings& surroundings,
                        std::string* skipped) {
  if (!given.empty()) return AsGrpcAddress(given);
  if (auto address = surroundings.environment("KILN_ADDRESS")) return AsGrpcAddress(*address);
  std::vector<std::string> folders = {absl::StrCat("/tmp/kiln-", surroundings.user_id),
                                      kSystemFolder};
  if (auto runtime = surroundings.environment("XDG_RUNTIME_DIR"))
    folders.insert(folders.begin(), absl::StrCat(*runtime, "/kiln"));
  for (const std::string& folder : folders) {
    const std::string socket = absl::StrCat(folder, "/kilnd.sock");
    if (!surroundings.answers(socket)) continue;
    const std::string why =
        surroundings.why_distrusted ? surroundings.why_distrusted(socket) : std::string();
    if (why.empty()) return absl::StrCat("unix:", socket);
    if (skipped != nullptr)
      absl::StrAppend(skipped, skipped->empty() ? "" : ". ", socket,
                      " was skipped, because it may be another account's socket: ", why);
  }
  return absl::StrCat("127.0.0.1:", kDefaultPort);
}

absl::Status CheckAddress(const std::string& address) {
  const std::string target = Canonical(address);
  const size_t scheme = address.find("://");
  if (scheme != std::string::npos && address.find('/') > scheme &&
      target == absl::StrCat("unix:", address)) {
    return absl::InvalidArgumentError(absl::StrCat("the address ", address,
                                                   " is a URL; use host:port or unix:/path, ",
                                                   "without ", address.substr(0, scheme + 3)));
  }
  if (absl::StartsWith(target, "unix:")) return absl::OkStatus();
  const std::string port = target.substr(target.rfind(':') + 1);
  int number = 0;
  const bool is_number = !port.empty() && port.size() <= 5 &&
                         port.find_first_not_of("0123456789") == std::string::npos &&
                         absl::SimpleAtoi(port, &number);
  if (is_number && number >= 1 && number <= 65535) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the port of the address ", address, " is not a number from 1 to 65535"));
}

bool IsSameAddress(const std::string& one, const std::string& other) {
  return Canonical(one) == Canonical(other);
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
