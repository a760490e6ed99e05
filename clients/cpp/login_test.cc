#include "clients/cpp/login.h"

#include <map>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::client {
namespace {

using ::testing::HasSubstr;

constexpr char kFile[] = "/home/ann/.config/kiln/config.toml";

Surroundings Around(std::map<std::string, std::string> variables, const std::string& file) {
  variables["HOME"] = "/home/ann";
  return {.environment = [variables](const std::string& name) -> std::optional<std::string> {
            auto found = variables.find(name);
            if (found == variables.end()) return std::nullopt;
            return found->second;
          },
          .answers = [](const std::string&) { return false; },
          .read = [file](const std::string& path, size_t) -> absl::StatusOr<std::string> {
            if (path != kFile || file.empty()) return absl::NotFoundError("no file");
            return file;
          }};
}

TEST(FindLogin, ArgumentsThenEnvironmentThenFile) {
  const std::string file =
      "# mine\naddress = \"box:1\"\ntoken='t3' # secret\n\n  ca = \"/ca.pem\"\n";
  const auto of_file = FindLogin({}, Around({}, file));
  ASSERT_TRUE(of_file.ok()) << of_file.status();
  EXPECT_EQ(of_file->address, "box:1");
  EXPECT_EQ(of_file->token, "t3");
  EXPECT_EQ(of_file->ca, "/ca.pem");
  EXPECT_EQ(FindLogin({}, Around({{"KILN_TOKEN", "t2"}}, file))->token, "t2");
  EXPECT_EQ(FindLogin({.token = "t1"}, Around({{"KILN_TOKEN", "t2"}}, file))->token, "t1");
  EXPECT_EQ(FindLogin({}, Around({}, ""))->address, "127.0.0.1:7433");
}

TEST(FindLogin, TheFilesTokenGoesToItsAddressAlone) {
  const std::string file = "address = \"box:1\"\ntoken = \"t\"\nca = \"system\"\n";
  EXPECT_EQ(FindLogin({.address = "other:1"}, Around({}, file))->token, "");
  EXPECT_EQ(FindLogin({}, Around({{"KILN_ADDRESS", "127.0.0.1:5"}}, file))->ca, "");
  EXPECT_EQ(FindLogin({.address = "box:1"}, Around({}, file))->token, "t");
  EXPECT_EQ(FindLogin({.address = "BOX:1"}, Around({}, file))->token, "t");
  EXPECT_EQ(FindLogin({.address = "unix:/x"}, Around({}, "token = \"t\""))->token, "t");
}

TEST(FindLogin, WhoHasATokenForAnotherAddressIsTold) {
  const std::string file = "address = \"box:1\"\ntoken = \"t\"\nca = \"system\"\n";
  const auto login = FindLogin({.address = "other:1"}, Around({}, file));
  EXPECT_EQ(login->elsewhere,
            absl::StrCat("The \"token\" and \"ca\" in ", kFile, " are for box:1, not for other:1"));
  absl::Status failed = absl::UnauthenticatedError("who calls?");
  failed.SetPayload("type", absl::Cord("kept"));
  const absl::Status told = WithElsewhere(failed, *login);
  EXPECT_EQ(told.message(), absl::StrCat("who calls?. ", login->elsewhere));
  EXPECT_EQ(told.GetPayload("type"), absl::Cord("kept"));
  EXPECT_EQ(WithElsewhere(failed, Login()), failed);
  const absl::Status other = absl::NotFoundError("no such program");
  EXPECT_EQ(WithElsewhere(other, *login), other);
  EXPECT_EQ(FindLogin({.address = "box:1"}, Around({}, file))->elsewhere, "");
  EXPECT_EQ(FindLogin({.address = "b:1"}, Around({}, "address = \"c:1\""))->elsewhere, "");
}

TEST(OpenChannel, AnAuthorityThatIsNoneIsNamed) {
  const auto channel =
      OpenChannel({.address = "box:1", .ca = kFile}, {}, Around({}, "-----BEGIN PRIVATE KEY-----"));
  EXPECT_EQ(channel.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(channel.status().message()), HasSubstr("config.toml has no certificate"));
}

TEST(FindLogin, ATokenIsNotSentUnencryptedOverANetwork) {
  const auto open = FindLogin({.address = "box:1", .token = "t"}, Around({}, ""));
  EXPECT_EQ(open.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(open.status().message()), HasSubstr("KILN_CA"));
  for (const char* here : {"unix:/x", "127.0.0.1:1", "localhost:1", "[::1]:1"})
    EXPECT_TRUE(FindLogin({.address = here, .token = "t"}, Around({}, "")).ok()) << here;
  EXPECT_FALSE(FindLogin({.address = "127.example.org:1", .token = "t"}, Around({}, "")).ok());
}

TEST(FindLogin, ATokenDoesNotGoToAPortThatWasFound) {
  const auto found = FindLogin({.token = "t"}, Around({}, ""));
  EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("KILN_ADDRESS=127.0.0.1:7433"));
  EXPECT_TRUE(FindLogin({.token = "t"}, Around({{"KILN_ADDRESS", "127.0.0.1:7433"}}, "")).ok());
  EXPECT_TRUE(FindLogin({.token = "t", .ca = "system"}, Around({}, "")).ok());
}

TEST(FindLogin, APathOfTheFileMayBeginAtTheHomeFolder) {
  const auto login = FindLogin({}, Around({},
                                          "address = '~/k.sock'\nca = '~/box.pem'\n"
                                          "certificate = '/~/c'\nkey = '~/k'\ntoken = '~/t'"));
  EXPECT_EQ(login->address, "unix:/home/ann/k.sock");
  EXPECT_EQ(login->ca, "/home/ann/box.pem");
  EXPECT_EQ(login->certificate, "/~/c");
  EXPECT_EQ(login->key, "/home/ann/k");
  EXPECT_EQ(login->token, "~/t");
}

TEST(FindLogin, AFileThatCannotBeReadIsAnError) {
  Surroundings surroundings = Around({}, "");
  surroundings.read = [](const std::string& path, size_t bytes_max) {
    EXPECT_EQ(bytes_max, 64u << 10);
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": Permission denied"));
  };
  const auto login = FindLogin({}, surroundings);
  EXPECT_EQ(login.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      login.status().message(),
      absl::StrCat(
          "cannot read ", kFile,
          ": Permission denied. Make it readable, or name another folder in $XDG_CONFIG_HOME"));
}

TEST(FindLogin, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"token", "config.toml:1: expected key"},  {"\ntoken = x", "config.toml:2"},
      {"token = \"x", "quotation marks"},        {"token = \"x\" y", "unexpected text"},
      {"tokken = \"x\"", "unknown key"},         {"token = \"a b\"", "invalid characters"},
      {"key = \"/k\"", "together with its key"}, {"address = \"box:0\"", "box:0"}};
  for (const auto& [file, message] : cases) {
    const auto login = FindLogin({}, Around({}, file));
    EXPECT_THAT(std::string(login.status().message()), HasSubstr(message)) << file;
  }
}

TEST(LoginFileText, IsReadBack) {
  const Login login{.address = "box:7433", .token = "kiln_1_2", .ca = "/ca.pem"};
  const auto text = LoginFileText(login);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto read = ReadLoginFile(Around({{"HOME", "/home/ann"}}, *text));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->address, "box:7433");
  EXPECT_EQ(read->token, "kiln_1_2");
  EXPECT_EQ(read->ca, "/ca.pem");
  EXPECT_EQ(read->key, "");
  EXPECT_EQ(LoginFileText({.token = "a\"b"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoginFileText({.token = "a\nb"}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kiln::client
