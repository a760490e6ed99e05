// Mistakes of clients in graphs: one row a mistake, with the code, the reason and the words that
// the message must contain.
#include <string>
#include <vector>

#include "compiler/graph/error.h"
#include "compiler/graph/wire/wire.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "kiln/v1/graph.pb.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

struct Malformed {
  std::string name;
  std::string graph;  // text format; $X is an input of float32 (4, 8), $V one of float32 (8,)
  std::string reason;
  std::vector<std::string> message;  // each must be in it
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

std::string Input(int index, const std::string& sizes) {
  return "nodes { op: 'input' dtype: DTYPE_FLOAT32 "
         "attributes { key: 'index' value { i: " +
         std::to_string(index) + " } } attributes { key: 'shape' value { shape { " + sizes +
         " } } } }\n";
}

std::string Expand(std::string text) {
  const std::vector<std::pair<std::string, std::string>> macros = {
      {"$X", Input(0, "dims { size: 4 } dims { size: 8 }")},
      {"$V", Input(1, "dims { size: 8 }")},
  };
  for (const auto& [macro, value] : macros) {
    size_t at = text.find(macro);
    if (at != std::string::npos) text.replace(at, macro.size(), value);
  }
  return text;
}

void Check(const Malformed& malformed) {
  SCOPED_TRACE(malformed.name);
  v1::Graph proto;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(Expand(malformed.graph), &proto));
  absl::Status status = graph::FromProto(proto, {}).status();
  EXPECT_EQ(status.code(), malformed.code) << status;
  EXPECT_EQ(graph::ErrorDetail(status, "reason"), malformed.reason) << status;
  for (const std::string& part : malformed.message) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(MalformedGraphs, Structure) {
  const std::vector<Malformed> cases = {
      {"an unknown op",
       "$X nodes { op: 'frobnicate' operands: 0 source: 'train.py:31' } outputs: 1",
       "UNKNOWN_OP",
       {"node 1 \"frobnicate\" (train.py:31)", "the op is not in", "op set, version "}},
      {"an op without a name",
       "$X nodes { operands: 0 } outputs: 1",
       "UNKNOWN_OP",
       {"node 1 \"\""}},
      {"a node that uses itself",
       "nodes { op: 'neg' operands: 0 } outputs: 0",
       "CYCLE",
       {"node 0 \"neg\"", "depends on itself: 0 -> 0"}},
      {"a cycle of three",
       "nodes { op: 'neg' operands: 2 } nodes { op: 'sin' operands: 0 } "
       "nodes { op: 'sqrt' operands: 1 } outputs: 2",
       "CYCLE",
       {"node 0 \"neg\"", "depends on itself: 0 -> 2 -> 1 -> 0"}},
      {"an operand that stands later",
       "nodes { op: 'neg' operands: 1 } $X outputs: 0",
       "ORDER",
       {"node 0 \"neg\"", "operand 0 is node 1 \"input\"", "must come before"}},
      {"an operand that is not there",
       "$X nodes { op: 'neg' operands: 7 } outputs: 1",
       "OPERAND_OUT_OF_RANGE",
       {"node 1 \"neg\"", "operand 0 is node 7", "has 2 nodes"}},
      {"the largest operand number",
       "$X nodes { op: 'neg' operands: 4294967295 } outputs: 1",
       "OPERAND_OUT_OF_RANGE",
       {"node 1 \"neg\"", "node 4294967295"}},
      {"one operand too few",
       "$X nodes { op: 'add' operands: 0 } outputs: 1",
       "OPERAND_COUNT",
       {"node 1 \"add\"", "1"}},
      {"one operand too many",
       "$X nodes { op: 'neg' operands: [0, 0] } outputs: 1",
       "OPERAND_COUNT",
       {"node 1 \"neg\"", "2"}},
      {"a source with an operand",
       "$X nodes { op: 'const' dtype: DTYPE_INT32 operands: 0 "
       "attributes { key: 'value' value { i: 1 } } } outputs: 1",
       "OPERAND_COUNT",
       {"node 1 \"const\""}},
      {"a newer op set",
       "op_set_version: 1000000 $X outputs: 0",
       "VERSION",
       {"1000000", "newer"},
       absl::StatusCode::kFailedPrecondition},
      {"a newer precision",
       "float32_matmul_precision: 9 $X outputs: 0",
       "PRECISION",
       {"float32_matmul_precision is 9", "MATMUL_PRECISION_HIGH (2)"}},
      {"a mesh of too many devices",
       "$X outputs: 0 sharding { mesh { axes { name: 'a' size: 64 } axes { name: 'b' size: 2 } } }",
       "MESH",
       {"axis \"b\"", "at most 64 devices"}},
      {"nothing to compute", "$X", "OUTPUT", {"neither outputs nor updates"}},
      {"an output that is not there", "$X outputs: 3", "OUTPUT", {"output 0 names node 3"}},
  };
  for (const Malformed& malformed : cases) Check(malformed);
}

TEST(MalformedGraphs, Attributes) {
  const std::vector<Malformed> cases = {
      {"a missing attribute",
       "$X nodes { op: 'permute' operands: 0 } outputs: 1",
       "ATTRIBUTE",
       {"node 1 \"permute\"", "axes"}},
      {"an attribute the op does not have",
       "$X nodes { op: 'neg' operands: 0 attributes { key: 'axis' value { i: 1 } } } outputs: 1",
       "ATTRIBUTE",
       {"node 1 \"neg\"", "axis"}},
      {"an attribute of the wrong type",
       "$X nodes { op: 'permute' operands: 0 attributes { key: 'axes' value { s: 'ab' } } } "
       "outputs: 1",
       "ATTRIBUTE",
       {"node 1 \"permute\"", "axes", "string"}},
      {"an attribute without a value",
       "$X nodes { op: 'permute' operands: 0 attributes { key: 'axes' value { } } } outputs: 1",
       "ATTRIBUTE",
       {"node 1 \"permute\"", "axes", "no value"}},
      {"a dimension without a size",
       "nodes { op: 'input' dtype: DTYPE_FLOAT32 "
       "attributes { key: 'index' value { i: 0 } } "
       "attributes { key: 'shape' value { shape { dims { } } } } } outputs: 0",
       "ATTRIBUTE",
       {"node 0 \"input\"", "neither a size nor a variable"}},
      {"a constant without a value",
       "nodes { op: 'const' dtype: DTYPE_FLOAT32 } outputs: 0",
       "ATTRIBUTE",
       {"node 0 \"const\"", "value"}},
      {"a float too large for its dtype",
       "nodes { op: 'const' dtype: DTYPE_FLOAT32 attributes { key: 'value' value { f: 1e300 } } } "
       "outputs: 0",
       "ATTRIBUTE",
       {"node 0 \"const\"", "1e+300", "float32"}},
      {"an axis that is not there",
       "$X nodes { op: 'sum' operands: 0 attributes { key: 'axes' value { ints { values: 2 } } } } "
       "outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"sum\"", "2"}},
      {"an axis named twice",
       "$X nodes { op: 'permute' operands: 0 "
       "attributes { key: 'axes' value { ints { values: [0, 0] } } } } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"permute\""}},
      {"a stride of zero",
       "$X nodes { op: 'window' operands: 0 attributes { key: 'axis' value { i: 0 } } "
       "attributes { key: 'size' value { i: 2 } } attributes { key: 'stride' value { i: 0 } } } "
       "outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"window\"", "stride"}},
      {"negative padding",
       "$X nodes { op: 'pad' operands: 0 "
       "attributes { key: 'padding' value { ints { values: [-1, 0, 0, 0] } } } } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"pad\"", "-1"}},
      {"a part that is not there",
       "$X nodes { op: 'shrink' operands: 0 "
       "attributes { key: 'bounds' value { ints { values: [0, 4, 0, 9] } } } } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"shrink\"", "9"}},
  };
  for (const Malformed& malformed : cases) Check(malformed);
}

