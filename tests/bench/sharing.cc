// Users who share one CPU device: how evenly, at what cost, and how long a short request waits. In
// one process: a daemon with the real CPU driver, and clients over loopback. Prints ratios; asserts
// nothing, since a busy machine must not fail a build.
//
//   bench_sharing [SECONDS [SLICE_MS [CPU_THREADS]]]     30 s, 10 ms and one thread; SLICE_MS 0:
//   programs are not cut
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
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
#include "kiln/client.h"
#include "kiln/ops.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "server/daemon.h"
#include "server/log/log.h"
#include "server/quota/resource.h"

namespace kiln::bench {
namespace {

template <typename T>
T OrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

// `kernels` sums over `size` sines, each of which needs the one before.
absl::StatusOr<Graph> SumsOfSines(int kernels, int64_t size) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {size});
  Value sum = ops::Sum(ops::Sin(x));
  for (int i = 1; i < kernels; ++i) sum = ops::Sum(ops::Sin(x + sum));
  builder.Output(sum);
  return builder.Build();
}

struct Load {
  const char* name;
  int kernels;
  double kernel_seconds;
  int64_t size = 0;  // of a kernel, so that it takes as long
  double seconds() const { return kernels * kernel_seconds; }
};

// One user's session with a program.
class User {
 public:
  User(const std::string& address, const std::string& token, const Load& load) {
    client_ = OrExit(Client::Connect({.address = address, .token = token}));
    program_.push_back(OrExit(client_->Define(SumsOfSines(load.kernels, load.size), load.name)));
    input_.push_back(
        OrExit(client_->Upload<float>({load.size}, std::vector<float>(load.size, 0.5f))));
    for (int i = 0; i < 3; ++i) Run();
  }

  RunResult Start() { return OrExit(client_->Run(program_[0], input_, {.report_time = true})); }
  // Device seconds.
  double Run() { return OrExit(Start().done.Get()).device_seconds; }

  struct Share {
    double device_seconds = 0;  // a second
    double runs = 0;            // a second
  };
  // Keeps `deep` runs on their way for so long. What counts is from the first end to the last, so
  // that long runs are not cut off.
  Share Work(int deep, absl::Duration duration) {
    std::deque<RunResult> open;
    Share share;
    absl::Time first = absl::InfiniteFuture(), last;
    const absl::Time end = absl::Now() + duration;
    while (true) {
      while (static_cast<int>(open.size()) < deep) open.push_back(Start());
      const double seconds = OrExit(open.front().done.Get()).device_seconds;
      open.pop_front();
      const absl::Time now = absl::Now();
      if (now > end && share.runs >= 2) break;
      if (first == absl::InfiniteFuture()) {
        first = now;
        continue;
      }
      last = now;
      share.device_seconds += seconds;
      ++share.runs;
    }
    client_->Cancel().IgnoreError();
    const double passed = absl::ToDoubleSeconds(last - first);
    return {share.device_seconds / passed, share.runs / passed};
  }

 private:
  std::unique_ptr<Client> client_;
  std::vector<Program> program_;
  std::vector<Tensor> input_;
};

// As much as keeps the queue full whatever the others do, within what a session may have in flight.
int DepthOf(const Load& load) {
  return std::clamp(static_cast<int>(0.06 / load.seconds()), 2, 3000);
}

