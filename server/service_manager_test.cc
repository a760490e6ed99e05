#include "server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

config::Environment With(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

class Listener {
 public:
  // `name` as in $NOTIFY_SOCKET.
  explicit Listener(const std::string& name) : socket_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  ~Listener() { close(socket_); }
  std::string Next() {
    std::string text(100, '\0');
    const ssize_t got = recv(socket_, text.data(), text.size(), MSG_DONTWAIT);
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }

 private:
  const int socket_;
};

TEST(ServiceManager, TellsTheSocketThatTheEnvironmentNames) {
  for (const std::string& name : {absl::StrCat(testing::TempDir(), "/notify-", getpid()),
                                  absl::StrCat("@kiln-notify-", getpid())}) {
    Listener listener(name);
    const ServiceManager manager(With({{"NOTIFY_SOCKET", name}}), 7);
    manager.Ready();
    EXPECT_EQ(listener.Next(), "READY=1") << name;
    manager.Alive();
    EXPECT_EQ(listener.Next(), "WATCHDOG=1") << name;
    manager.Stopping();
    EXPECT_EQ(listener.Next(), "STOPPING=1") << name;
    unlink(name.c_str());
  }
}

TEST(ServiceManager, NobodyNeedListen) {
  ServiceManager(With({}), 7).Ready();
  ServiceManager(With({{"NOTIFY_SOCKET", "/nowhere/notify"}}), 7).Ready();
  ServiceManager(With({{"NOTIFY_SOCKET", std::string(500, 'x')}}), 7).Ready();
}

TEST(ServiceManager, TheWatchdogIsForOneProcess) {
  const auto interval = [](std::map<std::string, std::string> variables) {
    return ServiceManager(With(std::move(variables)), 7).watchdog_interval();
  };
  EXPECT_EQ(interval({{"WATCHDOG_USEC", "3000000"}}), absl::Milliseconds(1500));
  EXPECT_EQ(interval({{"WATCHDOG_USEC", "3000000"}, {"WATCHDOG_PID", "7"}}),
            absl::Milliseconds(1500));
  EXPECT_EQ(interval({{"WATCHDOG_USEC", "3000000"}, {"WATCHDOG_PID", "8"}}),
            absl::InfiniteDuration());
  EXPECT_EQ(interval({{"WATCHDOG_USEC", "soon"}}), absl::InfiniteDuration());
  EXPECT_EQ(interval({}), absl::InfiniteDuration());
}

}  // namespace
}  // namespace kiln