TEST(MalformedGraphs, ShapesAndDTypes) {
  const std::vector<Malformed> cases = {
      {"shapes that do not broadcast",
       "$X nodes { op: 'const' dtype: DTYPE_FLOAT32 attributes { key: 'value' value { f: 1 } } "
       "attributes { key: 'shape' value { shape { dims { size: 3 } } } } } "
       "nodes { op: 'add' operands: [0, 1] source: 'model.py:7' } outputs: 2",
       "SHAPE_MISMATCH",
       {"node 2 \"add\" (model.py:7)", "(4, 8)", "(3,)"}},
      {"a matmul whose inner sizes differ",
       "$X nodes { op: 'matmul' operands: [0, 0] } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"matmul\"", "(4, 8)"}},
      {"a reshape that loses elements",
       "$X nodes { op: 'reshape' operands: 0 "
       "attributes { key: 'shape' value { shape { dims { size: 31 } } } } } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"reshape\"", "(4, 8)", "31"}},
      {"a window wider than its axis",
       "$X nodes { op: 'window' operands: 0 attributes { key: 'axis' value { i: 0 } } "
       "attributes { key: 'size' value { i: 5 } } } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"window\"", "5"}},
      {"a convolution of matrices",
       "$X nodes { op: 'conv2d' operands: [0, 0] } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"conv2d\"", "(4, 8)"}},
      {"a concatenation of nothing",
       "$X nodes { op: 'concat' } outputs: 1",
       "OPERAND_COUNT",
       {"node 1 \"concat\""}},
      {"a source without a dtype",
       "nodes { op: 'const' attributes { key: 'value' value { i: 1 } } } outputs: 0",
       "DTYPE_MISMATCH",
       {"node 0 \"const\"", "dtype"}},
      {"a dtype that is not what the op gives",
       "$X nodes { op: 'neg' dtype: DTYPE_INT8 operands: 0 } outputs: 1",
       "DTYPE_MISMATCH",
       {"node 1 \"neg\"", "int8", "float32"}},
      {"bits of a float",
       "$X nodes { op: 'xor' operands: [0, 0] } outputs: 1",
       "DTYPE_MISMATCH",
       {"node 1 \"xor\"", "float32"}},
      {"a float as an index",
       "$X nodes { op: 'gather' operands: [0, 0] } outputs: 1",
       "DTYPE_MISMATCH",
       {"node 1 \"gather\"", "float32"}},
      {"a float as a condition",
       "$X nodes { op: 'where' operands: [0, 0, 0] } outputs: 1",
       "DTYPE_MISMATCH",
       {"node 1 \"where\"", "float32"}},
      {"the gradient of a tensor without upstream",
       "$X nodes { op: 'gradient' operands: [0, 0] } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"gradient\"", "(4, 8)"}},
      {"a bitcast to another size",
       "$X nodes { op: 'bitcast' dtype: DTYPE_INT64 operands: 0 } outputs: 1",
       "ILLEGAL",
       {"node 1 \"bitcast\"", "float32", "int64"}},
      {"an integer constant out of range",
       "nodes { op: 'const' dtype: DTYPE_INT8 attributes { key: 'value' value { i: 128 } } } "
       "outputs: 0",
       "ILLEGAL",
       {"node 0 \"const\"", "128", "int8"}},
  };
  for (const Malformed& malformed : cases) Check(malformed);
}

