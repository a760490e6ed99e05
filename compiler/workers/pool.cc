#include "compiler/workers/pool.h"

#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "compiler/workers/message.h"
#include "compiler/workers/worker.h"
#include "proto/check/check.h"
#include "proto/text/printable.h"

namespace kiln::workers {
namespace {

// The interval at which the pool checks idle workers, and how long those beyond the spares are
// kept.
constexpr absl::Duration kSweep = absl::Seconds(1);
constexpr std::chrono::seconds kLinger{10};

absl::Status TooLong(size_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("the text of its loops has ", bytes,
                                                   " bytes, but at most ", kMessageBytesMax,
                                                   " are allowed; split its computation"));
}

// Returns whether something other than the job may have caused the failure, so that one failure
// proves nothing.
bool IsDeath(Failure::Kind kind) {
  return kind == Failure::Kind::kDied || kind == Failure::Kind::kKilled;
}

// Describes the compiler that a worker ran.
std::string Doing(const KernelJob& job) {
  if (!job.unfinished) {
    return absl::StrCat(job.rehearsal ? "planning it for " : "compiling it for ",
                        job.target.Summary());
  }
  return absl::StrCat("building it with the compiler of ", job.target.finisher.device);
}

std::string DefectOf(const KernelJob& job) {
  if (!job.unfinished)
    return "this is a defect of Kiln; another shape, dtype or device may avoid it";
  return "this is a defect of that compiler; another shape, dtype or device, or another version of "
         "the vendor's driver, may avoid it";
}

absl::Status ErrorOf(const Failure& failure, const KernelJob& job) {
  const std::string start = absl::StrCat(
      Doing(job), " ", IsDeath(failure.kind) ? "failed in two processes; the second one " : "",
      failure.what,
      failure.said.empty() ? "" : absl::StrCat(" (\"", PrintableInQuotes(failure.said), "\")"));
  switch (failure.kind) {
    case Failure::Kind::kLate:
      return absl::ResourceExhaustedError(absl::StrCat(
          start, "; split its computation, or start kilnd with a higher --compile_seconds_limit"));
    case Failure::Kind::kMemory:
      return absl::ResourceExhaustedError(absl::StrCat(
          start, "; split its computation, or start kilnd with a higher --compile_memory_limit"));
    case Failure::Kind::kKilled:
      return absl::ResourceExhaustedError(
          absl::StrCat(start,
                       ", probably because the machine ran out of memory; free memory, or split "
                       "its computation"));
    case Failure::Kind::kDied:
    case Failure::Kind::kNonsense:
      break;
  }
  return absl::InternalError(absl::StrCat(start, "; ", DefectOf(job)));
}

}  // namespace

Pool::Pool(Options options) : options_(std::move(options)), spares_to_start_(options_.spares) {
  keeper_ = std::thread([this] { Keep(); });
}

Pool::~Pool() {
  Stop(absl::CancelledError("the pool of workers was closed"));
  keeper_.join();
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(busy_.empty()) << busy_.size() << " workers are busy at the end";
  KILN_CHECK(requests_.empty()) << requests_.size() << " callers wait at the end";
  KILN_CHECK(idle_.empty()) << idle_.size() << " workers are idle at the end";
}

// Does not look into busy processes: their callers use them without the lock.
void Pool::Validate() const {
  std::set<const Process*> idle;
  for (const Idle& one : idle_) {
    KILN_CHECK(one.process != nullptr);
    const bool is_new = idle.insert(one.process.get()).second;
    KILN_CHECK(is_new) << "a worker is idle twice";
    KILN_CHECK(!busy_.contains(one.process.get())) << "worker " << one.process->pid();
    KILN_CHECK_GT(one.process->pid(), 0);
  }
  KILN_CHECK(!busy_.contains(nullptr));
  std::set<const Request*> waiting;
  for (const Request* request : requests_) {
    const bool is_new = waiting.insert(request).second;
    KILN_CHECK(request != nullptr && is_new && !request->done);
  }
  KILN_CHECK(spares_to_start_ >= 0 && spares_to_start_ <= std::max(options_.spares, 0))
      << spares_to_start_;
  if (options_.workers_max > 0)
    KILN_CHECK_LE(size(), std::max(options_.workers_max, options_.spares));
}

