// Runs the kilnd binary as a process, for tests.
#ifndef KILN_TESTS_SERVER_KILND_PROCESS_H_
#define KILN_TESTS_SERVER_KILND_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::testing {

constexpr int64_t kMebibyte = 1 << 20;

// True if resident memory shows what a daemon holds. A sanitizer's shadow memory is resident, too.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

// Runs one daemon with its own folder and stops it at the end.
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

  // Called in the child process before it executes kilnd.
  virtual void Prepare() {}
  pid_t Spawn(std::vector<std::string> arguments) {
    const pid_t child = fork();
    if (child != 0) return child;
    Prepare();
    const int log = open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(log, STDERR_FILENO);
    arguments.insert(arguments.begin(), KILND);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  // A slow machine must not lose connections.
  static constexpr char kPatientFlag[] = "--ping_answer_seconds=3600";
  // Looking for other devices takes longer than the rest of a start.
  static constexpr char kQuickFlag[] = "--devices=cpu";
  virtual std::vector<std::string> Flags() {
    std::vector<std::string> flags = {"--listen=" + address_,
                                      "--metrics_listen=none",
                                      "--idle_tuning=false",
                                      "--cache_dir=" + folder_ + "/cache",
                                      "--state_dir=" + folder_ + "/state",
                                      kPatientFlag,
                                      kQuickFlag};
    flags.insert(flags.end(), more_flags_.begin(), more_flags_.end());
    return flags;
  }
  // Starts kilnd and waits until it serves.
  void Start() {
    const size_t before = Log().size();
    pid_ = Spawn(Flags());
    const auto serves = [&] { return Log().find("event=serving", before) != std::string::npos; };
    Eventually([&] { return serves() || HasEnded(); });
    ASSERT_TRUE(serves()) << Log();
  }
  // Returns true if kilnd has exited. Wait must still be called.
  bool HasEnded() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
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
  // The current and the peak resident memory of kilnd, in bytes.
  int64_t Resident() const { return StatusBytes("VmRSS:"); }
  int64_t PeakBytes() const { return StatusBytes("VmHWM:"); }

  std::string folder_;
  std::string address_;
  std::vector<std::string> more_flags_;
  pid_t pid_ = 0;

 private:
  // Reads a line of /proc/PID/status, proc(5).
  int64_t StatusBytes(const std::string& name) const {
    std::ifstream file(absl::StrCat("/proc/", pid_, "/status"));
    int64_t kibibytes = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.compare(0, name.size(), name) == 0) kibibytes = std::stoll(line.substr(name.size()));
    }
    return kibibytes << 10;
  }
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_KILND_PROCESS_H_
