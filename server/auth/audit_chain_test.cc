#include "server/auth/audit_chain.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/auth/audit_log.h"

namespace kiln::auth {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A state folder with a log that a test tampers with while no daemon runs.
class AuditChainTest : public ::testing::Test {
 protected:
  AuditChainTest() {
    std::string pattern = ::testing::TempDir() + "kiln_chain_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = absl::StrCat(folder_, "/", kAuditFile);
  }
  ~AuditChainTest() override { fs::remove_all(folder_); }

  std::unique_ptr<AuditLog> Open(int64_t bytes_max = 8 << 20) const {
    return *AuditLog::Open(path_, *cache::Secret::Open(absl::StrCat(folder_, "/", kAuditKeyFile)),
                           bytes_max);
  }
  void Append(int events, int64_t bytes_max = 8 << 20) const {
    const auto log = Open(bytes_max);
    for (int i = 0; i < events; ++i) {
      const std::string subject = absl::StrCat("cpu:", log->last_number() + 1);
      log->Append({0, absl::FromUnixMillis(1'700'000'000'123), "ann", "drain", subject, "ok"});
    }
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<std::string> Lines(const std::string& path) {
    std::vector<std::string> lines = absl::StrSplit(Content(path), '\n');
    lines.pop_back();  // after the last newline
    return lines;
  }
  static void Write(const std::string& path, const std::vector<std::string>& lines) {
    std::ofstream(path, std::ios::binary)
        << absl::StrJoin(lines, "\n") << (lines.empty() ? "" : "\n");
  }
  AuditReport Verify() const {
    auto report = VerifyAuditFolder(folder_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value_or(AuditReport{});
  }
  void ExpectProblem(const std::string& file, int64_t line, const std::string& what) const {
    const AuditReport report = Verify();
    ASSERT_TRUE(report.problem) << report.events;
    EXPECT_EQ(report.problem->file, file) << report.problem->what;
    EXPECT_EQ(report.problem->line, line) << report.problem->what;
    EXPECT_THAT(report.problem->what, HasSubstr(what));
  }

  std::string folder_;
  std::string path_;
};

TEST_F(AuditChainTest, AnUntouchedLogIsWholeAlsoOverRestarts) {
  Append(3);
  Append(2);
  const AuditReport report = Verify();
  EXPECT_FALSE(report.problem) << report.problem->what;
  EXPECT_EQ(report.events, 5);
  EXPECT_EQ(report.end.number, 5);
  EXPECT_EQ(report.end.tag, AuditChain::TagIn(Lines(path_).back()));
}

// Any byte of any line, also of its seal.
TEST_F(AuditChainTest, AChangedLineIsNamed) {
  Append(3);
  const std::string before = Content(path_);
  for (size_t at = 0; at < before.size(); at += 7) {
    if (before[at] == '\n') continue;
    std::string changed = before;
    changed[at] = changed[at] == '0' ? '1' : '0';
    std::ofstream(path_, std::ios::binary) << changed;
    const AuditReport report = Verify();
    ASSERT_TRUE(report.problem) << at;
    const auto line = std::count(before.begin(), before.begin() + static_cast<int64_t>(at), '\n');
    EXPECT_EQ(report.problem->line, line + 1) << at;
  }
}

TEST_F(AuditChainTest, ADeletedLineIsNamed) {
  Append(5);
  const std::vector<std::string> lines = Lines(path_);
  for (size_t deleted = 0; deleted < lines.size(); ++deleted) {
    std::vector<std::string> left = lines;
    left.erase(left.begin() + static_cast<int64_t>(deleted));
    Write(path_, left);
    const bool is_first = deleted == 0, is_last = deleted + 1 == lines.size();
    ExpectProblem(kAuditFile, static_cast<int64_t>(deleted) + 1,
                  is_first  ? "lines before it were deleted"
                  : is_last ? "the log ends with event 4, but event 5 was written"
                            : "lines before it were deleted");
  }
}

TEST_F(AuditChainTest, AnInsertedLineIsNamed) {
  Append(3);
  const std::vector<std::string> lines = Lines(path_);
  AuditEvent event = *FromJson(lines[1]);
  event.user = "mallory";
  const cache::Secret other = *cache::Secret::Open(folder_ + "/other");
  const std::pair<std::string, const char*> inserted[] = {
      {ToJson(event), "has no seal"},
      {"garbage", "is not an event"},
      {"", "is not an event"},
      {lines[1], "does not follow the line before it"},
      {AuditChain(other).Seal(event, *AuditChain::TagIn(lines[1]), false), "with another key"}};
  for (const auto& [line, what] : inserted) {
    Write(path_, {lines[0], lines[1], line, lines[2]});
    ExpectProblem(kAuditFile, 3, what);
  }
  Write(path_, {lines[0], lines[2], lines[1]});
  ExpectProblem(kAuditFile, 2, "event 2 comes first");
  Write(path_, {ToJson(event), lines[0], lines[1], lines[2]});
  ExpectProblem(kAuditFile, 2, "lines were inserted before it");
}

TEST_F(AuditChainTest, ACutEndIsNoticed) {
  Append(3);
  const std::string whole = Content(path_), head = Content(path_ + kHeadSuffix);
  Write(path_, {Lines(path_)[0]});
  ExpectProblem(kAuditFile, 2, "the log ends with event 1, but event 3 was written");
  Write(path_, {});
  ExpectProblem(kAuditFile, 1, "the log ends with event 0");
  std::ofstream(path_) << whole.substr(0, whole.size() - 5);
  ExpectProblem(kAuditFile, 3, "is not complete");
  std::ofstream(path_) << whole;
  std::ofstream(path_ + kHeadSuffix) << absl::StrReplaceAll(head, {{"3 ", "2 "}});
  ExpectProblem(kAuditFile, 4,
                "audit.jsonl.head, which has the number of the last event, was changed");
  fs::remove(path_ + kHeadSuffix);
  ExpectProblem(kAuditFile, 4, "is missing");
}

// An old copy of the file of the head hides a cut, except from the daemon that has written more.
TEST_F(AuditChainTest, ARunningDaemonKnowsItsLastEvent) {
  Append(1);
  const std::string old = Content(path_), old_head = Content(path_ + kHeadSuffix);
  const auto log = Open();
  log->Append({0, absl::FromUnixMillis(0), "ann", "drain", "cpu:0", "ok"});
  EXPECT_FALSE(log->Verify().problem);
  std::ofstream(path_) << old;
  std::ofstream(path_ + kHeadSuffix) << old_head;
  EXPECT_FALSE(Verify().problem);
  const AuditReport report = log->Verify();
  ASSERT_TRUE(report.problem);
  EXPECT_THAT(report.problem->what, HasSubstr("ends with event 1, but event 2 was written"));
}

TEST_F(AuditChainTest, RotationKeepsTheChain) {
  Append(60, /*bytes_max=*/5000);
  ASSERT_TRUE(fs::exists(path_ + kEarlierSuffix));
  const AuditReport report = Verify();
  EXPECT_FALSE(report.problem) << report.problem->what;
  EXPECT_GT(report.events, 10);
  EXPECT_EQ(report.end.number, 60);
  const std::vector<std::string> earlier = Lines(path_ + kEarlierSuffix);
  std::vector<std::string> left(earlier.begin(), earlier.end() - 1);
  Write(path_ + kEarlierSuffix, left);
  ExpectProblem(kAuditFile, 1, "lines before it were deleted");
  left.assign(earlier.begin() + 1, earlier.end());
  Write(path_ + kEarlierSuffix, left);
  ExpectProblem("audit.jsonl.1", 1, "does not begin its file: lines before it were deleted");
  Write(path_ + kEarlierSuffix, {});
  ExpectProblem(kAuditFile, 1, "continues audit.jsonl.1, which was deleted");
  fs::remove(path_ + kEarlierSuffix);
  ExpectProblem(kAuditFile, 1, "continues audit.jsonl.1, which was deleted");
}

TEST_F(AuditChainTest, LinesOfAnEarlierVersionAreSealedByTheNext) {
  AuditEvent event{1, absl::FromUnixMillis(1'700'000'000'123), "ann", "drain", "cpu:0", "ok"};
  std::vector<std::string> lines = {ToJson(event)};
  event.number = 2;
  lines.push_back(ToJson(event));
  Write(path_, lines);
  Append(2);
  AuditReport report = Verify();
  EXPECT_FALSE(report.problem) << report.problem->what;
  EXPECT_EQ(report.unprotected, 2);
  EXPECT_EQ(report.events, 2);
  EXPECT_EQ(report.end.number, 4);
  lines = Lines(path_);
  lines[0] = absl::StrReplaceAll(lines[0], {{"ann", "bob"}});
  Write(path_, lines);
  ExpectProblem(kAuditFile, 3, "does not match the lines before it, which have no seals");
}

// The fault stays visible after the next daemon has written more.
TEST_F(AuditChainTest, ARestartDoesNotRepairALog) {
  Append(3);
  Write(path_, {Lines(path_)[0]});
  EXPECT_TRUE(Open()->problem_at_start());
  Append(2);
  ExpectProblem(kAuditFile, 2, "is event 4, but event 2 comes first");
  std::vector<std::string> lines = Lines(path_);
  EXPECT_EQ(FromJson(lines.back())->number, 5);
  // All of it is gone except the head.
  fs::remove(path_);
  Append(1);
  ExpectProblem(kAuditFile, 1, "continues audit.jsonl.1, which was deleted");
  EXPECT_EQ(FromJson(Lines(path_)[0])->number, 6);
}

TEST_F(AuditChainTest, WithoutAKeyNothingIsVerified) {
  EXPECT_EQ(VerifyAuditFolder(folder_).status().code(), absl::StatusCode::kNotFound);
  Append(2);
  fs::remove(absl::StrCat(folder_, "/", kAuditKeyFile));
  EXPECT_EQ(VerifyAuditFolder(folder_).status().code(), absl::StatusCode::kFailedPrecondition);
  Append(1);  // makes another key
  ExpectProblem(kAuditFile, 1, "with another key");
  EXPECT_EQ(FromJson(Lines(path_).back())->number, 3);
}

TEST_F(AuditChainTest, APartialLineOfACrashIsCut) {
  Append(2);
  std::ofstream(path_, std::ios::app) << "{\"number\":3,\"ti";
  Append(1);
  const AuditReport report = Verify();
  EXPECT_FALSE(report.problem) << report.problem->what;
  EXPECT_EQ(report.events, 3);
}

}  // namespace
}  // namespace kiln::auth
