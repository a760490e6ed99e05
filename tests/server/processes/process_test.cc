// The kilnd binary: real compiler, real CPU device, signals.
#include <netinet/in.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"
#include "tests/server/client.h"
#include "tests/server/kilnd_process.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the stdout of a command.
std::string Printed(const char* command) {
  FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return "";
  std::string text(1 << 16, '\0');
  text.resize(fread(text.data(), 1, text.size(), pipe));
  pclose(pipe);
  return text;
}

TEST_F(ProcessTest, HelpListsTheFlags) {
  const std::string text = Printed(KILND " --help");
  EXPECT_THAT(text, HasSubstr("--listen (list) [listen]"));
  EXPECT_THAT(text, HasSubstr("--cache_dir"));
}

TEST_F(ProcessTest, PrintsItsVersion) {
  EXPECT_THAT(Printed(KILND " --version"),
              ::testing::MatchesRegex(
                  "kilnd [0-9]+\\.[0-9]+\\.[0-9]+\ncommit ([0-9a-f]{12}|unknown)\nbuild "
                  "[A-Za-z]*, [A-Za-z]+ [0-9.]+, [a-z0-9_]+\n"));
}

TEST_F(ProcessTest, ChecksAConfigurationAndNamesAllProblems) {
  const std::string file = folder_ + "/kilnd.toml";
  std::ofstream(file) << "log_level = \"loud\"\n[cache]\nsize = 3\n[sessions]\nlimit = 0\n";
  const std::string check = absl::StrCat(KILND " --check_config --config=", file);
  const std::string said = Printed(
      (check + " --cpu_thread=1 --disable_passes=fly --listen=0.0.0.0:1 2>&1; echo $?").c_str());
  for (const std::string& problem :
       {file + ":3: unknown key \"cache.size\"", std::string("log_level: \"loud\" is not allowed"),
        std::string("sessions.limit: 0 is out of range"),
        std::string("unknown flag \"--cpu_thread=1\""), std::string("fly"),
        std::string("0.0.0.0:1 can be reached from other machines")})
    EXPECT_THAT(said, HasSubstr(problem));
  EXPECT_THAT(said, ::testing::EndsWith("\n1\n"));
  std::ofstream(file) << "[sessions]\nlimit = 7\n";
  EXPECT_EQ(Printed((check + " 2>&1; echo $?").c_str()), "the configuration has no problems\n0\n");
  const std::string printed =
      Printed(absl::StrCat(KILND " --print_config --cpu_threads=3 --config=", file).c_str());
  EXPECT_THAT(printed, HasSubstr(absl::StrCat("\nlimit = 7  # ", file, ":2\n")));
  EXPECT_THAT(printed, HasSubstr("\ncpu_threads = 3  # --cpu_threads\n"));
  EXPECT_THAT(printed, HasSubstr("\nlog_level = \"info\"  # default\n"));
}

TEST_F(ProcessTest, ReloadsAtSighup) {
  const std::string file = folder_ + "/kilnd.toml";
  std::ofstream(file) << "[quota]\nsessions = 1\n";
  more_flags_ = {"--config=" + file};
  Start();
  const auto says_after_hangup = [&](const std::string& text) {
    const size_t before = Log().size();
    kill(pid_, SIGHUP);
    Eventually([&] { return Log().find(text, before) != std::string::npos || HasEnded(); });
    ASSERT_THAT(Log().substr(before), HasSubstr(text));
  };
  Client first(address_);
  ASSERT_TRUE(first.opened.ok()) << first.opened.error_message();
  EXPECT_FALSE(Client(address_).opened.ok());
  std::ofstream(file)
      << "log_level = \"debug\"\n[quota]\nsessions = 2\n[devices]\ncpu_threads = 3\n";
  says_after_hangup(
      "event=reloaded changed=log_level,quota.sessions need_restart=devices.cpu_threads\n");
  Client second(address_);
  EXPECT_TRUE(second.opened.ok()) << second.opened.error_message();
  // A mistake changes nothing.
  std::ofstream(file) << "[quota]\nsessions = 0\nsession = 3\n";
  says_after_hangup("event=reload_failed");
  EXPECT_FALSE(Client(address_).opened.ok());
  EXPECT_FALSE(HasEnded());
  // It neither waits for a writer nor reads without an end.
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  says_after_hangup(file + ": it is a FIFO; name a regular file");
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);
  says_after_hangup(file + ": it is a device; name a regular file");
  std::filesystem::remove(file);
  std::ofstream(file) << "";
  std::filesystem::resize_file(file, uintmax_t{1} << 40);
  says_after_hangup(file + ": it has more than ");
  const int status = End(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(ProcessTest, ComputesOnTheCpu) {
  Start();
  Client client(address_);
  ASSERT_TRUE(client.opened.ok()) << client.opened.error_message();
  EXPECT_EQ(client.session.device(), "cpu:0");
  auto stream = client.Connect();
  stream->Send(Define(1, AccumulateGraph(3)));
  stream->Send(Write(1, {0, 0, 0}));
  stream->Send(Write(2, {1, 2, 3}));
  for (uint64_t i = 0; i < 100; ++i) stream->Send(RunProgram(1, {1, 2}, {10 + i}));
  EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ElementsAre(100, 200, 300));
  EXPECT_THAT(Floats(stream->Call(Read(19)).data()), ElementsAre(10, 20, 30));
}

