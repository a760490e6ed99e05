#include "server/trace/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/errors/errors.h"

namespace kiln::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kBegin = absl::UnixEpoch() + absl::Hours(1);

absl::Time At(int milliseconds) { return kBegin + absl::Milliseconds(milliseconds); }

Span RunOf(std::string user, int start, int end, std::string device = "cpu:0") {
  return {.kind = Kind::kRun,
          .start = At(start),
          .duration = absl::Milliseconds(end - start),
          .name = "step",
          .user = std::move(user),
          .session = "s3",
          .device = std::move(device),
          .program = "0123456789ab",
          .detail = "s3/17",
          .number = 1};
}

std::vector<std::string> Names(const Trace::Taken& taken) {
  std::vector<std::string> names;
  for (const Span& span : taken.spans) names.push_back(span.name);
  return names;
}

class RecorderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Trace> Begin(Viewer viewer) {
    auto trace = recorder_.Begin(std::move(viewer));
    EXPECT_TRUE(trace.ok()) << trace.status();
    return *std::move(trace);
  }

  Recorder recorder_{[] { return kBegin; }};
};

TEST_F(RecorderTest, RecordsOnlyWhileThereIsATrace) {
  EXPECT_FALSE(recorder_.is_on());
  recorder_.Add(RunOf("ann", 0, 1));
  auto trace = Begin({"ann"});
  EXPECT_TRUE(recorder_.is_on());
  EXPECT_EQ(trace->began(), kBegin);
  recorder_.Add(RunOf("ann", 1, 2));
  EXPECT_THAT(trace->Take(10).spans, SizeIs(1));
  EXPECT_THAT(trace->Take(10).spans, IsEmpty());
  auto other = Begin({"ben"});
  trace.reset();
  EXPECT_TRUE(recorder_.is_on());
  other.reset();
  EXPECT_FALSE(recorder_.is_on());
  EXPECT_FALSE(IsOn(nullptr));
}

TEST_F(RecorderTest, AStoppedTraceKeepsItsSpans) {
  auto trace = Begin({"ann"});
  recorder_.Add(RunOf("ann", 0, 1));
  trace->Stop();
  EXPECT_FALSE(recorder_.is_on());
  recorder_.Add(RunOf("ann", 1, 2));
  trace->Stop();
  EXPECT_THAT(trace->Take(10).spans, SizeIs(1));
}

TEST_F(RecorderTest, UsersSeeTheirOwnSpansAndOthersRunsWithoutNames) {
  auto anns = Begin({"ann"});
  auto all = Begin({"root", /*sees_all=*/true});
  recorder_.Add(RunOf("ann", 0, 1));
  recorder_.Add(RunOf("ben", 1, 2));
  recorder_.Add(RunOf("", 2, 3));
  Span call = RunOf("ben", 3, 4);
  call.kind = Kind::kCall;
  recorder_.Add(call);

  const auto seen = anns->Take(10).spans;
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_EQ(seen[0].user, "ann");
  EXPECT_EQ(seen[0].detail, "s3/17");
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(seen[i].kind, Kind::kRun);
    EXPECT_EQ(seen[i].name, "other");
    EXPECT_EQ(seen[i].device, "cpu:0");
    EXPECT_EQ(seen[i].start, At(static_cast<int>(i)));
    EXPECT_EQ(seen[i].duration, absl::Milliseconds(1));
    EXPECT_EQ(seen[i].user + seen[i].session + seen[i].program + seen[i].detail, "");
    EXPECT_EQ(seen[i].number, 0);
  }
  EXPECT_THAT(all->Take(10).spans, SizeIs(4));
}

TEST_F(RecorderTest, AUserWithoutANameOwnsNothing) {
  auto trace = Begin({""});
  recorder_.Add(RunOf("", 0, 1));
  EXPECT_THAT(Names(trace->Take(10)), ElementsAre("other"));
}

TEST_F(RecorderTest, RunsOfADeviceDoNotOverlapAndHoldTheirCommands) {
  auto trace = Begin({"ann"});
  recorder_.Add(RunOf("ann", 0, 10));
  Span command = RunOf("ann", 8, 11);
  command.kind = Kind::kCommand;
  Span last = RunOf("ann", 11, 16);
  last.kind = Kind::kCommand;
  recorder_.Add(RunOf("ann", 8, 15), {command, last});
  // Reported late, it ended before the one before it.
  recorder_.Add(RunOf("ann", 9, 12));
  recorder_.Add(RunOf("ann", 0, 10, "cpu:1"));
  std::vector<std::pair<absl::Time, absl::Time>> times;
  for (const Span& span : trace->Take(10).spans)
    times.emplace_back(span.start, span.start + span.duration);
  EXPECT_THAT(times, ElementsAre(std::pair(At(0), At(10)), std::pair(At(10), At(15)),
                                 std::pair(At(10), At(11)), std::pair(At(11), At(15)),
                                 std::pair(At(15), At(15)), std::pair(At(0), At(10))));
}

TEST_F(RecorderTest, ReportsAGapBeforeWhatFollowsIt) {
  auto trace = Begin({"ann"});
  // Short, so that their number is the limit.
  const Span span{
      .kind = Kind::kCall, .start = At(0), .duration = absl::Milliseconds(1), .user = "ann"};
  for (size_t i = 0; i < kSpansMax + 3; ++i) recorder_.Add(span);
  auto taken = trace->Take(1);
  EXPECT_EQ(taken.spans.size(), 1);
  EXPECT_EQ(taken.dropped, 0);
  // There is room, but this span would hide where the gap is.
  recorder_.Add(span);
  taken = trace->Take(kSpansMax);
  EXPECT_EQ(taken.spans.size(), kSpansMax - 1);
  EXPECT_EQ(taken.dropped, 4);
  recorder_.Add(span);
  taken = trace->Take(10);
  EXPECT_EQ(taken.spans.size(), 1);
  EXPECT_EQ(taken.dropped, 0);
}

TEST_F(RecorderTest, HoldsABoundedNumberOfBytes) {
  auto trace = Begin({"ann"});
  Span large = RunOf("ann", 0, 1);
  for (std::string* text : {&large.name, &large.session, &large.program, &large.detail})
    *text = std::string(2 * kTextBytesMax, 'x');
  large.kind = Kind::kCall;
  for (size_t i = 0; i < kSpansMax; ++i) recorder_.Add(large);
  const auto taken = trace->Take(kSpansMax);
  EXPECT_GT(taken.dropped, 0);
  EXPECT_EQ(taken.spans.size() + static_cast<size_t>(taken.dropped), kSpansMax);
  EXPECT_LE(static_cast<int64_t>(taken.spans.size() * 4 * kTextBytesMax), kSpanBytesMax);
  EXPECT_EQ(taken.spans[0].name.size(), kTextBytesMax);
}

TEST_F(RecorderTest, RefusesMoreTracesThanItsBounds) {
  auto first = Begin({"ann"}), second = Begin({"ann"});
  const auto third = recorder_.Begin({"ann"});
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(errors::Reason(third.status()), "TOO_MANY_TRACES");
  auto bens = Begin({"ben"});
  EXPECT_EQ(errors::Reason(recorder_.Begin({"dan"}).status()), "TOO_MANY_TRACES");
  auto last = Begin({"root", /*sees_all=*/true});
  EXPECT_EQ(errors::Reason(recorder_.Begin({"eve", /*sees_all=*/true}).status()),
            "TOO_MANY_TRACES");
  last.reset();
  first.reset();
  EXPECT_TRUE(recorder_.Begin({"dan"}).ok());
}

}  // namespace
}  // namespace kiln::trace
