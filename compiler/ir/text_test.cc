#include "compiler/ir/text.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::ir {
namespace {

using ::testing::HasSubstr;

// Parses every line; returns the last line's node.
absl::StatusOr<const Node*> Parse(Context& context, Level level, const std::string& text) {
  TextParser parser(context, level);
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    std::string_view stripped = StripLine(line);
    if (stripped.empty()) continue;
    absl::Status status = parser.ParseNode(stripped);
    if (!status.ok()) return status;
    last = std::string(SplitWords(stripped)[0]);
  }
  return parser.Lookup(last);
}

void ExpectRoundTrip(Level level, const std::string& text) {
  Context context;
  absl::StatusOr<const Node*> node = Parse(context, level, text);
  ASSERT_TRUE(node.ok()) << node.status();
  TextPrinter printer;
  printer.Print(*node);
  EXPECT_EQ(printer.text(), text);
}

TEST(TextTest, TensorLevelReadsBack) {
  ExpectRoundTrip(Level::kTensor, R"(%0 = input float32[4,8] index=0
%1 = reduce_sum float32[4,1] %0 axes=[1]
%2 = expand float32[4,8] %1
%3 = div float32[4,8] %0 %2
%4 = pad float32[5,10] %3 padding=[0,1,1,1]
%5 = permute float32[10,5] %4 order=[1,0]
%6 = window float32[10,3,3] %5 axis=1 size=3 stride=1 dilation=1
%7 = unwindow float32[10,5,3] %6 axis=1 size=5 stride=1 dilation=1
%8 = reduce_max float32[10,5,1] %7 axes=[2]
%9 = reshape float32[50] %8
%10 = shrink float32[7] %9 bounds=[1,8]
%11 = flip float32[7] %10 axes=[0]
%12 = iota int32[3] axis=0
%13 = gather_elements float32[3] %11 %12 axis=0
%14 = scatter_elements float32[7] %11 %12 %13 axis=0 mode=add
%15 = reshape float32[7] %14
)");
}

TEST(TextTest, KernelLevelReadsBack) {
  ExpectRoundTrip(Level::kKernel, R"(%0 = range int64 id=0 extent=16
%1 = const int64 value=8
%2 = mul int64 %0 %1
%3 = range int64 id=1 extent=8
%4 = add int64 %2 %3
%5 = const int64 value=100
%6 = cmplt bool %4 %5
%7 = load float32 %4 %6 buffer=0
%8 = load float32 %4 buffer=1
%9 = mul float32 %7 %8
%10 = reduce float32 %9 %3 kind=sum
)");
}

TEST(TextTest, ConstantsReadBackBitForBit) {
  Context context;
  std::vector<double> values = {0.0, -0.0, 0.1, 1e-310, 1e300, INFINITY, -INFINITY, NAN, -NAN, 3.0};
  for (double value : values) {
    const Node* node = context.Get(Op::kConst, DType::kFloat32, {}, {}, ConstValue::Float(value));
    TextPrinter printer;
    printer.Print(node);
    absl::StatusOr<const Node*> read = Parse(context, Level::kTensor, printer.text());
    ASSERT_TRUE(read.ok()) << printer.text() << read.status();
    EXPECT_EQ(*read, node) << printer.text();
  }
  ExpectRoundTrip(Level::kTensor, "%0 = const uint64 value=18446744073709551615\n");
  ExpectRoundTrip(Level::kTensor, "%0 = const int64 value=-9223372036854775808\n");
  ExpectRoundTrip(Level::kTensor, "%0 = const bool value=true\n");
}

TEST(TextTest, SharedNodesPrintOnceAcrossRoots) {
  Context context;
  const Node* x = context.Get(Op::kInput, DType::kFloat32, {}, {}, InputAttr{0});
  const Node* a = context.Get(Op::kNeg, DType::kFloat32, {}, {x});
  const Node* b = context.Get(Op::kSqrt, DType::kFloat32, {}, {x});
  TextPrinter printer("  ");
  EXPECT_EQ(printer.Print(a), "%1");
  EXPECT_EQ(printer.Print(b), "%2");
  EXPECT_EQ(printer.Print(a), "%1");
  EXPECT_EQ(printer.text(),
            "  %0 = input float32 index=0\n  %1 = neg float32 %0\n  %2 = sqrt float32 %0\n");
}

struct BadLine {
  std::string text;
  std::string message;
};

TEST(TextTest, RejectsWhatIsIllegal) {
  const std::vector<BadLine> cases = {
      {"nonsense", "expected a node"},
      {"%0 = frobnicate float32", "'frobnicate' is not an op"},
      {"%0 = input float31 index=0", "'float31' is not a dtype"},
      {"%0 = input float32[2 index=0", "is not a type"},
      {"%0 = input float32[] index=0", "'' is not an integer"},
      {"%0 = input float32[2,] index=0", "'' is not an integer"},
      {"%0 = input float32[-2] index=0", "a size that no memory has"},
      {"%0 = input float32[4611686018427387904,4] index=0", "a size that no memory has"},
      {"%0 = input float32[4,4611686018427387904,0] index=0", "a size that no memory has"},
      {"%0 = input float32[99999999999999999999] index=0", "is not an integer of 64 bits"},
      {"%0 = input float32", "takes the attributes index"},
      {"%0 = input float32 index=0 index=1", "takes the attributes index"},
      {"%0 = input float32 indices=0", "takes the attributes index"},
      {"%0 = const float32 value=1.5x", "is not a float"},
      {"%0 = const bool value=2", "is not true or false"},
      {"%0 = const uint8 value=256", "in the dtype's range"},
      {"%0 = const int8 value=-129", "in the dtype's range"},
      {"%0 = neg float32 %1", "no node %1"},
      {"%x = const float32 value=1", "is not a node's number"},
      {"%-1 = const float32 value=1", "is not a node's number"},
      {"%0 = const float32 value=1\n%0 = const float32 value=2", "%0 is defined twice"},
      {"%0 = const float32 value=1\n%1 = add float32 %0", "wrong number of operands"},
      {"%0 = const float32 value=1\n%1 = sin float64 %0", "one dtype"},
      {"%0 = const int32 value=1\n%1 = sin int32 %0", "a float"},
      {"%0 = const float32 value=1\n%1 = neg float32 axes=[0] %0", "operands must come before"},
      {"%0 = range int64 id=0 extent=3", "not an op of the tensor level"},
      {"%0 = input float32[2,3] index=0\n%1 = permute float32[3,2] %0 order=[0,1]", "order given"},
      {"%0 = input float32[2,3] index=0\n%1 = permute float32[3,2] %0 order=1,0", "is not a list"},
  };
  for (const BadLine& bad : cases) {
    Context context;
    absl::Status status = Parse(context, Level::kTensor, bad.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message)) << bad.text;
  }
}

TEST(TextTest, AtLinePutsTheNumberFirst) {
  EXPECT_EQ(AtLine(3, absl::InvalidArgumentError("wrong")).message(), "line 3: wrong");
  EXPECT_TRUE(AtLine(3, absl::OkStatus()).ok());
}

}  // namespace
}  // namespace kiln::ir
