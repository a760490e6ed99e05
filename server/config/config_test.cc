#include "server/config/config.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/flags.h"

namespace kiln::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Environment FakeEnvironment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::make_optional(found->second);
  };
}

Config Plain() { return Defaults(FakeEnvironment({{"HOME", "/home/ann"}}), 1000); }

TEST(Config, DefaultsWithAndWithoutXdg) {
  EXPECT_THAT(Plain().listen, ElementsAre("unix:/tmp/kiln-1000/kilnd.sock", "127.0.0.1:7433"));
  EXPECT_EQ(Plain().cache_folder, "/home/ann/.cache/kiln");
  EXPECT_EQ(Plain().state_folder, "/home/ann/.local/state/kiln");
  EXPECT_EQ(Plain().metrics_listen, "127.0.0.1:7434");
  const Config xdg =
      Defaults(FakeEnvironment({{"XDG_RUNTIME_DIR", "/run/user/7"}, {"XDG_CACHE_HOME", "/c"}}), 7);
  EXPECT_EQ(xdg.listen[0], "unix:/run/user/7/kiln/kilnd.sock");
  EXPECT_EQ(xdg.cache_folder, "/c/kiln");
  EXPECT_TRUE(Check(Plain()).ok());
}

TEST(Config, FileOverridesEverything) {
  Config config = Plain();
  const absl::Status status = ApplyToml(R"(
listen = ["127.0.0.1:0"]
log_level = "debug"
[metrics]
listen = ""
plain_http = true
[programs]
shared = false
[cache]
folder = "/x"
limit = "1.5GiB"
[state]
session_limit = "3MB"
[devices]
use = ["cpu:1"]
memory_limit = 1000
cpu_devices = 2
cpu_threads = 3
cpu_features = "avx2,-fma"
run_seconds_limit = 60
health_interval_seconds = 5
[fairness]
slice_ms = 5
compiles_waiting_limit = 3
[compiler]
seconds_limit = 20
memory_limit = "1GiB"
disable_passes = ["simplify"]
dump_passes = ["cluster", "lower"]
[memory]
host_limit = "2GiB"
[sessions]
lease_seconds = 5
lease_seconds_limit = 50
detach_hours_limit = 3
limit = 7
idle_connection_seconds = 30
ping_answer_seconds = 40
blob_limit = "1MB"
)",
                                        "kiln.toml", &config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(config.listen, ElementsAre("127.0.0.1:0"));
  EXPECT_EQ(config.metrics_listen, "");
  EXPECT_TRUE(config.metrics_plain_http);
  EXPECT_FALSE(config.programs_shared);
  EXPECT_THAT(config.disabled_passes, ElementsAre("simplify"));
  EXPECT_THAT(config.dumped_passes, ElementsAre("cluster", "lower"));
  EXPECT_EQ(config.cache_folder, "/x");
  EXPECT_EQ(config.cache_limit_bytes, 1610612736);
  EXPECT_EQ(config.kept_sessions_limit_bytes, 3000000);
  EXPECT_THAT(config.devices, ElementsAre("cpu:1"));
  EXPECT_EQ(config.memory_limit_bytes, 1000);
  EXPECT_EQ(config.cpu_devices, 2);
  EXPECT_EQ(config.cpu_threads, 3);
  EXPECT_EQ(config.cpu_features, "avx2,-fma");
  EXPECT_EQ(config.run_seconds_limit, 60);
  EXPECT_EQ(config.health_interval_seconds, 5);
  EXPECT_EQ(config.slice_milliseconds, 5);
  EXPECT_EQ(config.compiles_waiting_limit, 3);
  EXPECT_EQ(config.compile_seconds_limit, 20);
  EXPECT_EQ(config.compile_memory_limit_bytes, 1 << 30);
  EXPECT_EQ(config.host_memory_limit_bytes, int64_t{2} << 30);
  EXPECT_EQ(config.lease_seconds, 5);
  EXPECT_EQ(config.lease_seconds_limit, 50);
  EXPECT_EQ(config.detach_hours_limit, 3);
  EXPECT_EQ(config.session_limit, 7);
  EXPECT_EQ(config.idle_connection_seconds, 30);
  EXPECT_EQ(config.ping_answer_seconds, 40);
  EXPECT_EQ(config.blob_limit_bytes, 1000000);
  EXPECT_EQ(config.log_level, "debug");
}

TEST(Config, MistakesNameFileAndLine) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"\nlisten_on = 3", "kiln.toml:2: unknown key \"listen_on\""},
      {"[cache]\nfolder = 3", "kiln.toml:2: \"cache.folder\" must be a string"},
      {"[cache]\n\nlimit = \"much\"", "kiln.toml:3: \"cache.limit\" must be a number of bytes"},
      {"[devices]\ncpu_threads = -1",
       "kiln.toml:2: \"devices.cpu_threads\" must be a whole number"},
      {"[device]\nuse = []", "kiln.toml:1: unknown key \"device\""},
      {"cache = 3", "kiln.toml:1: unknown key \"cache\""},
      {"a = ", "kiln.toml:1: "}};
  for (const auto& row : kCases) {
    Config config = Plain();
    const absl::Status status = ApplyToml(row.text, "kiln.toml", &config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message));
  }
}

TEST(Config, MissingFile) {
  Config config;
  EXPECT_EQ(ApplyFile("/nowhere/kiln.toml", &config).code(), absl::StatusCode::kNotFound);
}