TEST(MalformedGraphs, Sizes) {
  const std::string huge = "dims { size: 4611686018427387904 }";
  const std::vector<Malformed> cases = {
      {"sizes whose product overflows",
       Input(0, huge + huge) + "outputs: 0",
       "TOO_LARGE",
       {"node 0 \"input\"", "4611686018427387904", "limit"}},
      {"an overflow hidden by a zero",
       Input(0, huge + "dims { size: 4 } dims { size: 0 }") + "outputs: 0",
       "TOO_LARGE",
       {"node 0 \"input\""}},
      {"a negative size",
       Input(0, "dims { size: -1 }") + "outputs: 0",
       "SHAPE_MISMATCH",
       {"node 0 \"input\"", "-1"}},
      {"an input that no memory holds",
       Input(0, "dims { size: 17592186044416 }") + "outputs: 0",
       "TOO_LARGE",
       {"node 0 \"input\"", "bytes, the limit"}},
      {"an output that no memory holds",
       "$X nodes { op: 'expand' operands: 0 attributes { key: 'shape' value { shape { "
       "dims { size: 4398046511104 } dims { size: 4 } dims { size: 8 } } } } } outputs: 1",
       "TOO_LARGE",
       {"output 0", "node 1 \"expand\"", "float32[4398046511104,4,8]"}},
      {"padding that overflows",
       "$X nodes { op: 'pad' operands: 0 attributes { key: 'padding' value { ints { "
       "values: [9223372036854775807, 9223372036854775807, 0, 0] } } } } outputs: 1",
       "SHAPE_MISMATCH",
       {"node 1 \"pad\""}},
      {"more dimensions than allowed",
       Input(0,
             [] {
               std::string dims;
               for (int i = 0; i < 100; ++i) dims += "dims { size: 1 } ";
               return dims;
             }()) +
           "outputs: 0",
       "SHAPE_MISMATCH",
       {"node 0 \"input\"", "dimensions"}},
  };
  for (const Malformed& malformed : cases) Check(malformed);
}

