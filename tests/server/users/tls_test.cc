// A daemon that is reachable by others: TLS, certificates, tokens, and the system's users at its
// socket.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/client.h"
#include "server/auth/user_store.h"
#include "server/relay/tls_reloader.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

// Returns a shell command's output with its exit status.
std::string Output(const std::string& command) {
  FILE* pipe = popen(absl::StrCat(command, " 2>&1").c_str(), "r");
  std::string text(1 << 16, '\0');
  text.resize(fread(text.data(), 1, text.size(), pipe));
  return absl::StrCat(text, "exit ", WEXITSTATUS(pclose(pipe)));
}

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Makes NAME.pem and NAME.key: an authority, and certificates issued by it.
class Authority {
 public:
  Authority(std::string folder, const std::string& name)
      : folder_(std::move(folder)), ca_(absl::StrCat(folder_, "/", name)) {
    Run(absl::StrCat("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2",
                     " -subj /CN=", name, " -keyout ", ca_, ".key -out ", ca_, ".pem"));
  }
  std::string ca() const { return ca_ + ".pem"; }
  // Issues a certificate for the common name and for 127.0.0.1.
  std::string Issue(const std::string& common_name, const std::string& file) const {
    const std::string path = absl::StrCat(folder_, "/", file);
    std::ofstream(path + ".ext") << "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
    Run(absl::StrCat("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=",
                     common_name, " -keyout ", path, ".key -out ", path, ".csr && ",
                     "openssl x509 -req -days 2 -CAcreateserial -CA ", ca_, ".pem -CAkey ", ca_,
                     ".key -extfile ", path, ".ext -in ", path, ".csr -out ", path, ".pem"));
    return path;
  }

 private:
  static void Run(const std::string& command) {
    const std::string output = Output(command);
    EXPECT_THAT(output, ::testing::EndsWith("exit 0"));
  }
  const std::string folder_;
  const std::string ca_;
};

std::string NewFolder() {
  std::string pattern = "/tmp/kiln_tls_XXXXXX";
  return mkdtemp(pattern.data());
}

class TlsTest : public ::testing::Test {
 protected:
  ~TlsTest() override { std::filesystem::remove_all(folder_); }

  TestDaemonOptions Options() {
    TestDaemonOptions options;
    options.configure = [this](config::Config& config) {
      config.tls_certificate = server_ + ".pem";
      config.tls_key = server_ + ".key";
      config.tls_client_ca = clients_.ca();
    };
    return options;
  }
  std::string AddUser(const std::string& name, const std::vector<std::string>& identities = {}) {
    Client owner(daemon_.address());
    const std::string token = testing::AddUser(owner, name, "", identities);
    EXPECT_NE(token, "");
    return token;
  }
  // With a client certificate if `own`, a file's path without its extension, is not empty.
  static std::shared_ptr<grpc::ChannelCredentials> Trusting(const Authority& authority,
                                                            const std::string& own = "") {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ReadAll(authority.ca());
    if (!own.empty()) {
      options.pem_cert_chain = ReadAll(own + ".pem");
      options.pem_private_key = ReadAll(own + ".key");
    }
    return grpc::SslCredentials(options);
  }
  std::string port() { return daemon_.daemon().listening()[1]; }

  const std::string folder_ = NewFolder();
  const Authority servers_{folder_, "servers"};
  const Authority clients_{folder_, "clients"};
  const std::string server_ = servers_.Issue("box", "server");
  TestDaemon daemon_{Options()};
};

