// A session keeps the kernels of its programs, bit for bit, whatever is tuned meanwhile: while it
// goes on, after its daemon was killed, and after it was stopped.
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/eventually.h"
#include "tests/server/checkpoints/fixture.h"

namespace kiln::testing {
namespace {

// Different settings add in another order.
constexpr char kNarrow[] = "stage 0 form=sum_lanes lanes=4 vectors=1\n";
constexpr char kScalar[] = "stage 0 form=scalar\n";

class SettingsTest : public SnapshotTest {
 protected:
  void Connect() {
    Start();
    client_ = std::make_unique<Client>(address_, 0, "", kSeldom);
    ASSERT_TRUE(Eventually([&] { return IsProtected(); }));
    stream_ = client_->Connect();
  }

  std::string DefineSum(uint64_t program, bool live = false) {
    v1::ConnectRequest define = Define(program, SumOfSines(200'000));
    define.mutable_define_program()->set_live(live);
    return stream_->Call(define).digest();
  }
  uint32_t BitsOf(uint64_t program) {
    const uint64_t handle = handle_++;
    const v1::Result run = stream_->Call(RunProgram(program, {}, {handle}));
    EXPECT_FALSE(run.has_error()) << run.error().message();
    last_ = stream_->Send(Read(handle));
    const std::vector<float> floats = Floats(stream_->Answer(last_).data());
    EXPECT_EQ(floats.size(), size_t{1});
    return floats.empty() ? 0 : std::bit_cast<uint32_t>(floats[0]);
  }

  // The result of a search, which has the kernel and the hardware.
  std::string Tuned(const std::string& digest) {
    grpc::ClientContext context;
    v1::TuneProgramRequest request;
    request.set_digest(digest);
    request.set_seconds(3600);  // it ends by itself
    request.set_beam_width(1);
    const auto call = client_->programs->TuneProgram(&context, request);
    v1::TuneProgramResponse progress;
    while (call->Read(&progress)) {
    }
    const grpc::Status status = call->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    v1::ExportSettingsResponse exported;
    grpc::ClientContext again;
    EXPECT_TRUE(client_->admin->ExportSettings(&again, {}, &exported).ok());
    return exported.text();
  }

  // Stores this setting of all kernels in the text, as the fastest.
  void Import(const std::string& text, const std::string& setting) {
    std::vector<std::string> lines;
    ++imports_;
    bool is_setting = false;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const bool is_next = absl::StartsWith(line, "hardware ") || absl::StartsWith(line, "end of ");
      if (is_next) is_setting = false;
      if (is_setting) continue;
      if (absl::StartsWith(line, "setting ")) {
        is_setting = true;
        lines.push_back(
            absl::StrCat("setting 2\nsetting 1\n", setting.substr(0, setting.size() - 1)));
      } else if (absl::StartsWith(line, "seconds ")) {
        lines.push_back(absl::StrCat("seconds 1 ", 1e-12 / imports_, " 0"));
      } else {
        lines.emplace_back(line);
      }
    }
    v1::ImportSettingsRequest request;
    request.set_text(absl::StrJoin(lines, "\n"));
    grpc::ClientContext context;
    v1::ImportSettingsResponse imported;
    const grpc::Status status = client_->admin->ImportSettings(&context, request, &imported);
    EXPECT_TRUE(status.ok()) << status.error_message() << request.text();
    EXPECT_GT(imported.added() + imported.replaced(), 0u);
  }

  void Restart(int signal) {
    End(signal);
    Start();
    stream_ = Reattach(address_, *client_, last_);
    ASSERT_NE(stream_, nullptr);
  }

  std::unique_ptr<Client> client_;
  std::unique_ptr<Stream> stream_;
  uint64_t handle_ = 1;
  uint64_t last_ = 0;
  int imports_ = 0;
};

TEST_F(SettingsTest, ARestartedSessionHasTheSameBits) {
  Connect();
  const std::string digest = DefineSum(1);
  const uint32_t first = BitsOf(1);
  const std::string text = Tuned(digest);
  Import(text, kNarrow);
  EXPECT_EQ(BitsOf(1), first);
  DefineSum(2);
  const uint32_t narrow = BitsOf(2);
  ASSERT_NE(narrow, first) << "the test needs settings that round differently";
  for (const int signal : {SIGKILL, SIGTERM, SIGKILL}) {
    Restart(signal);
    EXPECT_EQ(BitsOf(1), first) << signal;
    EXPECT_EQ(BitsOf(2), narrow) << signal;
    Import(text, signal == SIGKILL ? kScalar : kNarrow);
  }
  // In the log only.
  DefineSum(3);
  const uint32_t scalar = BitsOf(3);
  ASSERT_NE(scalar, narrow);
  Import(text, kNarrow);
  Restart(SIGKILL);
  EXPECT_EQ(BitsOf(1), first);
  EXPECT_EQ(BitsOf(2), narrow);
  EXPECT_EQ(BitsOf(3), scalar);
}

TEST_F(SettingsTest, ALiveProgramGetsFasterKernels) {
  Connect();
  const std::string digest = DefineSum(1);
  DefineSum(2, /*live=*/true);
  const uint32_t first = BitsOf(1);
  EXPECT_EQ(BitsOf(2), first);
  const std::string text = Tuned(digest);
  Import(text, kNarrow);
  // The old kernels run until the new ones are compiled.
  EXPECT_TRUE(Eventually([&] { return BitsOf(2) != first; }));
  EXPECT_EQ(BitsOf(1), first);
  Import(text, kScalar);
  Restart(SIGKILL);
  EXPECT_EQ(BitsOf(1), first);
  DefineSum(3);
  const uint32_t scalar = BitsOf(3);
  EXPECT_TRUE(Eventually([&] { return BitsOf(2) == scalar; }));
}

}  // namespace
}  // namespace kiln::testing
