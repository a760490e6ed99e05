// A crowd at one daemon: clients of several users that compute, lose their connections, vanish, ask
// for too much, cancel, send nonsense and look for what is others'. Each knows what every answer
// must be (exact_client.h), and when all have gone the daemon holds nothing of them.
//
//   KILN_CROWD_SECONDS=600 KILN_CROWD_CLIENTS=32 KILN_SEED=7 daemon_crowd_test
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/exact_client.h"
#include "tests/server/kilnd_process.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kUsers = 8;
// Of sessions: more than a slow machine takes to come back after a cut.
constexpr uint32_t kLeaseSeconds = 20;
constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kHostLimit = 256 * kMebibyte;

// The ids of sessions, for others to try.
class Ids {
 public:
  void Add(int user, const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ids_[user % kUsers] = id;
  }
  std::string OfAnother(int user) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return ids_[(user + 1) % kUsers];
  }

 private:
  absl::Mutex mutex_;
  std::string ids_[kUsers] ABSL_GUARDED_BY(mutex_);
};

// One client after another, under one user's name.
class Guest {
 public:
  Guest(std::string address, int user, std::string token, uint64_t seed, Ids& ids)
      : address_(std::move(address)),
        user_(user),
        login_{.token = std::move(token)},
        random_(seed),
        ids_(ids) {}

  void Stay(absl::Time until) {
    while (wrong_.empty() && absl::Now() < until) VisitOnce(until);
  }
  // What was not as expected; empty if all was.
  const std::string& wrong() const { return wrong_; }
  int64_t operations() const { return operations_; }

 private:
  bool OneIn(uint64_t chances) { return random_() % chances == 0; }
  void Expect(bool holds, const std::string& what, const std::string& found) {
    if (!holds && wrong_.empty()) wrong_ = absl::StrCat(what, ": ", found);
  }

  void VisitOnce(absl::Time until) {
    Client client(address_, login_, kLeaseSeconds);
    if (client.opened.error_code() == grpc::RESOURCE_EXHAUSTED) {
      // Those who have vanished still have their sessions.
      return absl::SleepFor(absl::Milliseconds(50));
    }
    Expect(client.opened.ok(), "a session", client.opened.error_message());
    if (!wrong_.empty()) return;
    ids_.Add(user_, client.session.session_id());
    Sender sender(address_, client);
    Model model;
    for (Exact& define : Model::First()) sender.Send(std::move(define));
    const uint64_t steps = 100 + random_() % 2000;
    for (uint64_t step = 0; step < steps && absl::Now() < until; ++step) {
      sender.Send(model.Next(random_));
      ++operations_;
      if (sender.in_flight() > random_() % 128) sender.AnswerAllBut(random_() % 32);
      if (OneIn(300)) sender.Cut();
      if (OneIn(500)) AskTooMuch(client);
      if (OneIn(500)) SendNonsense(client);
      // By then the first operation has been answered.
      if (step > 128 && OneIn(500)) SendWrongNumber(client);
      if (OneIn(500)) Pry(client);
      if (OneIn(1000)) CancelSome();
      if (!sender.wrong().empty()) break;
      if (OneIn(3000)) return;  // vanishes
    }
    for (Exact& read : model.Last()) sender.Send(std::move(read));
    sender.AnswerAllBut(0);
    Expect(sender.wrong().empty(), "an answer", sender.wrong());
    Close(client);
  }

  void Close(Client& client) {
    grpc::ClientContext context;
    v1::CloseSessionRequest request;
    request.set_session_id(client.session.session_id());
    v1::CloseSessionResponse response;
    const grpc::Status closed = client.sessions->CloseSession(&context, request, &response);
    Expect(closed.ok(), "closing", closed.error_message());
  }