TEST_F(TlsTest, TokensOverTls) {
  const std::string token = AddUser("ann");
  EXPECT_TRUE(Client(port(), {token, Trusting(servers_)}).opened.ok());
  EXPECT_EQ(Client(port(), {"", Trusting(servers_)}).opened.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(Client(port(), {"kiln_x", Trusting(servers_)}).opened.error_code(),
            grpc::UNAUTHENTICATED);
  // Without TLS, and by a client that trusts another authority.
  EXPECT_EQ(Client(port(), {.token = token}).opened.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(Client(port(), {token, Trusting(clients_)}).opened.error_code(), grpc::UNAVAILABLE);
}

TEST_F(TlsTest, NobodyIsLetInBeforeThereIsAUser) {
  EXPECT_EQ(Client(port(), {"", Trusting(servers_)}).opened.error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(TlsTest, ACertificateNamesAUser) {
  AddUser("ann", {"certificate"});
  Client ann(port(), {"", Trusting(servers_, clients_.Issue("ann", "ann"))});
  ASSERT_TRUE(ann.opened.ok()) << ann.opened.error_message();
  grpc::ClientContext context;
  v1::ListSessionsResponse sessions;
  ASSERT_TRUE(ann.sessions->ListSessions(&context, {}, &sessions).ok());
  EXPECT_EQ(sessions.sessions(0).user(), "ann");
  EXPECT_EQ(
      Client(port(), {"", Trusting(servers_, clients_.Issue("eve", "eve"))}).opened.error_code(),
      grpc::UNAUTHENTICATED);
  // Her name, but issued by an authority that the daemon does not know.
  EXPECT_EQ(Client(port(), {"", Trusting(servers_, servers_.Issue("ann", "false_ann"))})
                .opened.error_code(),
            grpc::UNAVAILABLE);
}

// Tokens that scrapers send as passwords must not be sent in the clear either.
TEST_F(TlsTest, MetricsAreServedOverTls) {
  Client owner(daemon_.address());
  const std::string viewer = testing::AddUser(owner, "prometheus", "viewer");
  Client user(port(), {AddUser("ann"), Trusting(servers_)});
  auto stream = user.Connect();
  const std::string at = absl::StrCat("127.0.0.1:", daemon_.daemon().metrics_port());
  const std::string trusting = "--cacert " + servers_.ca();
  EXPECT_EQ(Scrape("https://" + at, viewer, trusting), 0);
  EXPECT_EQ(Scrape("https://" + at, viewer, trusting + " --http1.1"), 0);
  EXPECT_EQ(Scrape("https://" + at, "", trusting), 22);
  EXPECT_EQ(Scrape("https://" + at, viewer, "--cacert " + clients_.ca()), 60);
  EXPECT_NE(Scrape("http://" + at, viewer), 0);
  EXPECT_FALSE(stream->Call(Write(1, {7})).has_error());
}

TEST_F(TlsTest, MetricsAreServedOverHttpWhereThatIsWanted) {
  daemon_.config().metrics_plain_http = true;
  daemon_.Restart();
  Client owner(daemon_.address());
  const std::string viewer = testing::AddUser(owner, "prometheus", "viewer");
  const std::string at = absl::StrCat("127.0.0.1:", daemon_.daemon().metrics_port());
  EXPECT_EQ(Scrape("http://" + at, viewer), 0);
  EXPECT_EQ(Scrape("http://" + at, ""), 22);
}

// The holder of a certificate with that name need not be the user for whom the token was made.
TEST_F(TlsTest, ACertificateOfAnotherUsersNameIsRefused) {
  const std::string token = AddUser("games");
  Client user(port(), {token, Trusting(servers_)});
  auto stream = user.Connect();
  const Client::Login login{"", Trusting(servers_, clients_.Issue("games", "games"))};
  const Client refused(port(), login);
  EXPECT_EQ(refused.opened.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_THAT(refused.opened.error_message(), HasSubstr("`kiln user add NAME --by certificate`"));
  EXPECT_FALSE(stream->Call(Write(1, {7})).has_error());
}

TEST_F(TlsTest, CertificatesAreReadAgainWhileStreamsGoOn) {
  const std::string token = AddUser("ann");
  Client before(port(), {token, Trusting(servers_)});
  auto stream = before.Connect();
  EXPECT_EQ(stream->Call(Write(1, {7})).error().code(), 0);
  const Authority successor(folder_, "successor");
  const std::string renewed = successor.Issue("box", "renewed");
  for (const char* ending : {".key", ".pem"})
    std::filesystem::rename(renewed + ending, server_ + ending);
  EXPECT_TRUE(Eventually([&] { return Client(port(), {token, Trusting(successor)}).opened.ok(); }));
  EXPECT_EQ(Floats(stream->Call(Read(1)).data()), std::vector<float>{7});
}

// An empty file, a truncated one, not PEM, another certificate's key: the daemon continues with the
// previous files.
TEST_F(TlsTest, FilesThatCannotBeUsedLeaveTheEarlierOnesInUse) {
  const std::string token = AddUser("ann");
  Client before(port(), {token, Trusting(servers_)});
  auto stream = before.Connect();
  const std::string certificate = ReadAll(server_ + ".pem"), key = ReadAll(server_ + ".key");
  const std::string strange = ReadAll(servers_.Issue("box", "strange") + ".key");
  for (const std::string& bad : {std::string(), certificate.substr(0, certificate.size() / 2),
                                 // A chain whose second certificate was cut.
                                 certificate + certificate.substr(0, certificate.size() / 2),
                                 std::string(999, '\xff'), strange}) {
    for (const char* ending : {".pem", ".key"}) {
      std::ofstream(server_ + ending) << bad;
      const int64_t rounds = daemon_.daemon().rounds();
      ASSERT_TRUE(Eventually([&] { return daemon_.daemon().rounds() > rounds + 1; }));
      const Client meanwhile(port(), {token, Trusting(servers_)});
      EXPECT_TRUE(meanwhile.opened.ok()) << meanwhile.opened.error_message();
      std::ofstream(server_ + ".pem") << certificate;
      std::ofstream(server_ + ".key") << key;
    }
  }
  EXPECT_FALSE(stream->Call(Write(1, {7})).has_error());
}

TEST_F(TlsTest, FilesThatCannotBeUsedAreInTheLog) {
  // Not the daemon's own files, which it watches too.
  const std::string used = servers_.Issue("box", "used");
  const auto tls = *relay::TlsReloader::Load({used + ".pem", used + ".key", clients_.ca()});
  // The metrics' port has the same files, and one report is enough.
  const auto quiet = *relay::TlsReloader::Load({used + ".pem", used + ".key", ""},
                                               relay::Protocol::kHttp1, relay::Reports::kNothing);
  const relay::TlsContext first = tls->current(), first_quiet = quiet->current();
  const std::string renewed = servers_.Issue("box", "renewed");
  ::testing::internal::CaptureStderr();
  tls->Look();
  std::filesystem::rename(renewed + ".key", used + ".key");
  tls->Look();
  tls->Look();
  quiet->Look();
  const std::string refused = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(refused, ::testing::AllOf(
                           HasSubstr("event=tls_files_refused"),
                           HasSubstr("used.key is not a file with the certificate's private key")));
  EXPECT_EQ(refused.find("tls_files_refused"), refused.rfind("tls_files_refused"));
  EXPECT_EQ(tls->current(), first);
  ::testing::internal::CaptureStderr();
  std::filesystem::rename(renewed + ".pem", used + ".pem");
  tls->Look();
  quiet->Look();
  EXPECT_NE(tls->current(), first);
  EXPECT_NE(quiet->current(), first_quiet);
  const std::string replaced = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(replaced, HasSubstr("event=tls_files_replaced"));
  EXPECT_EQ(replaced.find("tls_files_replaced"), replaced.rfind("tls_files_replaced"));
}

TEST_F(TlsTest, TheCppClientLogsIn) {
  const std::string token = AddUser("ann");
  kiln::ConnectOptions options = {
      .address = port(), .token = token, .ca = servers_.ca(), .timeout = absl::Minutes(10)};
  const auto client = kiln::Client::Connect(options);
  EXPECT_TRUE(client.ok()) << client.status();
  options.token.clear();
  const auto refused = kiln::Client::Connect(options);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("KILN_TOKEN"));
}

TEST_F(TlsTest, ListeningBeyondLoopbackNeedsTlsAndUsers) {
  const std::string flags =
      absl::StrCat(KILND " --metrics_listen=none --devices=null --cache_dir=", folder_,
                   "/cache --state_dir=", folder_, "/state --listen=0.0.0.0:0");
  const std::string open = Output(flags);
  EXPECT_THAT(open, HasSubstr("so it requires TLS: set --tls_certificate and --tls_key"));
  EXPECT_THAT(open, HasSubstr("exit 1"));
  const std::string tls =
      absl::StrCat(" --tls_certificate=", server_, ".pem --tls_key=", server_, ".key");
  EXPECT_THAT(Output(flags + tls), HasSubstr("the daemon has no users"));
  EXPECT_THAT(Output(absl::StrCat(flags, " --tls_certificate=", server_, ".key --tls_key=", server_,
                                  ".key")),
              HasSubstr("is not a file with a certificate"));
  EXPECT_THAT(Output(absl::StrCat(flags, " --tls_certificate=", server_, ".pem --tls_key=", folder_,
                                  "/clients.key")),
              HasSubstr("is not a file with the certificate's private key"));
}

// Runs `kiln` as another user of this machine, at the daemon's Unix socket.
std::string AsNobody(TestDaemon& daemon, const std::string& command) {
  // In a folder that others can read.
  chmod(daemon.folder().c_str(), 0755);
  const std::string copy = daemon.folder() + "/kiln";
  std::filesystem::copy_file(KILN_CLI, copy, std::filesystem::copy_options::skip_existing);
  chmod(copy.c_str(), 0755);
  return Output(absl::StrCat("setpriv --reuid=nobody --regid=nogroup --clear-groups env -i ", copy,
                             " ", command, " --address ", daemon.address()));
}

// Only root can become another user, who may not be able to read the files that ThreadSanitizer
// needs: its list of suppressions and a library of the build.
bool CanBeNobody() {
#ifdef __SANITIZE_THREAD__
  return false;
#else
  return geteuid() == 0;
#endif
}

TEST(PeerTest, OthersOfTheMachineAreTheirOwnUsers) {
  if (!CanBeNobody()) GTEST_SKIP() << "takes root, and a program that needs no sanitizer's files";
  TestDaemonOptions options;
  options.configure = [](config::Config& config) { config.system_users = true; };
  TestDaemon daemon(std::move(options));
  Client root(daemon.address());
  EXPECT_THAT(AsNobody(daemon, "devices"), HasSubstr("exit 0"));
  EXPECT_THAT(AsNobody(daemon, "sessions"), HasSubstr("no session is open"));
  const std::string refused = AsNobody(daemon, "cache clear");
  EXPECT_THAT(refused, HasSubstr("requires the role admin, but nobody has the role user"));
  EXPECT_THAT(AsNobody(daemon, "user add nobody --role admin"),
              HasSubstr("requires the role admin"));
  EXPECT_THAT(AsNobody(daemon, "audit"), HasSubstr("requires the role admin"));
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " audit --address ", daemon.address())),
              HasSubstr("nobody  refused  /kiln.v1.AdminService/ClearCache  ROLE"));
}

TEST(PeerTest, AnAccountOfAnotherUsersNameIsNotThatUser) {
  if (!CanBeNobody()) GTEST_SKIP() << "takes root, and a program that needs no sanitizer's files";
  TestDaemonOptions options;
  options.configure = [](config::Config& config) { config.system_users = true; };
  TestDaemon daemon(std::move(options));
  const std::string at = absl::StrCat(" --address ", daemon.address());
  // The account may have sessions, so another user must not get its name.
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " user add nobody --role admin", at)),
              HasSubstr("this machine has a system account nobody"));
  EXPECT_THAT(AsNobody(daemon, "sessions"), HasSubstr("no session is open"));
  // Unless the user is that account.
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " user add nobody --role admin --by system", at)),
              HasSubstr("kiln_"));
  EXPECT_THAT(AsNobody(daemon, "audit"), HasSubstr("exit 0"));
}