absl::StatusOr<drivers::KernelImage> Pool::Compile(const KernelJob& job) {
  absl::StatusOr<drivers::KernelImage> image = drivers::KernelImage();
  // Something else may have killed the first worker, and the idle ones with it, so the retry uses a
  // new one.
  if (!Try(job, Attempt::kFirst, &image)) Try(job, Attempt::kLast, &image);
  return image;
}

bool Pool::Try(const KernelJob& job, Attempt attempt, absl::StatusOr<drivers::KernelImage>* image) {
  const uint64_t number = ++last_job_;
  const std::string message = EncodeJob(number, job);
  if (message.size() > kMessageBytesMax) {
    *image = TooLong(message.size());
    return true;
  }
  absl::StatusOr<ProcessPointer> process = Take(attempt);
  if (!process.ok()) {
    *image = process.status();
    return true;
  }
  if (job.on_begin) job.on_begin();
  const Deadline deadline = JobDeadline(**process);
  std::string answer;
  Transfer transfer = Send((*process)->socket(), message, deadline);
  if (transfer == Transfer::kDone) transfer = Receive((*process)->socket(), &answer, deadline);
  if (transfer == Transfer::kDone && DecodeAnswer(answer, number, job, image)) {
    GiveBack(*std::move(process));
    return true;
  }
  Failure failure = End(*std::move(process), transfer);
  if (absl::Status status = stopped(); !status.ok()) {
    *image = std::move(status);
    return true;
  }
  // A job that exceeded its time or memory limit would do so again.
  failure.again = attempt == Attempt::kFirst && IsDeath(failure.kind);
  if (options_.on_failure) options_.on_failure(job, failure);
  *image = ErrorOf(failure, job);
  return !failure.again;
}

void Pool::Stop(absl::Status why) {
  absl::MutexLock lock(&mutex_);
  if (!stopped_.ok()) return;
  stopped_ = std::move(why);
  // Callers find the sockets closed and end their processes; the keeper ends the idle ones.
  for (const Process* process : busy_) shutdown(process->socket(), SHUT_RDWR);
}

std::vector<pid_t> Pool::idle() const {
  absl::MutexLock lock(&mutex_);
  std::vector<pid_t> processes;
  for (const Idle& idle : idle_) processes.push_back(idle.process->pid());
  return processes;
}

absl::Status Pool::stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

Deadline Pool::JobDeadline(const Process& process) const {
  if (options_.seconds_max <= 0) return Deadline();
  SteadyClock now = options_.now;
  if (options_.yields) {
    now = [this, pid = process.pid(), begin = options_.now(),
           used = options_.processor_time(process.pid())] {
      const std::chrono::nanoseconds got = options_.processor_time(pid) - used;
      const std::chrono::nanoseconds passed = options_.now() - begin;
      return begin + std::max(got, passed / kYieldingPart);
    };
  }
  return Deadline(std::move(now), std::chrono::seconds(options_.seconds_max));
}

absl::StatusOr<Pool::ProcessPointer> Pool::Take(Attempt attempt) {
  // Workers that died while idle, or are ended to make room. Destroyed after the lock is released.
  std::vector<ProcessPointer> dead;
  absl::MutexLock lock(&mutex_);
  while (stopped_.ok() && attempt == Attempt::kFirst && !idle_.empty()) {
    ProcessPointer process = std::move(idle_.back().process);
    idle_.pop_back();
    if (process->IsQuiet()) {
      const bool is_new = busy_.insert(process.get()).second;
      KILN_CHECK(is_new) << "worker " << process->pid() << " is taken twice";
      KILN_VALIDATE(*this, size() + requests_.size());
      return process;
    }
    dead.push_back(std::move(process));
  }
  if (!stopped_.ok()) return stopped_;
  // The last attempt's worker needs a place.
  while (IsFull() && !idle_.empty()) {
    dead.push_back(std::move(idle_.front().process));
    idle_.pop_front();
  }
  Request request;
  requests_.push_back(&request);
  KILN_VALIDATE(*this, size() + requests_.size());
  mutex_.Await(absl::Condition(&request.done));
  return std::move(request.process);
}

