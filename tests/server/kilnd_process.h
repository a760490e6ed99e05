// The kilnd binary as a process, for tests.
#ifndef KILN_TESTS_SERVER_KILND_PROCESS_H_
#define KILN_TESTS_SERVER_KILND_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::testing {

// Whether what is resident says what a daemon holds: a sanitizer's shadow of what was touched is
// resident, too.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

// One daemon with a folder of its own, ended at the end.
class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/kiln_test_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    address_ = absl::StrCat("unix:", folder_, "/kilnd.sock");
  }
  void TearDown() override {
    if (pid_ > 0) End(SIGKILL);
    std::filesystem::remove_all(folder_);
  }

  pid_t Spawn(std::vector<std::string> arguments) {
    const pid_t child = fork();
    if (child != 0) return child;
    const int log = open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(log, STDERR_FILENO);
    arguments.insert(arguments.begin(), KILND);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  virtual std::vector<std::string> Flags() {
    return {"--listen=" + address_, "--metrics_listen=none", "--cache_dir=" + folder_ + "/cache",
            "--state_dir=" + folder_ + "/state"};
  }
  // Starts kilnd and waits until it serves.
  void Start() {
    pid_ = Spawn(Flags());
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (Log().find("event=serving") == std::string::npos && absl::Now() < deadline)
      absl::SleepFor(absl::Milliseconds(5));
    ASSERT_THAT(Log(), ::testing::HasSubstr("event=serving"));
  }
  static int Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }
  int End(int signal) {
    kill(pid_, signal);
    return Wait(std::exchange(pid_, 0));
  }
  std::string Log() {
    std::stringstream text;
    text << std::ifstream(folder_ + "/log").rdbuf();
    return text.str();
  }

  std::string folder_;
  std::string address_;
  pid_t pid_ = 0;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_KILND_PROCESS_H_