// A user who was added before system accounts were allowed.
TEST(PeerTest, AnAccountDoesNotInheritAUsersRole) {
  if (!CanBeNobody()) GTEST_SKIP() << "takes root, and a program that needs no sanitizer's files";
  TestDaemonOptions options;
  options.configure = [](config::Config& config) { config.system_users = true; };
  options.before_start = [](const std::string& state_folder) {
    auto store = *auth::UserStore::Open(state_folder + "/users");
    ASSERT_TRUE(store->Add({.name = "nobody", .role = auth::Role::kAdmin}).ok());
  };
  TestDaemon daemon(std::move(options));
  const std::string refused = AsNobody(daemon, "audit");
  EXPECT_THAT(refused,
              HasSubstr("has the same name as the user nobody, who is identified by a token"));
  EXPECT_THAT(refused, HasSubstr("exit 1"));
  EXPECT_TRUE(Client(daemon.address()).opened.ok());
}

TEST(PeerTest, OthersStayOutUnlessTheyAreLetIn) {
  if (!CanBeNobody()) GTEST_SKIP() << "takes root, and a program that needs no sanitizer's files";
  TestDaemon daemon;
  EXPECT_THAT(AsNobody(daemon, "devices"), HasSubstr("exit 1"));
  // Even if the socket's mode would allow it.
  chmod((daemon.folder() + "/kilnd.sock").c_str(), 0666);
  EXPECT_THAT(AsNobody(daemon, "devices"), HasSubstr("may not use the daemon"));
  EXPECT_TRUE(Client(daemon.address()).opened.ok());
}

