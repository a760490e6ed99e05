#include "clients/cpp/login.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_interceptor.h>

#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/socket_trust.h"

namespace kiln::client {
namespace {

struct Key {
  const char* name;      // in the file
  const char* variable;  // in the environment
  std::string Login::*value;
};
constexpr Key kKeys[] = {{"address", "KILN_ADDRESS", &Login::address},
                         {"token", "KILN_TOKEN", &Login::token},
                         {"ca", "KILN_CA", &Login::ca},
                         {"certificate", "KILN_CERTIFICATE", &Login::certificate},
                         {"key", "KILN_KEY", &Login::key}};

constexpr size_t kFileBytesMax = 64 << 10;
constexpr size_t kPemBytesMax = 4 << 20;  // a machine's bundle of authorities has about 200 KiB

// Follows the reason why the file cannot be read.
constexpr char kRemedy[] = ". Make it readable, or name another folder in $XDG_CONFIG_HOME";

// Parses `key = "value"` or `key = 'value'`, and a comment: the part of TOML that this file needs.
absl::Status TakeLine(absl::string_view line, Login* login) {
  line = absl::StripAsciiWhitespace(line);
  if (line.empty() || line[0] == '#') return absl::OkStatus();
  const size_t equals = line.find('=');
  if (equals == absl::string_view::npos) return absl::InvalidArgumentError("expected key = \"…\"");
  const absl::string_view name = absl::StripTrailingAsciiWhitespace(line.substr(0, equals));
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line.substr(equals + 1));
  const size_t end = rest.empty() ? absl::string_view::npos : rest.find(rest[0], 1);
  if (rest.empty() || (rest[0] != '"' && rest[0] != '\'') || end == absl::string_view::npos)
    return absl::InvalidArgumentError("expected a value in quotation marks");
  const absl::string_view after = absl::StripLeadingAsciiWhitespace(rest.substr(end + 1));
  if (!after.empty() && after[0] != '#')
    return absl::InvalidArgumentError("unexpected text after the value");
  for (const Key& key : kKeys) {
    if (name != key.name) continue;
    login->*key.value = std::string(rest.substr(1, end - 1));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("unknown key; use address, token, ca, certificate or key");
}

// As a shell does, replaces a leading "~/" by the home folder.
void ExpandHome(const Surroundings& surroundings, Login* login) {
  const auto home = surroundings.environment("HOME");
  if (!home) return;
  for (std::string Login::*path : {&Login::address, &Login::ca, &Login::certificate, &Login::key}) {
    if (absl::StartsWith(login->*path, "~/"))
      login->*path = absl::StrCat(*home, (login->*path).substr(1));
  }
}

std::string Elsewhere(const Login& file, const std::string& address, const std::string& path) {
  std::vector<std::string> names;
  for (const Key& key : kKeys) {
    if (key.value != &Login::address && !(file.*key.value).empty())
      names.push_back(absl::StrCat("\"", key.name, "\""));
  }
  if (names.empty()) return "";
  return absl::StrCat("The ", absl::StrJoin(names, " and "), " in ", path, " are for ",
                      file.address, ", not for ", address);
}

// Adds the token to every call of a channel. (gRPC's call credentials need a channel that it
// considers secure, and it does not consider sockets of this machine secure.)
class Bearer : public grpc::experimental::Interceptor {
 public:
  explicit Bearer(const std::string& token) : token_(token) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* call) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (call->QueryInterceptionHookPoint(Point::PRE_SEND_INITIAL_METADATA))
      call->GetSendInitialMetadata()->insert({"authorization", absl::StrCat("Bearer ", token_)});
    call->Proceed();
  }

 private:
  const std::string token_;
};
class BearerFactory : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit BearerFactory(std::string token) : token_(std::move(token)) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new Bearer(token_);  // gRPC owns it
  }

 private:
  const std::string token_;
};

}  // namespace

std::string LoginFile(const Surroundings& surroundings) {
  if (auto folder = surroundings.environment("XDG_CONFIG_HOME"))
    return absl::StrCat(*folder, "/kiln/config.toml");
  if (auto home = surroundings.environment("HOME"))
    return absl::StrCat(*home, "/.config/kiln/config.toml");
  return "";
}

absl::StatusOr<Login> ReadLoginFile(const Surroundings& surroundings) {
  const std::string path = LoginFile(surroundings);
  Login login;
  if (path.empty()) return login;
  const auto text = surroundings.read(path, kFileBytesMax);
  if (absl::IsNotFound(text.status())) return login;
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat(text.status().message(), kRemedy));
  std::istringstream stream(*text);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    if (absl::Status status = TakeLine(line, &login); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", status.message()));
  }
  ExpandHome(surroundings, &login);
  return login;
}