class Bench {
 public:
  Bench(double seconds, int slice_ms, int threads) : seconds_(seconds) {
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
    parts.now = [] { return absl::Now(); };
    daemon_ = OrExit(Daemon::Start(config, std::move(parts)));
    for (size_t i = 0; i < loads_.size(); ++i) tokens_.push_back(AddUser(absl::StrCat("user", i)));
    tokens_.push_back(AddUser("asks"));
    for (Load& load : loads_) Calibrate(&load);
  }
  ~Bench() {
    daemon_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Run() {
    Shares("equal weights", {1, 1, 1, 1});
    Shares("weights 1:2:4 (first: 1)", {1, 1, 2, 4});
    Latency();
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
  // 1 is everybody's.
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

  // Sizes so that a kernel takes as long as it should.
  void Calibrate(Load* load) {
    load->size = std::max<int64_t>(256, static_cast<int64_t>(load->kernel_seconds * 1e8));
    // The time does not grow with the size alone, so carefully.
    for (int i = 0; i < 6; ++i) {
      User user(address(), tokens_[0], *load);
      const int runs = std::clamp(static_cast<int>(0.2 / load->seconds()), 3, 20);
      double least = user.Run();
      for (int j = 1; j < runs; ++j) least = std::min(least, user.Run());
      const double factor = std::clamp(load->seconds() / std::max(least, 1e-9), 0.33, 3.0);
      load->size = std::max<int64_t>(64, static_cast<int64_t>(load->size * factor));
    }
  }

  // What each user gets alone, one after another.
  std::vector<User::Share> Alone() {
    std::vector<User::Share> shares;
    for (size_t i = 0; i < loads_.size(); ++i) {
      User user(address(), tokens_[i], loads_[i]);
      shares.push_back(user.Work(DepthOf(loads_[i]), absl::Seconds(std::max(1.5, seconds_ / 10))));
    }
    return shares;
  }

  std::vector<User::Share> Together(absl::Span<const size_t> who, const std::atomic<bool>* stop) {
    std::vector<User::Share> shares(who.size());
    std::vector<std::unique_ptr<User>> users;
    for (const size_t i : who)
      users.push_back(std::make_unique<User>(address(), tokens_[i], loads_[i]));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < who.size(); ++i) {
      threads.emplace_back([&, i] {
        do {
          shares[i] = users[i]->Work(DepthOf(loads_[who[i]]),
                                     absl::Seconds(stop != nullptr ? 1.0 : seconds_));
        } while (stop != nullptr && !*stop);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return shares;
  }

  void Shares(const char* title, const std::vector<double>& weights) {
    for (size_t i = 0; i < weights.size(); ++i) SetWeight(absl::StrCat("user", i), weights[i]);
    // Before and after, since the machine's speed drifts.
    const std::vector<User::Share> before = Alone();
    const std::vector<User::Share> shares = Together({0, 1, 2, 3}, nullptr);
    const std::vector<User::Share> after = Alone();
    double sum = 0, squares = 0, all = 0, weight = 0, throughput = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      const double normalised = shares[i].device_seconds / weights[i];
      sum += normalised;
      squares += normalised * normalised;
      all += shares[i].device_seconds;
      weight += weights[i];
      // Short runs keep the device busy for a part of the time only, alone as well.
      throughput += 2 * shares[i].runs / (before[i].runs + after[i].runs);
    }
    std::printf("\n%s\n", title);
    for (size_t i = 0; i < shares.size(); ++i) {
      const double seconds = before[i].device_seconds / before[i].runs;
      std::printf("%-8s alone %9.3f ms, %8.1f runs/s, busy %.2f; share %.4f, due %.4f: %+.1f %%\n",
                  loads_[i].name, seconds * 1e3, before[i].runs, before[i].device_seconds,
                  shares[i].device_seconds / all, weights[i] / weight,
                  100 * (shares[i].device_seconds / all / (weights[i] / weight) - 1));
    }
    std::printf("Jain's index %.4f; device busy %.3f; throughput / one alone %.3f\n",
                sum * sum / (4 * squares), all, throughput);
  }

  static void PrintTimes(const char* title, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    std::printf("%-34s p50 %7.2f ms  p99 %7.2f ms  max %7.2f ms (%zu)\n", title,
                times[times.size() / 2] * 1e3, times[times.size() * 99 / 100] * 1e3,
                times.back() * 1e3, times.size());
  }

  std::vector<double> Ask(User& user) const {
    std::vector<double> times;
    const absl::Time end = absl::Now() + absl::Seconds(seconds_ / 2);
    while (absl::Now() < end) {
      const absl::Time start = absl::Now();
      user.Run();
      times.push_back(absl::ToDoubleSeconds(absl::Now() - start));
      // As somebody who looks at the answer.
      absl::SleepFor(absl::Milliseconds(5));
    }
    return times;
  }

  void Latency() {
    for (size_t i = 0; i < 4; ++i) SetWeight(absl::StrCat("user", i), 1);
    std::printf("\na request of 1 ms\n");
    User user(address(), tokens_[4], loads_[1]);
    PrintTimes("alone", Ask(user));
    const std::vector<std::pair<const char*, std::vector<size_t>>> competitors = {
        {"beside 30 ms", {2}}, {"beside 200 ms", {3}}, {"beside 1, 30 and 200 ms", {1, 2, 3}}};
    for (const auto& [title, who] : competitors) {
      std::atomic<bool> stop{false};
      std::thread load([&, who = who] { Together(who, &stop); });
      absl::SleepFor(absl::Seconds(2));  // until they are at work
      PrintTimes(title, Ask(user));
      stop = true;
      load.join();
    }
  }

  const double seconds_;
  std::string folder_;
  std::unique_ptr<Daemon> daemon_;
  std::vector<std::string> tokens_;
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
  kiln::bench::Bench(seconds, slice_ms, threads).Run();
  return 0;
}
