#include "server/auth/audit_log.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln::auth {
namespace {

std::string NewLog() {
  std::string pattern = ::testing::TempDir() + "kiln_audit_XXXXXX";
  return absl::StrCat(mkdtemp(pattern.data()), "/audit.jsonl");
}

cache::Secret KeyBeside(const std::string& path) {
  return *cache::Secret::Open(std::filesystem::path(path).parent_path() / kAuditKeyFile);
}

std::unique_ptr<AuditLog> OpenLog(const std::string& path, int64_t bytes_max = 8 << 20) {
  return *AuditLog::Open(path, KeyBeside(path), bytes_max);
}

AuditEvent Event(const std::string& subject) {
  return {0, absl::FromUnixMillis(1'700'000'000'123), "ann", "drain", subject, "ok"};
}

TEST(AuditLog, ALineIsJson) {
  AuditEvent event = Event("cpu:0");
  event.number = 7;
  EXPECT_EQ(ToJson(event),
            R"({"number":7,"time":"2023-11-14T22:13:20.123Z","user":"ann","action":"drain",)"
            R"("subject":"cpu:0","outcome":"ok"})");
}

TEST(AuditLog, NoValueCanForgeAnEventOrAField) {
  for (const std::string value :
       {"x\n{\"number\":9,\"time\":\"2023-11-14T22:13:20.123Z\",\"user\":\"root\"}",
        "x\",\"outcome\":\"ok\"}", "back\\", "\\\"", "\x1b[2J\r", "\xff\xfe", "\u202egnp.exe",
        "tab\there", "nul"}) {
    const std::string line = ToJson(Event(value));
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << value;
    const auto read = FromJson(line);
    ASSERT_TRUE(read) << line;
    EXPECT_EQ(read->user, "ann");
    EXPECT_EQ(read->action, "drain");
    EXPECT_EQ(read->outcome, "ok");
    // Reading returns what was written: nothing is escaped twice.
    EXPECT_EQ(FromJson(ToJson(*read))->subject, read->subject);
  }
  EXPECT_LT(ToJson(Event(std::string(1'000'000, 'x'))).size(), 1000);
}

TEST(AuditLog, CountsOnOverRestartsAndHalfALine) {
  const std::string path = NewLog();
  {
    auto log = OpenLog(path);
    log->Append(Event("a"));
    log->Append(Event("b"));
  }
  std::ofstream(path, std::ios::app) << "{\"number\":3,\"ti";
  auto log = OpenLog(path);
  log->Append(Event("c"));
  const auto events = log->Read(0, absl::InfinitePast(), 10);
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(events[2].subject, "c");
  EXPECT_EQ(events[2].number, 3);
  EXPECT_EQ(log->Read(1, absl::InfinitePast(), 1)[0].subject, "b");
  EXPECT_TRUE(log->Read(3, absl::InfinitePast(), 1).empty());
  EXPECT_TRUE(log->Read(0, absl::FromUnixMillis(1'700'000'000'124), 10).empty());
  EXPECT_FALSE(log->problem_at_start());
  EXPECT_FALSE(log->Verify().problem);
}

TEST(AuditLog, HasABound) {
  const std::string path = NewLog();
  constexpr int64_t kBytesMax = 5000;
  auto log = OpenLog(path, kBytesMax);
  for (int i = 0; i < 100; ++i) log->Append(Event(absl::StrCat(i)));
  EXPECT_LE(std::filesystem::file_size(path), kBytesMax);
  EXPECT_LE(std::filesystem::file_size(path + ".1"), kBytesMax);
  const auto events = log->Read(0, absl::InfinitePast(), 1000);
  ASSERT_GE(events.size(), 10);
  EXPECT_EQ(events.back().subject, "99");
  for (size_t i = 1; i < events.size(); ++i) EXPECT_EQ(events[i].number, events[i - 1].number + 1);
}

// Also while the file is replaced by an empty one.
TEST(AuditLog, PagesAreInOrderWhileEventsCome) {
  constexpr int64_t kEvents = 500;
  auto log = OpenLog(NewLog(), 16 << 10);
  std::thread writer([&] {
    for (int64_t i = 0; i < kEvents; ++i) log->Append(Event("cpu:0"));
  });
  int64_t last = 0;
  while (last < kEvents) {
    for (const AuditEvent& event : log->Read(last, absl::InfinitePast(), 50)) {
      EXPECT_GT(event.number, last);
      last = event.number;
    }
  }
  writer.join();
  const auto page = log->Read(kEvents - 10, absl::InfinitePast(), 50);
  ASSERT_EQ(page.size(), 10);
  EXPECT_EQ(page[0].number, kEvents - 9);
}

// As `kilnd --verify_audit` does, beside the daemon.
TEST(AuditLog, AnotherProcessVerifiesItWhileItIsRotated) {
  const std::string path = NewLog();
  const std::string folder = std::filesystem::path(path).parent_path();
  auto log = OpenLog(path, /*bytes_max=*/2000);
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    while (!ends) log->Append(Event("cpu:0"));
  });
  for (int i = 0; i < 200; ++i) {
    const auto report = VerifyAuditFolder(folder);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->problem) << report->problem->file << ":" << report->problem->line << " "
                                  << report->problem->what;
  }
  ends = true;
  writer.join();
  // It still finds what is wrong.
  std::filesystem::resize_file(path + kHeadSuffix, 3);
  EXPECT_TRUE(VerifyAuditFolder(folder)->problem);
}

TEST(AuditLog, FilesThatAreOpenedTogetherFollowEachOther) {
  const std::string path = NewLog();
  auto log = OpenLog(path, /*bytes_max=*/2000);
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    while (!ends) log->Append(Event("cpu:0"));
  });
  const AuditChain chain(KeyBeside(path));
  for (int i = 0; i < 200; ++i) {
    OpenAuditFiles files = OpenAudit(path);
    if (!files.current) continue;
    // Without the line that is being written.
    std::string text{std::istreambuf_iterator<char>(files.current), {}};
    std::istringstream whole(text.substr(0, text.rfind('\n') + 1));
    const AuditReport report = chain.Verify({.name = "audit.jsonl",
                                             .earlier = files.earlier ? &files.earlier : nullptr,
                                             .current = &whole,
                                             .head = files.head});
    EXPECT_FALSE(report.problem) << report.problem->file << ":" << report.problem->line << " "
                                 << report.problem->what;
  }
  ends = true;
  writer.join();
}

}  // namespace
}  // namespace kiln::auth