TEST_F(ProcessTest, TellsSystemdThatItServesAndLivesAndStops) {
  const std::string path = folder_ + "/notify";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 120, .tv_usec = 0};
  ASSERT_EQ(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  setenv("WATCHDOG_USEC", "400000", 1);
  Start();
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  const auto next = [&] {
    std::string text(100, '\0');
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, recv(listener, text.data(), 100, 0))));
    return text;
  };
  EXPECT_EQ(next(), "READY=1");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(), "WATCHDOG=1");
  // Read before Wait, because kilnd drops notifications when the socket is full.
  kill(pid_, SIGTERM);
  std::string last = next();
  while (last == "WATCHDOG=1") last = next();
  EXPECT_EQ(last, "STOPPING=1");
  EXPECT_EQ(Wait(std::exchange(pid_, 0)), 0);
  close(listener);
}

TEST_F(ProcessTest, TermUnderLoadExitsWithZero) {
  Start();
  std::atomic<int> answered{0};
  std::thread load([&] {
    Client client(address_);
    auto stream = client.Connect();
    stream->Call(Define(1, AccumulateGraph(1000)));
    stream->Call(Write(1, std::vector<float>(1000)));
    stream->Call(Write(2, std::vector<float>(1000)));
    // This loop ends only when the daemon stops.
    for (uint64_t i = 0; !stream->Call(RunProgram(1, {1, 2}, {10 + i})).has_error(); ++i)
      ++answered;
  });
  EXPECT_TRUE(Eventually([&] { return answered >= 100; }));
  const int status = End(SIGTERM);
  load.join();
  EXPECT_THAT(Log(), HasSubstr("event=stopped"));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << "\n" << Log();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/kilnd.sock"));
}

TEST_F(ProcessTest, CacheAndSocketSurviveKill) {
  Start();
  {
    Client client(address_);
    EXPECT_FALSE(client.Connect()->Call(Define(1, AddGraph(64))).has_error());
  }
  EXPECT_TRUE(WIFSIGNALED(End(SIGKILL)));
  std::filesystem::remove(folder_ + "/log");
  Start();
  Client client(address_);
  auto stream = client.Connect();
  EXPECT_FALSE(stream->Call(Define(1, AddGraph(64))).has_error());
  grpc::ClientContext context;
  v1::ListProgramsResponse programs;
  ASSERT_TRUE(client.programs->ListPrograms(&context, {}, &programs).ok());
  EXPECT_GT(programs.programs(0).distinct_kernels(), 0);
  EXPECT_EQ(programs.programs(0).kernels_from_cache(), programs.programs(0).distinct_kernels());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/cache/kernels.sqlite.damaged"));
}

// Two rows that this daemon has written are exchanged.
TEST_F(ProcessTest, ExchangedRowsOfTheCacheAreCompiledAgain) {
  const auto define = [](Client& client, Stream& stream) {
    EXPECT_FALSE(stream.Call(Define(1, AddGraph(64))).has_error());
    EXPECT_FALSE(stream.Call(Define(2, NegGraph(64))).has_error());
  };
  Start();
  {
    Client client(address_);
    define(client, *client.Connect());
  }
  End(SIGTERM);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ + "/cache/kernels.sqlite").c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database,
                         "CREATE TEMP TABLE before AS SELECT * FROM kernels;"
                         "UPDATE kernels SET value=(SELECT value FROM before WHERE "
                         "before.key<>kernels.key)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_EQ(sqlite3_total_changes(database), 2);
  sqlite3_close(database);
  std::filesystem::remove(folder_ + "/log");
  Start();
  Client client(address_);
  auto stream = client.Connect();
  define(client, *stream);
  stream->Send(Write(1, std::vector<float>(64, 3)));
  stream->Send(RunProgram(1, {1, 1}, {2}));
  stream->Send(RunProgram(2, {1}, {3}));
  EXPECT_EQ(Floats(stream->Call(Read(2)).data()), std::vector<float>(64, 6));
  EXPECT_EQ(Floats(stream->Call(Read(3)).data()), std::vector<float>(64, -3));
  EXPECT_THAT(Log(), HasSubstr("event=kernel_cache_rejected"));
}