  // Announced, and never sent: refused, since it cannot come to anything.
  void AskTooMuch(Client& client) {
    grpc::ClientContext context;
    v1::UploadResponse response;
    const auto writer = client.blobs->Upload(&context, &response);
    v1::UploadRequest request;
    request.mutable_header()->set_session_id(client.session.session_id());
    request.mutable_header()->set_blob("too much");
    request.mutable_header()->set_size_bytes(uint64_t{4} * kHostLimit);
    request.set_data("x");
    writer->Write(request);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    Expect(status.error_code() == grpc::RESOURCE_EXHAUSTED, "an upload of too much",
           status.error_message());
  }

  void SendNonsense(Client& client) {
    static constexpr std::pair<const char*, grpc::StatusCode> kMethods[] = {
        {"/kiln.v1.SessionService/OpenSession", grpc::INVALID_ARGUMENT},
        {"/kiln.v1.BlobService/FindBlobs", grpc::INVALID_ARGUMENT},
        {"/kiln.v1.ProgramService/ExplainProgram", grpc::INVALID_ARGUMENT},
        {"/kiln.v1.AdminService/Drain", grpc::PERMISSION_DENIED},
        {"/kiln.v1.AdminService/Nothing", grpc::UNIMPLEMENTED}};
    const auto& [method, refusal] = kMethods[random_() % std::size(kMethods)];
    std::string bytes(random_() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    bytes.insert(0, "\x0a\xff");  // a field longer than the message
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    absl::Notification done;
    grpc::Status status;
    grpc::GenericStub(client.channel)
        .UnaryCall(&context, method, {}, &request, &response, [&](grpc::Status ended) {
          status = std::move(ended);
          done.Notify();
        });
    done.WaitForNotification();
    Expect(status.error_code() == refusal, method, status.error_message());
  }

  // From the past it has no effect, from the future the stream ends. The sender's stream ends
  // either way, and it comes back.
  void SendWrongNumber(Client& client) {
    const auto stream = client.Connect();
    Expect(stream->attached(), "another stream", "not attached");
    if (OneIn(2)) {
      stream->Send(Release({1}), 1);
      return stream->Drop();
    }
    stream->Send(Release({1}), uint64_t{1} << 60);
    const grpc::Status status = stream->End();
    Expect(Reason(status) == "BAD_SEQUENCE", "a number from the future", status.error_message());
  }

  void Pry(Client& client) {
    const std::string id = ids_.OfAnother(user_);
    if (id.empty()) return;
    Stream stream(*client.sessions, id);
    Expect(!stream.attached(), "another's session", "attached");
    const grpc::Status status = stream.End();
    Expect(status.error_code() == grpc::NOT_FOUND, "another's session", status.error_message());
  }

  // A run ends well or is cancelled, and what was cancelled has changed nothing.
  void CancelSome() {
    Client client(address_, login_, kLeaseSeconds);
    if (client.opened.error_code() == grpc::RESOURCE_EXHAUSTED) return;
    const auto stream = client.Connect();
    DefineCounter(*stream);
    constexpr int kRuns = 50;
    std::vector<uint64_t> runs;
    for (int i = 0; i < kRuns; ++i)
      runs.push_back(stream->Send(RunProgram(1, {1, 2}, {100 + static_cast<uint64_t>(i)})));
    stream->Send(CancelFrom(runs[static_cast<size_t>(random_() % kRuns)]));
    int ran = 0;
    for (const uint64_t run : runs) {
      const v1::Result result = stream->Answer(run);
      ran += result.has_error() ? 0 : 1;
      Expect(!result.has_error() || result.error().code() == grpc::CANCELLED, "a cancelled run",
             result.error().message());
    }
    const v1::Result counted = stream->Call(Read(1));
    Expect(Floats(counted.data()) == std::vector<float>{static_cast<float>(ran)},
           "the sum of runs that were not cancelled", counted.ShortDebugString());
    Close(client);
  }

  const std::string address_;
  const int user_;
  const Client::Login login_;
  Random random_;
  Ids& ids_;
  std::string wrong_;
  int64_t operations_ = 0;
};

class CrowdTest : public ProcessTest {
 protected:
  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = ProcessTest::Flags();
    flags.push_back(absl::StrCat("--host_memory_limit=", kHostLimit));
    flags.push_back(absl::StrCat("--memory_limit=", kHostLimit));
    flags.push_back("--cpu_threads=1");
    return flags;
  }
  void AddUsers() {
    owner_ = std::make_unique<Client>(address_);
    for (int i = 0; i < kUsers; ++i) {
      grpc::ClientContext context;
      v1::AddUserRequest request;
      request.set_name(absl::StrCat("user", i));
      v1::AddUserResponse response;
      ASSERT_TRUE(owner_->admin->AddUser(&context, request, &response).ok());
      tokens_.push_back(response.token());
    }
  }
  // So many guests for so long; then all are gone.
  void Visit(int64_t guests, absl::Duration duration, uint64_t seed) {
    Ids ids;
    std::vector<std::unique_ptr<Guest>> all;
    std::vector<std::thread> threads;
    const absl::Time until = absl::Now() + duration;
    for (int i = 0; i < guests; ++i) {
      all.push_back(std::make_unique<Guest>(address_, i % kUsers,
                                            tokens_[static_cast<size_t>(i % kUsers)],
                                            seed + static_cast<uint64_t>(i), ids));
      threads.emplace_back([guest = all.back().get(), until] { guest->Stay(until); });
    }
    for (std::thread& thread : threads) thread.join();
    int64_t operations = 0;
    for (const auto& guest : all) {
      EXPECT_EQ(guest->wrong(), "") << "KILN_SEED=" << seed;
      operations += guest->operations();
    }
    EXPECT_GT(operations, 10 * guests);
    EXPECT_TRUE(IsEmpty()) << "sessions or memory are left";
    std::printf("%ld operations; resident: %ld MiB\n", static_cast<long>(operations),
                static_cast<long>(Resident() / kMebibyte));
  }
  // Once the leases of those who vanished have run out.
  bool IsEmpty() {
    const absl::Time deadline = absl::Now() + absl::Seconds(10 * kLeaseSeconds);
    while (absl::Now() < deadline) {
      grpc::ClientContext sessions_context, users_context;
      v1::ListSessionsResponse sessions;
      v1::ListUsersResponse users;
      owner_->sessions->ListSessions(&sessions_context, {}, &sessions);
      owner_->admin->ListUsers(&users_context, {}, &users);
      uint64_t bytes = 0;
      for (const v1::User& user : users.users()) bytes += user.memory_bytes();
      if (sessions.sessions_size() == 1 && bytes == 0) return true;
      absl::SleepFor(absl::Milliseconds(50));
    }
    return false;
  }
  int64_t Resident() const {
    std::ifstream file(absl::StrCat("/proc/", pid_, "/statm"));
    int64_t pages = 0;
    file >> pages >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  }

  std::unique_ptr<Client> owner_;  // whose session is the only one that stays
  std::vector<std::string> tokens_;
};

TEST_F(CrowdTest, EachIsServedExactlyAndNothingIsLeft) {
  const int64_t guests = FromEnvironment("KILN_CROWD_CLIENTS", 32);
  const absl::Duration duration = absl::Seconds(FromEnvironment("KILN_CROWD_SECONDS", 4));
  const auto seed = static_cast<uint64_t>(FromEnvironment("KILN_SEED", 1));
  Start();
  AddUsers();
  // Caches, threads and pools are there after the first.
  Visit(guests, std::min(duration, absl::Seconds(30)), seed + 1000);
  const int64_t before = Resident();
  Visit(guests, duration, seed);
  if (kMemoryIsOurs) {
    EXPECT_LT(Resident(), before + 48 * kMebibyte);
  }
  const int status = End(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << Log();
  EXPECT_THAT(Log(), Not(HasSubstr("Sanitizer"))) << Log();
}

}  // namespace
}  // namespace kiln::testing
