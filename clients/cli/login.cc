// kiln login [ADDRESS], kiln logout
#include "clients/cpp/login.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cpp/status.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

absl::Status CannotDo(std::string_view what, const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", std::string(what), " ", path, ": ", strerror(errno)));
}

// The environment without earlier logins: what is kept is only what the caller says.
client::Surroundings WithoutLogins() {
  client::Surroundings surroundings = client::ProcessSurroundings();
  surroundings.environment = [all = std::move(surroundings.environment)](
                                 const std::string& name) -> std::optional<std::string> {
    if (name.rfind("KILN_", 0) == 0) return std::nullopt;
    return all(name);
  };
  const std::string file = client::LoginFile(surroundings);
  surroundings.read = [file, read = std::move(surroundings.read)](
                          const std::string& path,
                          size_t bytes_max) -> absl::StatusOr<std::string> {
    if (path == file) return absl::NotFoundError("not read");
    return read(path, bytes_max);
  };
  return surroundings;
}

// Reads the token from the input, on a terminal without showing it.
std::string ReadToken(const Invocation& invocation) {
  termios before{};
  const bool hides = invocation.input_terminal && tcgetattr(STDIN_FILENO, &before) == 0;
  if (hides) {
    invocation.error << "token (empty: none): " << std::flush;
    termios silent = before;
    // Without signals: Ctrl-C would leave the terminal without echo.
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ISIG);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
  }
  std::string token;
  std::getline(std::cin, token);
  if (hides) {
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    invocation.error << '\n';
  }
  return std::string(absl::StripAsciiWhitespace(token));
}

// Replaces the file by one that only this account may read.
absl::Status WriteLogin(const std::string& path, const std::string& text) {
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  fs::create_directories(folder.parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return CannotDo("make", folder);
  const std::string draft = absl::StrCat(path, ".new");
  unlink(draft.c_str());
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return CannotDo("make", draft);
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(file) == 0;
  const absl::Status failed = written ? absl::OkStatus() : CannotDo("write", draft);
  close(file);
  if (!failed.ok()) return failed;
  return rename(draft.c_str(), path.c_str()) == 0 ? absl::OkStatus() : CannotDo("replace", path);
}

void MakeAbsolute(std::string& path) {
  std::error_code ignored;
  if (!path.empty() && path != "system") path = fs::absolute(path, ignored);
}

// Asks the daemon at the address who it is, with the login.
absl::StatusOr<v1::GetDaemonResponse> Verify(const client::Login& login,
                                             const client::Surroundings& surroundings) {
  auto channel = client::OpenChannel(login, grpc::ChannelArguments(), surroundings);
  if (!channel.ok()) return channel.status();
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetDaemonResponse daemon;
  const grpc::Status called = v1::AdminService::NewStub(*channel)->GetDaemon(&context, {}, &daemon);
  const absl::Status status = client::WithElsewhere(client::FromGrpc(called, login.address), login);
  if (!status.ok()) return status;
  return daemon;
}

void NoteVariables(const Invocation& invocation, const client::Surroundings& surroundings) {
  for (const char* name : {"KILN_ADDRESS", "KILN_TOKEN", "KILN_CA", "KILN_CERTIFICATE", "KILN_KEY"})
    if (surroundings.environment(name))
      invocation.error << "note: $" << name << " is set, and clients use it instead of the file\n";
}

}  // namespace

absl::Status RunLogin(Invocation& invocation) {
  if (invocation.json) return absl::InvalidArgumentError("there is no JSON of this command");
  client::Login given = invocation.given;
  for (const std::string& argument : invocation.arguments) {
    if (!given.address.empty() || argument.empty() || argument[0] == '-')
      return absl::InvalidArgumentError(absl::StrCat("unexpected: ", argument));
    given.address = argument;
  }
  const client::Surroundings surroundings = WithoutLogins();
  const std::string path = client::LoginFile(surroundings);
  if (path.empty())
    return absl::FailedPreconditionError(
        "neither $XDG_CONFIG_HOME nor $HOME is set, so there is "
        "no folder for the login");
  for (std::string* file : {&given.ca, &given.certificate, &given.key}) MakeAbsolute(*file);
  // A certificate is a login, too.
  if (given.token.empty() && given.certificate.empty()) given.token = ReadToken(invocation);
  const auto login = client::FindLogin(given, surroundings);
  if (!login.ok()) return login.status();
  const auto text = client::LoginFileText(*login);
  if (!text.ok()) return text.status();
  const auto daemon = Verify(*login, surroundings);
  if (!daemon.ok()) {
    return absl::Status(daemon.status().code(),
                        absl::StrCat(daemon.status().message(), ". Nothing was stored"));
  }
  if (absl::Status status = WriteLogin(path, *text); !status.ok()) return status;
  invocation.out << "kilnd " << Printable(daemon->version()) << " at " << Printable(login->address)
                 << " accepts " << (login->token.empty() ? "this account" : "the token")
                 << "; the login is in " << Printable(path) << '\n';
  NoteVariables(invocation, client::ProcessSurroundings());
  return absl::OkStatus();
}

absl::Status RunLogout(Invocation& invocation) {
  if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) return status;
  if (invocation.json) return absl::InvalidArgumentError("there is no JSON of this command");
  const client::Surroundings surroundings = client::ProcessSurroundings();
  const std::string path = client::LoginFile(surroundings);
  auto login = client::ReadLoginFile(surroundings);
  if (!login.ok()) return login.status();
  const bool has_any = !login->token.empty() || !login->certificate.empty();
  if (!has_any) {
    invocation.out << "there was no login\n";
    return absl::OkStatus();
  }
  // The address and its authority are no secrets, and the next login needs them again.
  login->token = login->certificate = login->key = "";
  const bool is_empty = login->address.empty() && login->ca.empty();
  const auto text = client::LoginFileText(*login);
  if (!text.ok()) return text.status();
  if (is_empty ? unlink(path.c_str()) != 0 : false) return CannotDo("remove", path);
  if (!is_empty)
    if (absl::Status status = WriteLogin(path, *text); !status.ok()) return status;
  invocation.out
      << "removed the login from " << Printable(path)
      << "; the token stays valid until an admin revokes it (`kiln user token revoke`)\n";
  NoteVariables(invocation, surroundings);
  return absl::OkStatus();
}

}  // namespace kiln::cli
