// Users who share one CPU device: how evenly, at what cost, and how long a short request waits. In
// one process: a daemon with the real CPU driver, and clients over loopback. Prints each figure
// with its bound and whether it is met; always exits with 0, since a busy machine must not fail a
// build.
//
// - The programs' lengths: the size is chosen by medians of warm runs, and the program that is used
//   is measured again in a new session; if that differs by more than 20 %, it prints "misses".
// - Throughput: the sum over users of (runs per second together / runs per second alone), where
//   alone is the mean of before and after, in rounds of five seconds; the median counts. It may
//   exceed 1 if users alone do not keep the device busy all the time.
// - Why throughput is lost: next to it are printed the device time of a run together / alone (above
//   1: caches and memory, other work on the machine) and the fraction of time that the device is
//   busy (below 1: gaps between lists). Comparing slices of 50 ms with 10 ms shows the cost of
//   switching between users.
// - A request's wait: p50 with competitors minus p50 alone is within a slice, p99 within two, for
//   any number of competitors.
// - Eight users with programs of 1 to 200 ms, of one kernel and of many: Jain's index, and the wait
//   of a ninth user with small requests.
//
//   bench_sharing [SECONDS [SLICE_MS [CPU_THREADS [PART]]]]
//     30 s, 10 ms and one thread; SLICE_MS 0: programs are not cut; PART: shares, latency, many or
//     all
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "grpcpp/grpcpp.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "server/clock/clock.h"
#include "server/daemon.h"
#include "server/log/log.h"
#include "server/quota/resource.h"
#include "tests/bench/sharing_user.h"

namespace kiln::bench {
namespace {

class Bench {
 public:
  Bench(double seconds, int slice_ms, int threads) : seconds_(seconds), slice_ms_(slice_ms) {
    folder_ =
        absl::StrCat(std::filesystem::temp_directory_path().string(), "/kiln_sharing_", getpid());
    config::Config config;
    config.listen = {absl::StrCat("unix:", folder_, "/kilnd.sock"), "127.0.0.1:0"};
    config.cache_folder = folder_ + "/cache";
    config.state_folder = folder_ + "/state";
    config.slice_milliseconds = slice_ms;
    std::filesystem::create_directories(folder_);
    DaemonParts parts;
    parts.drivers.push_back(std::make_unique<drivers::cpu::CpuDriver>(
        drivers::cpu::CpuOptions{.threads_per_device = threads}));
    parts.compile = compiler::Compile;
    parts.clock = SystemClock();
    daemon_ = OrExit(Daemon::Start(config, std::move(parts)));
    for (size_t i = 0; i < kUsers; ++i) tokens_.push_back(AddUser(absl::StrCat("user", i)));
    asks_ = AddUser("asks");
    for (Load& load : loads_) Calibrate(address(), tokens_[0], &load);
  }
  ~Bench() {
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Run(const std::string& part) {
    CheckCalibration();
    if (part == "all" || part == "shares") {
      Shares("equal weights", {1, 1, 1, 1});
      Shares("weights 1:2:4 (first: 1)", {1, 1, 2, 4});
    }
    if (part == "all" || part == "latency") Latency();
    if (part == "all" || part == "many") ManyUsers();
    std::printf("\n%d ok, %d misses\n", kept_, missed_);
  }

 private:
  std::unique_ptr<v1::AdminService::Stub> Admin() const {
    return v1::AdminService::NewStub(
        grpc::CreateChannel(daemon_->listening()[0], grpc::InsecureChannelCredentials()));
  }
  std::string AddUser(const std::string& name) {
    grpc::ClientContext context;
    v1::AddUserRequest request;
    request.set_name(name);
    v1::AddUserResponse response;
    const grpc::Status status = Admin()->AddUser(&context, request, &response);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.error_message().c_str());
    return response.token();
  }
  // A weight of 1 is the default.
  void SetWeight(const std::string& user, double weight) {
    grpc::ClientContext context;
    v1::SetQuotaRequest request;
    request.set_user(user);
    (*request.mutable_limits())["weight"] = static_cast<uint64_t>(weight * quota::kUsualWeight);
    v1::SetQuotaResponse response;
    const grpc::Status status = Admin()->SetQuota(&context, request, &response);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.error_message().c_str());
  }
  std::string address() const { return daemon_->listening()[1]; }

  // Checks that the programs are as long as their names say, measured again in new sessions.
  void CheckCalibration() {
    std::printf("programs, a run alone\n");
    for (const Load& load : loads_) {
      const double seconds = User(address(), tokens_[0], load).SteadyRun();
      std::printf("%-8s %9.3f ms, size %lld\n", load.name, seconds * 1e3,
                  static_cast<long long>(load.size));
      AtMost(absl::StrCat(load.name, ": off its length"), std::abs(seconds / load.seconds() - 1),
             0.2);
    }
  }

