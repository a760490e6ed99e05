#include "server/config/config.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/documents.h"
#include "server/config/flags.h"
#include "server/config/keys.h"

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
  EXPECT_EQ(config.saved_sessions_limit_bytes, 3000000);
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
       "kiln.toml:2: \"devices.cpu_threads\" must be an integer of 0 or more"},
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

TEST(Config, OnlyARegularFileIsRead) {
  Config config;
  for (const char* path : {"/dev/zero", "/dev"}) {
    EXPECT_THAT(std::string(ApplyFile(path, &config).message()),
                HasSubstr(std::string("cannot read the configuration ") + path + ": it is a "));
  }
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
      {[](Config* c) { c->log_level = "loud"; }, "\"loud\" is not allowed; use debug"},
      {[](Config* c) { c->cpu_devices = 65; },
       "devices.cpu_devices: 65 is out of range; allowed is 0 to 64"},
      {[](Config* c) { c->quota[quota::Resource::kWeight] = 0; },
       "quota.weight: 0 is out of range"},
      {[](Config* c) { c->host_memory_limit_bytes = 1000; },
       "memory.host_limit: 1000 is out of range; allowed is 0, or 16MiB or more"},
      {[](Config* c) { c->compile_memory_limit_bytes = 1000; },
       "compiler.memory_limit: 1000 is out of range; allowed is 0, or 256MiB or more"},
      {[](Config* c) { c->compile_seconds_limit = -1; },
       "compiler.seconds_limit: -1 is out of range; allowed is 0 or more"},
      {[](Config* c) { c->lease_seconds = 0; },
       "sessions.lease_seconds: 0 is out of range; allowed is 1 to 604800"},
      {[](Config* c) { c->lease_seconds_limit = 0; }, "sessions.lease_seconds_limit: 0 is out"},
      {[](Config* c) { c->detach_hours_limit = -1; }, "detach_hours_limit: -1 is out of range"},
      {[](Config* c) { c->idle_connection_seconds = 0; }, "sessions.idle_connection_seconds: 0 is"},
      {[](Config* c) { c->ping_answer_seconds = 0; }, "sessions.ping_answer_seconds: 0 is"},
      {[](Config* c) { c->session_limit = 0; },
       "sessions.limit: 0 is out of range; allowed is 1 to 1000000"}};
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

absl::StatusOr<Config> WithFlags(std::vector<std::string> words) {
  words.insert(words.begin(), "kilnd");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return FromCommandLine(static_cast<int>(arguments.size()), arguments.data(),
                         FakeEnvironment({{"HOME", "/home/ann"}}), 1000);
}

bool SystemUsers(std::vector<std::string> words) {
  const auto config = WithFlags(std::move(words));
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

TEST(Flags, HaveAValueOfEachType) {
  const auto config = WithFlags({"--listen=unix:/a,127.0.0.1:1", "--listen", "127.0.0.1:2",
                                 "--devices=cpu", "--devices", "cpu:0,cpu:1", "--cpu_threads", "3",
                                 "-memory_limit=1GiB", "--log_level=", "--metrics_listen=none"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->listen, ElementsAre("unix:/a", "127.0.0.1:1", "127.0.0.1:2"));
  EXPECT_THAT(config->devices, ElementsAre("cpu:0", "cpu:1"));
  EXPECT_EQ(config->cpu_threads, 3);
  EXPECT_EQ(config->memory_limit_bytes, 1 << 30);
  EXPECT_EQ(config->log_level, "info");
  EXPECT_EQ(config->metrics_listen, "");
}

TEST(Flags, MistakesAreErrors) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } kCases[] = {
      {{"--cpu_thread=1"}, "unknown flag \"--cpu_thread=1\"; see --help"},
      {{"--nocpu_threads"}, "unknown flag"},
      {{"--nosystem_users=true"}, "unknown flag"},
      {{"cpu"}, "unexpected argument \"cpu\""},
      {{"--cpu_threads"}, "a value must follow \"--cpu_threads\""},
      {{"--cpu_threads=-1"}, "--cpu_threads: \"-1\" is not an integer of 0 or more"},
      {{"--cpu_threads=4097"}, "devices.cpu_threads: 4097 is out of range"},
      {{"--memory_limit=much"}, "--memory_limit: \"much\" is not a number of bytes"},
      {{"--system_users=perhaps"}, "--system_users: \"perhaps\" is not true or false"},
      {{"--config=/nowhere/kiln.toml"}, "cannot read the configuration /nowhere/kiln.toml"}};
  for (const auto& row : kCases)
    EXPECT_THAT(std::string(WithFlags(row.words).status().message()), HasSubstr(row.message));
}

TEST(Keys, EachHasAPlaceAMeaningAndADefaultInItsRange) {
  for (const Key& key : Keys()) {
    EXPECT_FALSE(key.path.empty() && key.flag.empty());
    EXPECT_FALSE(key.meaning.empty()) << LabelOf(key);
    EXPECT_TRUE(SectionOf(key).empty() || IsSection(SectionOf(key))) << LabelOf(key);
    EXPECT_EQ(FindKey(&Key::path, key.path), key.path.empty() ? nullptr : &key);
    EXPECT_EQ(FindKey(&Key::flag, key.flag), key.flag.empty() ? nullptr : &key);
  }
  EXPECT_TRUE(Check(Plain()).ok());
  EXPECT_EQ(FindKey(&Key::path, ""), nullptr);
}

TEST(Documents, HelpHasEveryFlag) {
  for (const Key& key : Keys()) {
    if (key.flag.empty()) continue;
    EXPECT_THAT(HelpText(), HasSubstr(absl::StrCat("\n  --", key.flag, " (")));
  }
}

// Without the # before its keys, the example file is the configuration without a file.
TEST(Documents, ExampleFileHasTheDefaults) {
  std::string text;
  for (absl::string_view line : absl::StrSplit(ExampleFile(), '\n')) {
    if (!absl::StartsWith(line, "# ")) absl::ConsumePrefix(&line, "#");
    absl::StrAppend(&text, line, "\n");
  }
  Config config;
  const absl::Status status = ApplyToml(text, "kilnd.toml", &config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config, Defaults([](const std::string& name) { return "$" + name; }, 0));
  EXPECT_THAT(text, HasSubstr("\nlease_seconds = 900\n"));
}

}  // namespace
}  // namespace kiln::config