absl::StatusOr<std::string> LoginFileText(const Login& login) {
  std::string text = "# Written by `kiln login`; the clients of Kiln read it.\n";
  for (const Key& key : kKeys) {
    const std::string& value = login.*key.value;
    if (value.empty()) continue;
    if (value.find_first_of("\"\n\r") != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the ", key.name, " has a quotation mark or a line break, which the file cannot hold"));
    }
    absl::StrAppend(&text, key.name, " = \"", value, "\"\n");
  }
  return text;
}

absl::StatusOr<Login> FindLogin(const Login& given, const Surroundings& surroundings) {
  Login login = given;
  for (const Key& key : kKeys) {
    if ((login.*key.value).empty())
      login.*key.value = surroundings.environment(key.variable).value_or("");
  }
  const auto file = ReadLoginFile(surroundings);
  if (!file.ok()) return file.status();
  if (login.address.empty() || file->address.empty() ||
      IsSameAddress(login.address, file->address)) {
    for (const Key& key : kKeys) {
      if ((login.*key.value).empty()) login.*key.value = (*file).*key.value;
    }
  } else {
    login.elsewhere = Elsewhere(*file, login.address, LoginFile(surroundings));
  }
  if (!login.address.empty()) {
    if (absl::Status status = CheckAddress(login.address); !status.ok()) return status;
  }
  login.is_found = login.address.empty();
  login.address = FindAddress(login.address, surroundings, &login.skipped);
  if (login.certificate.empty() != login.key.empty())
    return absl::InvalidArgumentError("set a certificate together with its key");
  for (const char c : login.token) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c)))
      return absl::InvalidArgumentError(
          "the token contains invalid characters; copy it again from `kiln user add`");
  }
  if (!login.token.empty() && login.ca.empty() && !IsLocal(login.address)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a token is sent to another machine only over TLS: name the authority of the certificate "
        "of ",
        login.address, " in $KILN_CA or the key \"ca\" of ~/.config/kiln/config.toml (\"system\" ",
        "for the authorities that this machine trusts)", login.elsewhere.empty() ? "" : ". ",
        login.elsewhere));
  }
  // Any account can listen on that port.
  if (!login.token.empty() && login.ca.empty() && login.is_found &&
      !absl::StartsWith(login.address, "unix:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("no socket of a kilnd was found, and a token is not sent to ", login.address,
                     " unless you name it: set KILN_ADDRESS=", login.address,
                     " if that is your daemon, or name another address",
                     login.skipped.empty() ? "" : ". ", login.skipped));
  }
  return login;
}

absl::Status WithElsewhere(const absl::Status& status, const Login& login) {
  std::string more;
  if (absl::IsUnauthenticated(status) || absl::IsUnavailable(status)) more = login.elsewhere;
  if (absl::IsUnavailable(status) && !login.skipped.empty())
    absl::StrAppend(&more, more.empty() ? "" : ". ", login.skipped);
  if (more.empty()) return status;
  absl::Status result(status.code(), absl::StrCat(status.message(), ". ", more));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const Login& login,
                                                           const grpc::ChannelArguments& arguments,
                                                           const Surroundings& surroundings) {
  // An address that was found and not given may be another account's socket, with or without a
  // token.
  if (login.ca.empty() && (!login.token.empty() || login.is_found)) {
    if (absl::Status status = RequireTrusted(login.address, surroundings.user_id); !status.ok())
      return status;
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!login.ca.empty()) {
    grpc::SslCredentialsOptions options;
    const std::pair<const std::string&, std::string*> files[] = {
        {login.ca, &options.pem_root_certs},
        {login.certificate, &options.pem_cert_chain},
        {login.key, &options.pem_private_key}};
    for (const auto& [path, text] : files) {
      if (path.empty() || path == "system") continue;
      const auto content = surroundings.read(path, kPemBytesMax);
      if (!content.ok()) return absl::InvalidArgumentError(content.status().message());
      *text = *content;
      // Otherwise gRPC would report that no daemon answers.
      if (&path == &login.ca && !absl::StrContains(*content, "CERTIFICATE-----")) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, " has no certificate in PEM format (-----BEGIN CERTIFICATE-----)"));
      }
    }
    credentials = grpc::SslCredentials(options);
  }
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> bearers;
  if (!login.token.empty()) bearers.push_back(std::make_unique<BearerFactory>(login.token));
  return grpc::experimental::CreateCustomChannelWithInterceptors(login.address, credentials,
                                                                 arguments, std::move(bearers));
}

}  // namespace kiln::client
