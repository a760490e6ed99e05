#include "clients/cpp/address.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

#include "gtest/gtest.h"

namespace kiln::client {
namespace {

Surroundings Fake(const std::map<std::string, std::string>& variables,
                  const std::set<std::string>& files) {
  return {.environment = [variables](const std::string& name) -> std::optional<std::string> {
            auto found = variables.find(name);
            if (found == variables.end()) return std::nullopt;
            return found->second;
          },
          .answers = [files](const std::string& path) { return files.contains(path); },
          .user_id = 1000,
          .read = [](const std::string&, size_t) { return absl::NotFoundError("no file"); }};
}

TEST(FindAddress, WhatIsGivenComesFirst) {
  auto surroundings = Fake({{"KILN_ADDRESS", "unix:/a.sock"}}, {"/tmp/kiln-1000/kilnd.sock"});
  EXPECT_EQ(FindAddress("box:7433", surroundings), "box:7433");
  EXPECT_EQ(FindAddress("/b.sock", surroundings), "unix:/b.sock");
  EXPECT_EQ(FindAddress("", surroundings), "unix:/a.sock");
}

TEST(FindAddress, SocketOfTheRuntimeFolder) {
  auto surroundings =
      Fake({{"XDG_RUNTIME_DIR", "/run/user/1000"}}, {"/run/user/1000/kiln/kilnd.sock"});
  EXPECT_EQ(FindAddress("", surroundings), "unix:/run/user/1000/kiln/kilnd.sock");
}

TEST(FindAddress, SocketsThatMayBeAnotherAccountsAreSkippedAndNamed) {
  auto surroundings = Fake({}, {"/tmp/kiln-1000/kilnd.sock", "/run/kiln/kilnd.sock"});
  surroundings.why_distrusted = [](const std::string& path) -> std::string {
    return path[1] == 't' ? "it belongs to eve" : "";
  };
  std::string skipped;
  EXPECT_EQ(FindAddress("", surroundings, &skipped), "unix:/run/kiln/kilnd.sock");
  EXPECT_EQ(skipped,
            "/tmp/kiln-1000/kilnd.sock was skipped, because it may be another account's socket: it "
            "belongs to eve");
  surroundings.why_distrusted = [](const std::string&) -> std::string { return "why"; };
  EXPECT_EQ(FindAddress("", surroundings), "127.0.0.1:7433");
  EXPECT_EQ(FindAddress("/tmp/kiln-1000/kilnd.sock", surroundings),
            "unix:/tmp/kiln-1000/kilnd.sock");
}

TEST(FindAddress, SocketOfTheTemporaryFolder) {
  EXPECT_EQ(FindAddress("", Fake({}, {"/tmp/kiln-1000/kilnd.sock"})),
            "unix:/tmp/kiln-1000/kilnd.sock");
}

TEST(FindAddress, ASocketAtWhichNothingListensIsSkipped) {
  // As after a daemon was killed: the file of its socket is still there.
  const auto surroundings = Fake({{"XDG_RUNTIME_DIR", "/run/user/1000"}}, {"/run/kiln/kilnd.sock"});
  EXPECT_EQ(FindAddress("", surroundings), "unix:/run/kiln/kilnd.sock");
}

TEST(ProcessSurroundings, OnlyASocketWithAListenerAnswers) {
  const std::string path = testing::TempDir() + "/answers.sock";
  unlink(path.c_str());
  const auto answers = ProcessSurroundings().answers;
  EXPECT_FALSE(answers(path));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  EXPECT_TRUE(answers(path));
  close(listener);
  EXPECT_FALSE(answers(path));
  EXPECT_FALSE(answers(std::string(200, 'a')));
  unlink(path.c_str());
}

TEST(FindAddress, LoopbackPortWhereThereIsNoSocket) {
  EXPECT_EQ(FindAddress("", Fake({}, {})), "127.0.0.1:7433");
}

TEST(FindAddress, AHostWithoutAPortGetsTheDaemons) {
  const auto nothing = Fake({}, {});
  EXPECT_EQ(FindAddress("box", nothing), "box:7433");
  EXPECT_EQ(FindAddress("[::1]", nothing), "[::1]:7433");
  for (const char* address : {"box:1", "[::1]:2", "unix:/a", "dns:box:1"})
    EXPECT_EQ(FindAddress(address, nothing), address);
}

TEST(Address, MistakesAreNamed) {
  for (const char* good : {"box", "box:1", "box:65535", "[::1]", "[::1]:2", "dns:box:3", "dns:box",
                           "unix:/a:b", "unix:///a", "/a://b", "dns:///box:7433", "./a"})
    EXPECT_TRUE(CheckAddress(good).ok()) << CheckAddress(good);
  for (const char* bad : {"localhost:99999", "box:65536", "box:0", "box:", "box:http", "box:-1",
                          "box:+1", "[::1]:70000", "dns:box:99999", "dns:///box:0"}) {
    EXPECT_EQ(CheckAddress(bad),
              absl::InvalidArgumentError(std::string("the port of the address ") + bad +
                                         " is not a number from 1 to 65535"));
  }
  EXPECT_EQ(CheckAddress("http://localhost:17433"),
            absl::InvalidArgumentError("the address http://localhost:17433 is a URL; use host:port "
                                       "or unix:/path, without http://"));
}

TEST(Address, HasSeveralSpellings) {
  for (const char* other : {"localhost", "localhost:7433", "127.0.0.1", "dns:localhost:7433"})
    EXPECT_TRUE(IsSameAddress("127.0.0.1:7433", other)) << other;
  EXPECT_TRUE(IsSameAddress("unix:/run/k.sock", "/run/k.sock"));
  EXPECT_TRUE(IsSameAddress("unix:/run/k.sock", "unix:///run/k.sock"));
  EXPECT_TRUE(IsSameAddress("Box:1", "box:1"));
  for (const char* other : {"localhost:1", "box", "/localhost:7433", "127.0.0.1.example.org"})
    EXPECT_FALSE(IsSameAddress("127.0.0.1:7433", other)) << other;
}

TEST(Address, IsOnThisMachineOrNot) {
  for (const char* address : {"unix:/a", "127.0.0.1:7433", "127.1.2.3:1", "localhost:1", "[::1]:1"})
    EXPECT_TRUE(IsLocal(address)) << address;
  for (const char* address : {"box:7433", "127.0.0.1.example.org:1", "10.0.0.1:1", "[fe80::1]:1"})
    EXPECT_FALSE(IsLocal(address)) << address;
}

TEST(ProcessSurroundings, AFileThatCannotBeReadIsNamedWithTheReason) {
  const std::string folder = testing::TempDir();
  const auto of_folder = ProcessSurroundings().read(folder, 100);
  EXPECT_EQ(of_folder.status(),
            absl::InvalidArgumentError("cannot read " + folder + ": Is a directory"));
  const auto of_none = ProcessSurroundings().read(folder + "/none", 100);
  EXPECT_TRUE(absl::IsNotFound(of_none.status())) << of_none.status();
}

TEST(ProcessSurroundings, AFileIsReadWhole) {
  const std::string path = testing::TempDir() + "/whole", text(10000, 'x');
  std::ofstream(path) << text;
  EXPECT_EQ(*ProcessSurroundings().read(path, text.size()), text);
}

TEST(ProcessSurroundings, WhatHasNoEndOrTooMuchIsRefused) {
  const std::string path = testing::TempDir() + "/large", text(2049, 'x');
  std::ofstream(path) << text;
  EXPECT_EQ(ProcessSurroundings().read(path, 2048).status(),
            absl::InvalidArgumentError("cannot read " + path + ": It is larger than 2 KiB"));
  EXPECT_EQ(ProcessSurroundings().read("/dev/null", 100).status(),
            absl::InvalidArgumentError("cannot read /dev/null: Not a regular file"));
}

}  // namespace
}  // namespace kiln::client
