// Runs a separate kilnd for each test that tries to harm it.
#ifndef KILN_TESTS_SERVER_ATTACKS_HOSTILE_FIXTURE_H_
#define KILN_TESTS_SERVER_ATTACKS_HOSTILE_FIXTURE_H_

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/kilnd_process.h"

namespace kiln::testing {

// An attacker under another account of the machine: a process of its own. Requires: this process is
// root's.
class OtherAccount {
 public:
  // Runs `attack` in the process, which keeps its connections until this object ends.
  explicit OtherAccount(const std::function<bool()>& attack) {
    int told[2];
    EXPECT_EQ(pipe(told), 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0)
        _exit(1);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const char byte = attack() ? 1 : 0;
      if (write(told[1], &byte, 1) == 1) pause();
      _exit(1);
    }
    close(told[1]);
    told_ = told[0];
  }
  ~OtherAccount() {
    close(told_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  OtherAccount(const OtherAccount&) = delete;
  OtherAccount& operator=(const OtherAccount&) = delete;

  // Waits for the end of the attack; returns its result, false if the process has ended.
  bool Succeeds() const {
    char byte = 0;
    while (read(told_, &byte, 1) < 0 && errno == EINTR) {
    }
    return byte == 1;
  }

 private:
  static constexpr uid_t kNobody = 65'534;

  pid_t pid_ = 0;
  int told_ = -1;
};

class HostileTest : public ProcessTest {
 protected:
  virtual int IdleConnectionSeconds() const { return 120; }
  virtual std::string MoreConfiguration() const { return ""; }
  std::vector<std::string> Flags() override {
    std::ofstream(folder_ + "/kiln.toml")
        << "[sessions]\nidle_connection_seconds = " << IdleConnectionSeconds() << "\n"
        << MoreConfiguration();
    return {"--listen=" + address_ + ",127.0.0.1:0",
            "--metrics_listen=127.0.0.1:0",
            "--idle_tuning=false",
            "--cache_dir=" + folder_ + "/cache",
            "--state_dir=" + folder_ + "/state",
            "--config=" + folder_ + "/kiln.toml",
            kPatientFlag,
            kQuickFlag,
            "--log_level=debug",
            "--cpu_threads=1"};
  }
  void SetUp() override {
    ProcessTest::SetUp();
    Start();
  }
  // Returns the number that follows `before` in the log.
  int NumberInLog(const std::string& before) {
    const std::string log = Log();
    const size_t begin = log.find(before) + before.size();
    int number = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(log.substr(begin, log.find_first_of(" \n\"", begin) - begin), &number))
        << before;
    return number;
  }
  int Port() { return NumberInLog(address_ + ",127.0.0.1:"); }
  std::string Metrics(const std::string& token = "") {
    const std::string user = token.empty() ? "" : absl::StrCat("-u :", token, " ");
    const std::string command = absl::StrCat(
        "curl -sf ", user, "http://127.0.0.1:", NumberInLog("metrics_port="), "/metrics");
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    char buffer[4096];
    for (size_t read; (read = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
      text.append(buffer, read);
    EXPECT_EQ(pclose(pipe), 0);
    return text;
  }
  void ExpectItServes() {
    Client client(address_);
    ASSERT_TRUE(client.opened.ok()) << client.opened.error_message() << Log();
    auto stream = client.Connect();
    EXPECT_FALSE(stream->Call(Write(1, {1, 2})).has_error());
    EXPECT_THAT(Floats(stream->Call(Read(1)).data()), ::testing::ElementsAre(1, 2));
  }
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_ATTACKS_HOSTILE_FIXTURE_H_