TEST(Config, ChecksValues) {
  const struct {
    std::function<void(Config*)> change;
    const char* message;
  } kCases[] = {
      {[](Config* c) { c->listen = {}; }, "at least one address"},
      {[](Config* c) { c->listen = {"localhost"}; }, "\"localhost\" is neither"},
      {[](Config* c) { c->listen = {"localhost:99999"}; }, "is neither"},
      {[](Config* c) { c->listen = {"unix:"}; }, "is neither"},
      {[](Config* c) { c->metrics_listen = "unix:/x"; }, "is not host:port"},
      {[](Config* c) { c->log_level = "loud"; }, "\"loud\" is none of"},
      {[](Config* c) { c->cpu_devices = 65; }, "between 0 and 64"},
      {[](Config* c) { c->quota[quota::Resource::kWeight] = 0; }, "quota.weight: 0"},
      {[](Config* c) { c->host_memory_limit_bytes = 1000; }, "1000 bytes are not enough"},
      {[](Config* c) { c->compile_memory_limit_bytes = 1000; },
       "compiler.memory_limit: 1000 bytes are not enough"},
      {[](Config* c) { c->compile_seconds_limit = -1; }, "must not be negative"},
      {[](Config* c) { c->lease_seconds = 0; }, "lease_seconds: 0 is not between 1 and"},
      {[](Config* c) { c->lease_seconds_limit = 0; }, "lease_seconds_limit: 0 is not"},
      {[](Config* c) { c->detach_hours_limit = -1; }, "detach_hours_limit: -1 is not"},
      {[](Config* c) { c->idle_connection_seconds = 0; }, "idle_connection_seconds: 0 is"},
      {[](Config* c) { c->ping_answer_seconds = 0; }, "ping_answer_seconds: 0 is"},
      {[](Config* c) { c->session_limit = 0; }, "sessions.limit: 0 is not between"}};
  for (const auto& row : kCases) {
    Config config = Plain();
    row.change(&config);
    EXPECT_THAT(std::string(Check(config).message()), HasSubstr(row.message));
  }
}

TEST(Config, TakesUsersAndCertificates) {
  Config config = Plain();
  ASSERT_TRUE(ApplyToml("[auth]\nsystem_users = true\n[tls]\ncertificate = \"/c.pem\"\n"
                        "key = \"/c.key\"\nclient_ca = \"/ca.pem\"\n",
                        "kiln.toml", &config)
                  .ok());
  EXPECT_TRUE(config.system_users);
  EXPECT_EQ(config.tls_certificate, "/c.pem");
  EXPECT_EQ(config.tls_key, "/c.key");
  EXPECT_EQ(config.tls_client_ca, "/ca.pem");
  EXPECT_FALSE(ApplyToml("[auth]\nsystem_users = 1\n", "kiln.toml", &config).ok());
}

TEST(Config, ProgramsLeaveMemoryAfterATime) {
  Config config;
  ASSERT_TRUE(ApplyToml("[compiler]\nunused_minutes_limit = 5\n", "kiln.toml", &config).ok());
  EXPECT_EQ(config.unused_minutes_limit, 5);
}

TEST(Config, HasAKeyForEachQuota) {
  Config config;
  const std::string text =
      "[quota]\nhost_memory = \"1GiB\"\ndevice_memory = \"2GiB\"\nsessions = 3\nbuffers = 4\n"
      "programs = 5\noperations = 6\ngraph_nodes = 7\nuploads = 8\nupload_bytes = \"3GiB\"\n"
      "disk = \"4GiB\"\nweight = 9\n";
  ASSERT_TRUE(ApplyToml(text, "kiln.toml", &config).ok());
  int64_t next = 3;
  for (const quota::ResourceRow& row : quota::Resources()) {
    if (row.is_bytes) continue;
    EXPECT_EQ(config.quota[row.resource], next++) << row.name;
  }
  EXPECT_EQ(config.quota[quota::Resource::kHostMemory], 1 << 30);
  EXPECT_EQ(config.quota[quota::Resource::kDeviceMemory], int64_t{2} << 30);
  EXPECT_EQ(config.quota[quota::Resource::kUploadBytes], int64_t{3} << 30);
  EXPECT_EQ(config.quota[quota::Resource::kDisk], int64_t{4} << 30);
  EXPECT_FALSE(ApplyToml("[quota]\nsessions = \"3GiB\"\n", "kiln.toml", &config).ok());
  EXPECT_FALSE(ApplyToml("[quota]\nsessions = -1\n", "kiln.toml", &config).ok());
  EXPECT_FALSE(ApplyToml("[quota]\ngold = 3\n", "kiln.toml", &config).ok());
}

bool SystemUsers(std::vector<std::string> words) {
  words.insert(words.begin(), "kilnd");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  const auto config = FromCommandLine(static_cast<int>(arguments.size()), arguments.data(),
                                      FakeEnvironment({{"HOME", "/home/ann"}}), 1000);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() && config->system_users;
}

TEST(Flags, SwitchesNeedNoValueAndOverrideTheFile) {
  const std::string file = testing::TempDir() + "/kiln_switches.toml";
  std::ofstream(file) << "[auth]\nsystem_users = true\n";
  const std::string config = "--config=" + file;
  EXPECT_TRUE(SystemUsers({config}));
  EXPECT_FALSE(SystemUsers({config, "--system_users=false"}));
  EXPECT_FALSE(SystemUsers({config, "--nosystem_users"}));
  EXPECT_TRUE(SystemUsers({"--config=", "--system_users"}));
  EXPECT_TRUE(SystemUsers({"--config=", "-system_users", "--log_level=info"}));
  EXPECT_FALSE(SystemUsers({"--config=", "--system_users=false"}));
  EXPECT_TRUE(SystemUsers({"--config=", "--system_users=true"}));
}

}  // namespace
}  // namespace kiln::config
