// The fixture of tests of sessions that survive a daemon that is killed.
#ifndef KILN_TESTS_SERVER_CHECKPOINTS_FIXTURE_H_
#define KILN_TESTS_SERVER_CHECKPOINTS_FIXTURE_H_

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/eventually.h"
#include "tests/server/client.h"
#include "tests/server/kilnd_process.h"

namespace kiln::testing {

// The interval with which only the first snapshot is taken.
inline constexpr uint32_t kSeldom = 3600;

inline std::string BytesOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void Put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  chmod(path.c_str(), 0600);
}

class SnapshotTest : public ProcessTest {
 protected:
  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = ProcessTest::Flags();
    if (!config_.empty()) {
      Put(folder_ + "/kilnd.toml", config_);
      flags.push_back(absl::StrCat("--config=", folder_, "/kilnd.toml"));
    }
    return flags;
  }
  void KillAndStart() {
    End(SIGKILL);
    Start();
  }
  // Returns the files of sessions whose names end in `suffix`.
  std::vector<std::filesystem::path> Files(absl::string_view suffix) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/state/sessions"))
      if (absl::EndsWith(entry.path().native(), suffix)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  // Waits until a new snapshot has replaced these journal segments and only the next segment is
  // left.
  bool WaitForSegmentAfter(const std::vector<std::filesystem::path>& segments) {
    return Eventually([&] {
      const auto now = Files(".journal");
      return now.size() == 1 && now != segments;
    });
  }
  // Returns the listed state of the only session with snapshots.
  v1::Session Listed() {
    const v1::ListSessionsResponse all = Sessions(address_);
    for (const v1::Session& session : all.sessions())
      if (session.snapshot_seconds() > 0) return session;
    return {};
  }
  bool IsProtected() { return Listed().has_snapshot_taken(); }

  std::string config_;
};

// Adds up 1, 2, 3, … in a value, so that an operation that is repeated or lost shows.
class Summer {
 public:
  explicit Summer(const std::string& address, uint32_t snapshot_seconds = kSeldom,
                  int64_t floats = 4)
      : address_(address),
        client_(address, 0, "", snapshot_seconds),
        floats_(floats),
        stream_(client_.Connect()) {
    v1::Graph graph = AccumulateGraph(floats);
    graph.clear_outputs();
    Do(Define(1, graph));
    Do(Write(1, std::vector<float>(floats, 0)));
    handle_ = 2;
  }
  const Client& client() const { return client_; }
  Stream& stream() { return *stream_; }

  // Makes one step: a Write, a Run, and a Release of the written value.
  void Step() {
    ++steps_;
    Do(Write(handle_, std::vector<float>(floats_, static_cast<float>(steps_))));
    Do(RunProgram(1, {1, handle_}, {}));
    Do(Release({handle_++}));
  }
  // Waits until everything is answered.
  bool Settle() {
    for (; answered_ < sent_; ++answered_)
      if (stream_->Answer(answered_ + 1).has_error()) return false;
    return true;
  }
  // Attaches again and sends what is missing. Returns the reason if that fails.
  std::string Attach() {
    grpc::Status why;
    stream_->Drop();
    stream_ = Reattach(address_, client_, answered_, &why);
    if (!stream_) return Reason(why);
    for (uint64_t next = stream_->last_sequence() + 1; next <= sent_; ++next)
      stream_->Send(kept_.at(next), next);
    return {};
  }
  // Compares the sum bit for bit.
  void ExpectRight() {
    Do(Read(1));
    ++answered_ = sent_;
    const v1::Result result = stream_->Answer(sent_);
    EXPECT_FALSE(result.has_error()) << result.error().message();
    float sum = 0;
    for (int step = 1; step <= steps_; ++step) sum += static_cast<float>(step);
    EXPECT_EQ(Floats(result.data()), std::vector<float>(floats_, sum));
  }
  uint64_t Do(v1::ConnectRequest request) {
    kept_[++sent_] = request;
    request.set_acknowledged(answered_);
    stream_->Send(request, sent_);
    return sent_;
  }
  uint64_t NewHandle() { return handle_++; }

 private:
  const std::string address_;
  Client client_;
  const int64_t floats_;
  std::unique_ptr<Stream> stream_;
  std::map<uint64_t, v1::ConnectRequest> kept_;
  uint64_t sent_ = 0, answered_ = 0, handle_ = 0;
  int steps_ = 0;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_CHECKPOINTS_FIXTURE_H_