TEST(PeerTest, TokensAreExchangedByTheCommandLineAndSessionsGoOn) {
  TestDaemon daemon;
  const std::string at = absl::StrCat(" --address ", daemon.address());
  const auto token_of = [](const std::string& output) {
    const size_t begin = output.find("kiln_");
    return output.substr(begin, output.find('\n', begin) - begin);
  };
  const std::string tcp = daemon.daemon().listening()[1];
  const std::string old = token_of(Output(absl::StrCat(KILN_CLI " user add ann", at)));
  Client before(tcp, {.token = old});
  auto stream = before.Connect();
  ASSERT_FALSE(stream->Call(Write(1, {1, 2})).has_error());
  const std::string added = Output(absl::StrCat(KILN_CLI " user token add ann --expires 30d", at));
  const std::string next = token_of(added);
  const std::string list = Output(absl::StrCat(KILN_CLI " user token list ann", at));
  EXPECT_THAT(list, HasSubstr(old.substr(5, 16)));
  EXPECT_THAT(list, HasSubstr(next.substr(5, 16)));
  EXPECT_TRUE(Client(tcp, {.token = next}).opened.ok());
  EXPECT_TRUE(Client(tcp, {.token = old}).opened.ok());

  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " user token revoke ", old.substr(5, 16), at)),
              HasSubstr("ann's sessions continue"));
  EXPECT_EQ(Client(tcp, {.token = old}).opened.error_code(), grpc::UNAUTHENTICATED);
  // The session continues and is reached with the new token.
  EXPECT_FALSE(stream->Call(Write(2, {3})).has_error());
  stream->Drop();
  Client after(tcp, {.token = next});
  Stream again(*after.sessions, before.session.session_id());
  ASSERT_TRUE(again.attached());
  EXPECT_EQ(again.last_sequence(), 2);
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " user token revoke ", old.substr(5, 16), at)),
              HasSubstr("there is no token"));
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " user token add eve", at)),
              HasSubstr("there is no user"));
}

TEST(PeerTest, UsersComeAndGoByTheCommandLine) {
  TestDaemon daemon;
  const std::string at = absl::StrCat(" --address ", daemon.address());
  const std::string added = Output(absl::StrCat(KILN_CLI " user add ann", at));
  EXPECT_THAT(added, HasSubstr("shown only once"));
  const std::string token = added.substr(added.find("kiln_"), added.find('\n'));
  EXPECT_TRUE(Client(daemon.daemon().listening()[1], {.token = token}).opened.ok());
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " user list", at)), HasSubstr("ann   user"));
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " user revoke ann", at)), HasSubstr("revoked ann"));
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " devices --token ", token, at)),
              HasSubstr("unknown, wrong, expired or revoked"));
  EXPECT_THAT(Output(absl::StrCat(KILN_CLI " user add 'x\ny'", at)),
              HasSubstr("a user name must have"));
}

}  // namespace
}  // namespace kiln::testing