TEST(MalformedGraphs, InputsUpdatesAndVariables) {
  const std::vector<Malformed> cases = {
      {"a gap in the inputs", "$V outputs: 0", "INPUT", {"node 0 \"input\"", "index is 1"}},
      {"two inputs of one index",
       Input(0, "") + Input(0, "dims { size: 2 }") + "outputs: 0",
       "INPUT",
       {"node 1 \"input\"", "index 0", "node 0 \"input\""}},
      {"a negative index", Input(-1, "") + "outputs: 0", "ILLEGAL", {"node 0 \"input\"", "-1"}},
      {"an update of what is no input",
       "$X nodes { op: 'neg' operands: 0 } updates { input: 1 value: 0 }",
       "UPDATE",
       {"node 1 \"neg\"", "update 0", "only a node \"input\""}},
      {"an update of another shape",
       "$X $V updates { input: 0 value: 1 }",
       "SHAPE_MISMATCH",
       {"node 0 \"input\"", "float32[4,8]", "float32[8]"}},
      {"an update of another dtype",
       "$X nodes { op: 'cast' dtype: DTYPE_FLOAT64 operands: 0 } updates { input: 0 value: 1 }",
       "DTYPE_MISMATCH",
       {"node 0 \"input\"", "float32[4,8]", "node 1 \"cast\"", "float64[4,8]"}},
      {"two updates of one input",
       "$X updates { input: 0 value: 0 } updates { input: 0 value: 0 }",
       "UPDATE",
       {"node 0 \"input\"", "update 1"}},
      {"an update that names no node",
       "$X updates { input: 0 value: 9 }",
       "UPDATE",
       {"update 0 names node 9"}},
      {"a variable that nobody declared",
       Input(0, "dims { variable: 'rows' }") + "outputs: 0",
       "VARIABLE",
       {"node 0 \"input\"", "rows"}},
      {"a variable that nobody bound",
       "variables { name: 'rows' min: 1 max: 9 }" + Input(0, "dims { variable: 'rows' }") +
           "outputs: 0",
       "VARIABLE",
       {"rows", "binds no value"}},
      {"bounds the wrong way round",
       "variables { name: 'rows' min: 9 max: 1 } $X outputs: 0",
       "VARIABLE",
       {"rows", "9 to 1"}},
      {"a variable declared twice",
       "variables { name: 'rows' min: 1 max: 9 } variables { name: 'rows' min: 1 max: 9 } $X "
       "outputs: 0",
       "VARIABLE",
       {"rows", "twice"}},
  };
  for (const Malformed& malformed : cases) Check(malformed);
}

TEST(MalformedGraphs, TextOfAClientIsEscapedAndCut) {
  v1::Graph proto;
  proto.add_nodes()->set_op("\x1b[31m" + std::string(100000, 'x'));
  proto.add_outputs(0);
  absl::Status status = graph::FromProto(proto, {}).status();
  EXPECT_LT(status.message().size(), 500u);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\\x1B[31mxxx"));
  EXPECT_EQ(graph::ErrorDetail(status, "node"), "0");
}

}  // namespace
}  // namespace kiln