TEST_F(ProcessTest, ARunThatWouldTakeDaysIsRefused) {
  Start();
  Client client(address_);
  auto stream = client.Connect();
  const v1::Result refused = stream->Call(Define(1, SumOfSines(int64_t{1} << 47)));
  EXPECT_EQ(refused.error().code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(refused.error()), "RUN_TOO_LONG");
  EXPECT_THAT(refused.error().message(), HasSubstr("would take about"));
  EXPECT_THAT(refused.error().message(), HasSubstr("the limit is 600"));
  EXPECT_FALSE(stream->Call(Define(2, SumOfSines(1000))).has_error());
}

TEST_F(ProcessTest, KilledClientsMemoryComesBack) {
  Start();
  const pid_t child = fork();
  if (child == 0) {
    // gRPC does not survive a fork of a process that uses it, so the client is a separate program.
    execl(KILND_TEST_CLIENT, KILND_TEST_CLIENT, address_.c_str(), nullptr);
    _exit(127);
  }
  Client client(address_);
  const auto memory = [&] {
    grpc::ClientContext context;
    v1::ListDevicesResponse devices;
    client.devices->ListDevices(&context, {}, &devices);
    return devices.devices(0).memory_used_bytes();
  };
  EXPECT_TRUE(Eventually([&] { return memory() >= 4'000'000; }));
  kill(child, SIGKILL);
  Wait(child);
  EXPECT_TRUE(Eventually([&] { return memory() < 100'000; }));
}

struct ProcessState {
  std::string state = "gone";  // "Z": it has exited, and its parent has not waited for it
  pid_t parent = 0;
};

ProcessState StateOf(pid_t process) {
  std::stringstream text;
  text << std::ifstream(absl::StrCat("/proc/", process, "/stat")).rdbuf();
  // "12 (kilnd) S 1 …": the name may contain anything.
  const size_t name_end = text.str().rfind(')');
  ProcessState found;
  if (name_end != std::string::npos)
    std::stringstream(text.str().substr(name_end + 1)) >> found.state >> found.parent;
  return found;
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && StateOf(process).parent == parent) children.push_back(process);
  }
  return children;
}

TEST_F(ProcessTest, CompilersThatAreKilledAreReplacedAndEndWithTheDaemon) {
  Start();
  Client client(address_);
  auto stream = client.Connect();
  EXPECT_FALSE(stream->Call(Define(1, AddGraph(64))).has_error());
  ASSERT_FALSE(ChildrenOf(pid_).empty());
  for (const pid_t compiler : ChildrenOf(pid_)) kill(compiler, SIGKILL);
  EXPECT_FALSE(stream->Call(Define(2, NegGraph(64))).has_error());
  const std::vector<pid_t> compilers = ChildrenOf(pid_);
  ASSERT_FALSE(compilers.empty());
  End(SIGKILL);
  for (const pid_t compiler : compilers) {
    EXPECT_TRUE(Eventually([&] {
      const std::string state = StateOf(compiler).state;
      return state == "gone" || state == "Z";
    })) << compiler;
  }
}

class AllDevicesTest : public ProcessTest {
 protected:
  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = ProcessTest::Flags();
    std::erase(flags, kQuickFlag);
    return flags;
  }
};

TEST_F(AllDevicesTest, AVendorsLibraryThatCrashesIsLeftOut) {
  setenv("LD_LIBRARY_PATH", KILN_CRASHING_OPENCL, 1);
  Start();
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_THAT(Log(), HasSubstr("driver=opencl devices=0 why_not_more=\"a process that only listed "
                               "its devices was ended by SIGABRT"));
  const Client client(address_);
  EXPECT_EQ(client.session.device(), "cpu:0");
  grpc::ClientContext context;
  v1::ListDevicesResponse list;
  ASSERT_TRUE(client.devices->ListDevices(&context, {}, &list).ok());
  std::map<std::string, v1::Driver> drivers;
  for (const auto& driver : list.drivers()) drivers[driver.name()] = driver;
  EXPECT_EQ(drivers["cpu"].devices(), 1);
  ASSERT_TRUE(drivers.contains("opencl"));
  EXPECT_EQ(drivers["opencl"].devices(), 0);
  EXPECT_THAT(drivers["opencl"].why_not_more(), HasSubstr("was ended by SIGABRT"));
}