  void AtLeast(const std::string& what, double value, double bound) {
    Say(what, value, ">=", bound, value >= bound);
  }
  void AtMost(const std::string& what, double value, double bound) {
    Say(what, value, "<=", bound, value <= bound);
  }
  void Say(const std::string& what, double value, const char* relation, double bound, bool is_ok) {
    std::printf("  %-44s %9.4f %s %.4f  %s\n", what.c_str(), value, relation, bound,
                is_ok ? "ok" : "misses");
    ++(is_ok ? kept_ : missed_);
  }

  // Returns what each user gets alone, one after another.
  std::vector<User::Share> Alone(absl::Duration duration) {
    std::vector<User::Share> shares;
    for (size_t i = 0; i < loads_.size(); ++i) {
      User user(address(), tokens_[i], loads_[i]);
      shares.push_back(user.Work(DepthOf(loads_[i]), duration));
    }
    return shares;
  }

  std::vector<User::Share> Together(absl::Span<const size_t> who, absl::Duration duration,
                                    const std::atomic<bool>* stop) {
    std::vector<User::Share> shares(who.size());
    std::vector<std::unique_ptr<User>> users;
    for (const size_t i : who)
      users.push_back(std::make_unique<User>(address(), tokens_[i], loads_[i]));
    std::vector<std::thread> threads;
    std::atomic<int> counting = static_cast<int>(who.size());
    for (size_t i = 0; i < who.size(); ++i) {
      threads.emplace_back([&, i] {
        const int deep = DepthOf(loads_[who[i]]);
        if (stop == nullptr) {
          shares[i] = users[i]->Work(deep, duration, &counting);
          return;
        }
        while (!*stop) users[i]->Work(deep, duration);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return shares;
  }

  // In rounds: each user alone, all together, each alone, …, since the machine's speed drifts.
  void Shares(const char* title, const std::vector<double>& weights) {
    for (size_t i = 0; i < weights.size(); ++i) SetWeight(absl::StrCat("user", i), weights[i]);
    const int rounds = std::max(1, static_cast<int>(seconds_ / 5));
    const absl::Duration duration = absl::Seconds(seconds_ / rounds);
    std::vector<User::Share> sum(weights.size()), sum_alone(weights.size());
    std::vector<double> throughputs;
    std::vector<User::Share> before = Alone(duration / 5);
    for (int round = 0; round < rounds; ++round) {
      const std::vector<User::Share> shares = Together({0, 1, 2, 3}, duration, nullptr);
      std::vector<User::Share> after = Alone(duration / 5);
      throughputs.push_back(0);
      for (size_t i = 0; i < shares.size(); ++i) {
        // Short runs do not keep the device busy all the time, even alone.
        throughputs.back() += 2 * shares[i].runs / (before[i].runs + after[i].runs);
        sum[i] += shares[i];
        sum_alone[i] += before[i];
      }
      before = std::move(after);
    }
    std::printf("\n%s, %d rounds\n", title, rounds);
    PrintShares(weights, sum, sum_alone, rounds);
    std::sort(throughputs.begin(), throughputs.end());
    std::printf("throughput / one user alone, by round: %.3f to %.3f\n", throughputs.front(),
                throughputs.back());
    AtLeast("throughput / one user alone, median", throughputs[throughputs.size() / 2], 0.97);
  }

  // Prints sums over rounds.
  void PrintShares(const std::vector<double>& weights, const std::vector<User::Share>& shares,
                   const std::vector<User::Share>& alone, int rounds) {
    double sum = 0, squares = 0, all = 0, weight = 0, unevenness = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      const double normalised = shares[i].device_seconds / weights[i];
      sum += normalised;
      squares += normalised * normalised;
      all += shares[i].device_seconds;
      weight += weights[i];
    }
    for (size_t i = 0; i < shares.size(); ++i) {
      const double seconds = alone[i].device_seconds / alone[i].runs;
      const double off = shares[i].device_seconds / all / (weights[i] / weight) - 1;
      std::printf("%-8s alone %9.3f ms, %8.1f runs/s, busy %.2f; share %.4f, due %.4f: %+.1f %%\n",
                  loads_[i].name, seconds * 1e3, alone[i].runs / rounds,
                  alone[i].device_seconds / rounds, shares[i].device_seconds / all,
                  weights[i] / weight, 100 * off);
      std::printf("         device time of a run, together / alone %.3f\n",
                  shares[i].device_seconds / shares[i].runs / seconds);
      unevenness = std::max(unevenness, std::abs(off));
    }
    std::printf("device busy %.3f\n", all / rounds);
    AtLeast("Jain's index of device time by weight", sum * sum / (4 * squares), 0.99);
    AtMost("share of device time, off what is due", unevenness, 0.03);
  }

  // Percentiles, in seconds.
  struct Times {
    double p50 = 0;
    double p99 = 0;
  };
  static Times PrintTimes(const char* title, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    std::printf("%-34s p50 %7.2f ms  p99 %7.2f ms  max %7.2f ms (%zu)\n", title,
                times[times.size() / 2] * 1e3, times[times.size() * 99 / 100] * 1e3,
                times.back() * 1e3, times.size());
    return {times[times.size() / 2], times[times.size() * 99 / 100]};
  }
  void CheckWaits(const Times& times, const Times& alone) {
    // Programs that are not cut have no such bound.
    if (slice_ms_ == 0) return;
    AtMost("p50 - alone, ms", (times.p50 - alone.p50) * 1e3, slice_ms_);
    AtMost("p99 - alone, ms", (times.p99 - alone.p99) * 1e3, 2 * slice_ms_);
  }

  std::vector<double> Ask(User& user) const {
    std::vector<double> times;
    const absl::Time end = absl::Now() + absl::Seconds(seconds_ / 2);
    while (absl::Now() < end) {
      const absl::Time start = absl::Now();
      user.Run();
      times.push_back(absl::ToDoubleSeconds(absl::Now() - start));
      // As a client that processes the answer.
      absl::SleepFor(absl::Milliseconds(5));
    }
    return times;
  }

  void Latency() {
    for (size_t i = 0; i < 4; ++i) SetWeight(absl::StrCat("user", i), 1);
    std::printf("\na request of 1 ms\n");
    User user(address(), asks_, loads_[1]);
    const Times alone = PrintTimes("alone", Ask(user));
    const std::vector<std::pair<const char*, std::vector<size_t>>> competitors = {
        {"beside 30 ms", {2}}, {"beside 200 ms", {3}}, {"beside 1, 30 and 200 ms", {1, 2, 3}}};
    for (const auto& [title, who] : competitors) {
      std::atomic<bool> stop{false};
      std::thread load([&, who = who] { Together(who, absl::Seconds(1), &stop); });
      absl::SleepFor(absl::Seconds(2));  // until the others are running
      CheckWaits(PrintTimes(title, Ask(user)), alone);
      stop = true;
      load.join();
    }
  }

  // Every other user has a program of one kernel.
  void ManyUsers() {
    for (size_t i = 0; i < kUsers; ++i) SetWeight(absl::StrCat("user", i), 1);
    std::printf("\neight users, of one kernel and of many\n");
    User user(address(), asks_, loads_[1]);
    const Times alone = PrintTimes("alone", Ask(user));
    std::vector<User::Share> shares(kUsers);
    std::vector<std::thread> threads;
    std::atomic<int> counting = kUsers;
    for (size_t i = 0; i < kUsers; ++i) {
      threads.emplace_back([&, i] {
        const Load load = i % 2 == 0 ? loads_[1 + i / 2 % 3] : OneKernelLoad(i);
        User heavy(address(), tokens_[i], load);
        shares[i] = heavy.Work(DepthOf(load), absl::Seconds(seconds_), &counting);
      });
    }
    absl::SleepFor(absl::Seconds(2));  // until the others are running
    CheckWaits(PrintTimes("beside eight users", Ask(user)), alone);
    for (std::thread& thread : threads) thread.join();
    double sum = 0, squares = 0;
    for (const User::Share& share : shares) {
      sum += share.device_seconds;
      squares += share.device_seconds * share.device_seconds;
    }
    AtLeast("Jain's index of device time", sum * sum / (kUsers * squares), 0.99);
  }
  // Takes about 10 to 200 ms.
  Load OneKernelLoad(size_t user) const {
    constexpr double kSeconds[] = {0.01, 0.03, 0.1, 0.2};
    Load load{"one kernel", 1, kSeconds[user / 2 % 4], 0};
    load.size = static_cast<int64_t>(static_cast<double>(loads_[1].size) * load.seconds() / 1e-3);
    load.is_rows = true;
    return load;
  }

  static constexpr int kUsers = 8;
  const double seconds_;
  const int slice_ms_;
  int kept_ = 0;
  int missed_ = 0;
  std::string folder_;
  std::unique_ptr<Daemon> daemon_;
  std::vector<std::string> tokens_;
  std::string asks_;
  std::vector<Load> loads_ = {
      {"10 us", 1, 10e-6}, {"1 ms", 1, 1e-3}, {"30 ms", 30, 1e-3}, {"200 ms", 50, 4e-3}};
};

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as kilnd does
  kiln::log::SetLevel(kiln::log::Level::kWarning);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 30;
  const int slice_ms = argc > 2 ? std::atoi(argv[2]) : 10;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  kiln::bench::Bench(seconds, slice_ms, threads).Run(argc > 4 ? argv[4] : "all");
  return 0;
}
