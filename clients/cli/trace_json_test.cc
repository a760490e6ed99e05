#include "clients/cli/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace kiln::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::TraceSpan MakeSpan(v1::TraceSpan::Kind kind, const std::string& name, int64_t start,
                       int64_t end) {
  v1::TraceSpan span;
  span.set_kind(kind);
  span.set_name(name);
  span.set_start_nanoseconds(start);
  span.set_duration_nanoseconds(static_cast<uint64_t>(end - start));
  span.set_user("ann");
  return span;
}

std::string Write(const CollectedTrace& trace) {
  std::ostringstream out;
  WriteChromeTrace(trace, out);
  return out.str();
}

TEST(TraceJson, WritesDevicesTheirQueuesAndSessions) {
  CollectedTrace trace{.began = absl::FromUnixSeconds(1'700'000'000), .address = "unix:/a\"b"};
  v1::TraceSpan run = MakeSpan(v1::TraceSpan::RUN, "step", 1'500, 4'000'001);
  run.set_device("cpu:0");
  run.set_program("a87a8ab9ef22");
  run.set_detail("s3/17");
  run.set_number(7);
  v1::TraceSpan command = run;
  command.set_kind(v1::TraceSpan::COMMAND);
  command.set_name("matmul");
  command.set_duration_nanoseconds(2'000);
  v1::TraceSpan wait = MakeSpan(v1::TraceSpan::WAIT, "step", 0, 1'500);
  wait.set_device("cpu:0");
  v1::TraceSpan copy = MakeSpan(v1::TraceSpan::COPY, "to device", 10, 20);
  copy.set_device("cpu:0");
  copy.set_bytes(4096);
  v1::TraceSpan operation = MakeSpan(v1::TraceSpan::OPERATION, "run", 0, 4'100'000);
  operation.set_session("s3");
  trace.spans = {command, run, wait, copy, operation};
  const std::string text = Write(trace);
  for (const char* part :
       {R"("began":"2023-11-14T22:13:20+00:00")", R"("daemon":"unix:/a\"b")", R"("dropped":0)",
        R"("name":"process_name","pid":1,"tid":0,"args":{"name":"cpu:0"})",
        R"("name":"process_name","pid":2,"tid":0,"args":{"name":"session s3 of ann"})",
        R"("name":"thread_name","pid":1,"tid":1,"args":{"name":"runs"})",
        R"("name":"thread_name","pid":1,"tid":2,"args":{"name":"copies"})",
        R"("name":"thread_name","pid":1,"tid":3,"args":{"name":"queue: ann"})",
        R"("name":"thread_name","pid":2,"tid":4,"args":{"name":"operations"})",
        R"({"ph":"X","cat":"run","name":"step","ts":1.500,"dur":3998.501,"pid":1,"tid":1,)"
        R"("args":{"user":"ann","device":"cpu:0","program":"a87a8ab9ef22","operation":"s3/17"}})",
        R"("cat":"command","name":"matmul","ts":1.500,"dur":2.000,"pid":1,"tid":1)",
        R"("args":{"user":"ann","device":"cpu:0","bytes":4096})"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  // The run comes before its command, so that the command is within it.
  EXPECT_LT(text.find(R"("cat":"run")"), text.find(R"("cat":"command")"));
  EXPECT_THAT(text, Not(HasSubstr("dropped\",\"ts")));
}

TEST(TraceJson, PutsOverlappingSpansOnSeveralThreads) {
  CollectedTrace trace;
  for (const auto& [start, end] : {std::pair(0, 10), std::pair(5, 20), std::pair(10, 15)})
    trace.spans.push_back(MakeSpan(v1::TraceSpan::CALL, "call", start, end));
  const std::string text = Write(trace);
  EXPECT_THAT(text, HasSubstr(R"("tid":1,"args":{"name":"calls"})"));
  EXPECT_THAT(text, HasSubstr(R"("tid":2,"args":{"name":"calls 2"})"));
  EXPECT_THAT(text, HasSubstr(R"("ts":0.000,"dur":0.010,"pid":1,"tid":1)"));
  EXPECT_THAT(text, HasSubstr(R"("ts":0.005,"dur":0.015,"pid":1,"tid":2)"));
  EXPECT_THAT(text, HasSubstr(R"("ts":0.010,"dur":0.005,"pid":1,"tid":1)"));
}

TEST(TraceJson, CountsWhatIsInFlight) {
  CollectedTrace trace;
  for (const auto& [start, end] :
       {std::pair(0, 10), std::pair(5, 20), std::pair(10, 15), std::pair(30, 40)}) {
    trace.spans.push_back(MakeSpan(v1::TraceSpan::OPERATION, "run", start, end));
    trace.spans.back().set_session("s3");
  }
  const std::string text = Write(trace);
  // At 10, one ends and one begins.
  for (const auto& [time, count] :
       {std::pair("0.000", 1), std::pair("0.005", 2), std::pair("0.015", 1), std::pair("0.020", 0),
        std::pair("0.030", 1), std::pair("0.040", 0)}) {
    EXPECT_THAT(text,
                HasSubstr(std::string(R"({"ph":"C","name":"operations in flight","ts":)") + time +
                          R"(,"pid":1,"args":{"count":)" + std::to_string(count) + "}}"));
  }
  EXPECT_THAT(text, Not(HasSubstr(R"("operations in flight","ts":0.010)")));
}

TEST(TraceJson, KeepsThePassesOfACompilationTogether) {
  CollectedTrace trace;
  for (const uint64_t number : {1, 2}) {
    const auto begin = static_cast<int64_t>(100 * number);
    for (const auto& [kind, start, end] :
         {std::tuple(v1::TraceSpan::PASS, begin + 10, begin + 60),
          std::tuple(v1::TraceSpan::PASS, begin + 60, begin + 140),
          std::tuple(v1::TraceSpan::COMPILE, begin, begin + 150)}) {
      v1::TraceSpan span = MakeSpan(kind, "x", start, end);
      span.set_number(number);
      trace.spans.push_back(span);
    }
  }
  const std::string text = Write(trace);
  for (const char* part : {R"("cat":"compile","name":"x","ts":0.100,"dur":0.150,"pid":1,"tid":1)",
                           R"("cat":"pass","name":"x","ts":0.160,"dur":0.080,"pid":1,"tid":1)",
                           R"("cat":"compile","name":"x","ts":0.200,"dur":0.150,"pid":1,"tid":2)",
                           R"("cat":"pass","name":"x","ts":0.210,"dur":0.050,"pid":1,"tid":2)"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(TraceJson, BeginsWithTheFirstSpanAndSaysWhatIsMissing) {
  CollectedTrace trace{.began = absl::FromUnixSeconds(1'700'000'000)};
  trace.spans = {MakeSpan(v1::TraceSpan::CALL, "a\x01", -2'000'000'000, 500)};
  trace.gaps = {{500, 12}, {700, 3}};
  const std::string text = Write(trace);
  EXPECT_THAT(text, HasSubstr(R"("began":"2023-11-14T22:13:18+00:00")"));
  EXPECT_THAT(text, HasSubstr(R"("dropped":15)"));
  EXPECT_THAT(text, HasSubstr(R"("name":"a\u0001","ts":0.000,"dur":2000000.500)"));
  EXPECT_THAT(text, HasSubstr(R"("name":"12 spans were dropped","ts":2000000.500)"));
}

}  // namespace
}  // namespace kiln::cli