// Started with a small soft limit, as by a shell or a service manager.
TEST_F(ProcessTest, ManyIdleConnectionsKeepNobodyOut) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 128;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  Start();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<int> idle;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  address_.copy(address.sun_path, sizeof(address.sun_path) - 1, 5);  // without "unix:"
  for (int i = 0; i < 500; ++i) {
    idle.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(idle.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  const Client client(address_);
  EXPECT_TRUE(client.opened.ok()) << client.opened.error_message();
  for (const int each : idle) close(each);
}

// Without users, every account on the machine would have access.
TEST_F(ProcessTest, ADaemonWhoseUsersAreGoneDoesNotStart) {
  Start();
  End(SIGTERM);
  ASSERT_TRUE(std::filesystem::remove(folder_ + "/state/users"));
  EXPECT_EQ(WEXITSTATUS(Wait(Spawn(Flags()))), 1);
  EXPECT_THAT(Log(), HasSubstr("there is no " + folder_ + "/state/users beside "));
  ASSERT_TRUE(std::filesystem::remove(folder_ + "/state/token_key"));
  std::filesystem::remove(folder_ + "/log");
  Start();
  EXPECT_TRUE(Client(address_).opened.ok());
}

// Without it no token can be checked, and a new key would hide that.
TEST_F(ProcessTest, ADaemonWhoseTokenKeyIsGoneOrDamagedDoesNotStart) {
  const std::string key = folder_ + "/state/token_key", saved = folder_ + "/saved_key";
  const auto token_of_ann = [&] {
    Client client(address_);
    return AddUser(client, "ann");
  };
  Start();
  ASSERT_NE(token_of_ann(), "");
  End(SIGTERM);
  std::filesystem::copy_file(key, saved);
  const auto refuses = [&](const std::string& why) {
    const size_t before = Log().size();
    EXPECT_EQ(WEXITSTATUS(Wait(Spawn(Flags()))), 1);
    EXPECT_THAT(Log().substr(before), HasSubstr(why));
    EXPECT_THAT(Log().substr(before), HasSubstr("start kilnd once with --new_token_key"));
  };
  std::filesystem::remove(key);
  refuses("there is no " + key);
  std::filesystem::copy_file(saved, key);
  std::filesystem::resize_file(key, 20);
  refuses(key + " is damaged");
  std::ofstream(key, std::ios::trunc) << std::string(32, 'x');
  refuses(key + " is not the key of the users' tokens");
  // With the right key, and then without one: users stay, and get new tokens.
  std::filesystem::copy_file(saved, key, std::filesystem::copy_options::overwrite_existing);
  Start();
  End(SIGTERM);
  std::filesystem::remove(key);
  more_flags_ = {"--new_token_key"};
  Start();
  EXPECT_THAT(Log(), HasSubstr("event=tokens_ended"));
  EXPECT_EQ(token_of_ann(), "") << "the user is there";
  Client client(address_);
  v1::AddTokenRequest request;
  request.set_user("ann");
  EXPECT_TRUE(Try(client.admin, &v1::AdminService::Stub::AddToken, request).ok());
  End(SIGTERM);
  more_flags_.clear();
  Start();
}

TEST_F(ProcessTest, SecondDaemonAndBadConfigurationFailWithOneLine) {
  Start();
  const int second = Wait(Spawn(Flags()));
  EXPECT_EQ(WEXITSTATUS(second), 1);
  // It would overwrite the first daemon's users and limits.
  EXPECT_THAT(
      Log(), HasSubstr(absl::StrCat("another kilnd (process ", pid_, ") is using the state folder ",
                                    folder_, "/state; stop it first, or use another")));
  std::vector<std::string> elsewhere = Flags();
  elsewhere.push_back("--state_dir=" + folder_ + "/elsewhere");
  EXPECT_EQ(WEXITSTATUS(Wait(Spawn(elsewhere))), 1);
  EXPECT_THAT(Log(), HasSubstr("another kilnd is running on unix:"));
  // A port that another program uses.
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string where = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  EXPECT_EQ(WEXITSTATUS(Wait(Spawn({"--listen=" + where, "--state_dir=" + folder_ + "/other",
                                    "--cache_dir=" + folder_ + "/cache"}))),
            1);
  EXPECT_THAT(Log(), HasSubstr("cannot listen on " + where));
  close(taken);
  std::ofstream(folder_ + "/kiln.toml") << "\n[cache]\nfoldr = 1\n";
  const int mistaken = Wait(Spawn({"--config=" + folder_ + "/kiln.toml"}));
  EXPECT_EQ(WEXITSTATUS(mistaken), 1);
  EXPECT_THAT(Log(), HasSubstr("kiln.toml:3: unknown key"));
}

}  // namespace
}  // namespace kiln::testing