void Pool::GiveBack(ProcessPointer process) {
  KILN_CHECK(process != nullptr);
  absl::MutexLock lock(&mutex_);
  const size_t erased = busy_.erase(process.get());
  KILN_CHECK_EQ(erased, 1U) << "a worker is given back that was not taken";
  if (!stopped_.ok()) return;  // the process is destroyed, which ends it
  if (!requests_.empty()) {
    Answer(*requests_.front(), std::move(process));
  } else {
    idle_.push_back({std::move(process), options_.now()});
  }
  KILN_VALIDATE(*this, size() + requests_.size());
}

Failure Pool::End(ProcessPointer process, Transfer transfer) {
  const Ending ending = process->End();
  Failure failure{Failure::Kind::kDied, ending.ToString(), ending.said};
  if (transfer == Transfer::kLate) {
    failure.kind = Failure::Kind::kLate;
    failure.what = absl::StrCat("took longer than ", options_.seconds_max, " seconds");
  } else if (transfer != Transfer::kClosed) {
    failure.kind = Failure::Kind::kNonsense;
    failure.what = "returned an invalid answer";
  } else if (ending.signal == SIGKILL) {
    failure.kind = Failure::Kind::kKilled;
  } else if (IsOutOfMemory(ending)) {
    failure.kind = Failure::Kind::kMemory;
    failure.what =
        options_.memory_bytes_max > 0
            ? absl::StrCat("needed more than ", options_.memory_bytes_max, " bytes of memory")
            : "ran out of memory";
  }
  absl::MutexLock lock(&mutex_);
  const size_t erased = busy_.erase(process.get());
  KILN_CHECK_EQ(erased, 1U) << "a worker ends that was not taken";
  spares_to_start_ = std::min(spares_to_start_ + 1, options_.spares);
  KILN_VALIDATE(*this, size() + requests_.size());
  return failure;
}

void Pool::Keep() {
  while (true) {
    std::vector<ProcessPointer> superfluous;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(this, &Pool::HasWork), kSweep);
      superfluous = TakeSuperfluous();
      if (!stopped_.ok()) {
        while (!requests_.empty()) Answer(*requests_.front(), stopped_);
        return;
      }
      if (!WantsMore()) continue;
    }
    Start();
  }
}

void Pool::Start() {
  absl::StatusOr<ProcessPointer> process = Process::Start(options_.command);
  if (process.ok() && options_.yields) (*process)->Yield();
  if (process.ok() && options_.on_start) options_.on_start();
  absl::MutexLock lock(&mutex_);
  if (!stopped_.ok()) return;  // the process is destroyed, and Keep answers the requests
  spares_to_start_ = process.ok() ? std::max(spares_to_start_ - 1, 0) : 0;
  if (!requests_.empty()) {
    Answer(*requests_.front(), std::move(process));
  } else if (process.ok()) {
    idle_.push_front({*std::move(process), options_.now()});
  }
  KILN_VALIDATE(*this, size() + requests_.size());
}

std::vector<Pool::ProcessPointer> Pool::TakeSuperfluous() {
  std::vector<ProcessPointer> superfluous;
  const SteadyTime now = options_.now();
  for (auto idle = idle_.begin(); idle != idle_.end();) {
    const bool lingers = size() > options_.spares && now - idle->since > kLinger;
    if (stopped_.ok() && !lingers && idle->process->IsQuiet()) {
      ++idle;
      continue;
    }
    superfluous.push_back(std::move(idle->process));
    idle = idle_.erase(idle);
  }
  KILN_VALIDATE(*this, size() + requests_.size());
  return superfluous;
}

void Pool::Answer(Request& request, absl::StatusOr<ProcessPointer> process) {
  KILN_CHECK(!requests_.empty() && requests_.front() == &request && !request.done);
  if (process.ok()) {
    const bool is_new = busy_.insert(process->get()).second;
    KILN_CHECK(*process != nullptr && is_new);
  }
  request.process = std::move(process);
  request.done = true;
  requests_.pop_front();
}

}  // namespace kiln::workers
