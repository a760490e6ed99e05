#include "compiler/ops/rules/shape_cases.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Shape;
using Ints = std::vector<int64_t>;

// Fits in 64 bits, but its square does not.
constexpr int64_t kHuge = int64_t{1} << 40;

void AddBroadcasting(std::vector<ShapeCase>& cases) {
  cases.insert(cases.end(), {{"neg", {{2, 3}}, {}, Shape{2, 3}},
                             {"neg", {{}}, {}, Shape{}},
                             {"neg", {}, {}, kError},
                             {"neg", {{2}, {2}}, {}, kError},
                             {"add", {{2, 3}, {3}}, {}, Shape{2, 3}},
                             {"add", {{2, 1}, {1, 3}}, {}, Shape{2, 3}},
                             {"add", {{}, {4, 5}}, {}, Shape{4, 5}},
                             {"add", {{0, 3}, {1, 3}}, {}, Shape{0, 3}},
                             {"add", {{0}, {1}}, {}, Shape{0}},
                             {"add", {{2}, {3}}, {}, kError},
                             {"add", {{2, 3}, {2}}, {}, kError},
                             {"add", {{0}, {2}}, {}, kError},
                             {"add", {{kHuge, 1}, {1, kHuge}}, {}, kError},
                             {"where", {{3, 1}, {4}, {2, 1, 1}}, {}, Shape{2, 3, 4}},
                             {"where", {{3}, {4}, {}}, {}, kError}});
}

void AddReductions(std::vector<ShapeCase>& cases) {
  cases.insert(cases.end(),
               {{"sum", {{2, 3, 4}}, {}, Shape{}},
                {"sum", {{2, 3, 4}}, {{"keepdims", true}}, Shape{1, 1, 1}},
                {"sum", {{2, 3, 4}}, {{"axes", Ints{1}}}, Shape{2, 4}},
                {"sum", {{2, 3, 4}}, {{"axes", Ints{-1, 0}}}, Shape{3}},
                {"sum", {{2, 3, 4}}, {{"axes", Ints{-1, 0}}, {"keepdims", true}}, Shape{1, 3, 1}},
                {"sum", {{}}, {}, Shape{}},
                {"sum", {{2, 3}}, {{"axes", Ints{2}}}, kError},
                {"sum", {{2, 3}}, {{"axes", Ints{-3}}}, kError},
                {"sum", {{2, 3}}, {{"axes", Ints{1, -1}}}, kError},
                {"sum", {{}}, {{"axes", Ints{0}}}, kError},
                {"mean", {{2, 3}}, {{"axes", Ints{0}}}, Shape{3}},
                {"argmax", {{2, 3}}, {{"axes", Ints{1}}}, Shape{2}},
                {"softmax", {{2, 3}}, {}, Shape{2, 3}}});
}

void AddMovement(std::vector<ShapeCase>& cases) {
  cases.insert(cases.end(), {{"reshape", {{2, 6}}, {{"shape", Ints{3, 4}}}, Shape{3, 4}},
                             {"reshape", {{}}, {{"shape", Ints{1, 1}}}, Shape{1, 1}},
                             {"reshape", {{0, 3}}, {{"shape", Ints{5, 0}}}, Shape{5, 0}},
                             {"reshape", {{2, 6}}, {{"shape", Ints{5}}}, kError},
                             {"reshape", {{2, 6}}, {{"shape", Ints{-1}}}, kError},
                             {"reshape", {{2, 6}}, {}, kError},
                             {"reshape", {{1}}, {{"shape", Ints{kHuge, kHuge}}}, kError},
                             {"shard", {{4, 6}}, {{"spec", Ints{0, 1, 0}}}, Shape{4, 6}},
                             {"permute", {{2, 3, 4}}, {{"axes", Ints{2, 0, 1}}}, Shape{4, 2, 3}},
                             {"permute", {{2, 3}}, {{"axes", Ints{0, 0}}}, kError},
                             {"permute", {{2, 3}}, {{"axes", Ints{0}}}, kError},
                             {"permute", {{2, 3}}, {{"axes", Ints{0, -1}}}, kError},
                             {"expand", {{3, 1}}, {{"shape", Ints{2, 3, 4}}}, Shape{2, 3, 4}},
                             {"expand", {{1}}, {{"shape", Ints{0}}}, Shape{0}},
                             {"expand", {{3}}, {{"shape", Ints{6}}}, kError},
                             {"expand", {{2, 3}}, {{"shape", Ints{3}}}, kError},
                             {"pad", {{2, 3}}, {{"padding", Ints{1, 2, 0, 0}}}, Shape{5, 3}},
                             {"pad", {{2, 3}}, {{"padding", Ints{1, 2}}}, kError},
                             {"pad", {{2}}, {{"padding", Ints{-1, 0}}}, kError},
                             {"shrink", {{4, 5}}, {{"bounds", Ints{1, 3, 0, 5}}}, Shape{2, 5}},
                             {"shrink", {{4}}, {{"bounds", Ints{2, 2}}}, Shape{0}},
                             {"shrink", {{4}}, {{"bounds", Ints{3, 2}}}, kError},
                             {"shrink", {{4}}, {{"bounds", Ints{0, 5}}}, kError},
                             {"shrink", {{4}}, {{"bounds", Ints{0}}}, kError},
                             {"flip", {{2, 3}}, {{"axes", Ints{-1}}}, Shape{2, 3}},
                             {"flip", {{2, 3}}, {{"axes", Ints{2}}}, kError}});
}

void AddWindows(std::vector<ShapeCase>& cases) {
  const Attributes window = {{"axis", I(1)}, {"size", I(3)}, {"stride", I(2)}, {"dilation", I(2)}};
  const Attributes unwindow = {
      {"axis", I(1)}, {"length", I(9)}, {"stride", I(2)}, {"dilation", I(2)}};
  cases.insert(cases.end(),
               {{"window", {{2, 9, 4}}, window, Shape{2, 3, 4, 3}},
                {"window", {{2, 10, 4}}, window, Shape{2, 3, 4, 3}},
                {"window", {{2, 5}}, window, Shape{2, 1, 3}},
                {"window", {{2, 4}}, window, kError},
                {"window", {{7}}, {{"axis", I(-1)}, {"size", I(2)}}, Shape{6, 2}},
                {"window", {{7}}, {{"axis", I(0)}, {"size", I(0)}}, kError},
                {"window", {{7}}, {{"axis", I(0)}, {"size", I(2)}, {"stride", I(0)}}, kError},
                {"window", {{7}}, {{"axis", I(0)}}, kError},
                {"unwindow", {{2, 3, 4, 3}}, unwindow, Shape{2, 9, 4, 3}},
                {"unwindow", {{2, 4, 4, 3}}, unwindow, kError},
                {"unwindow", {{3}}, unwindow, kError},
                {"unwindow", {{6, 2}}, {{"axis", I(-1)}, {"length", I(7)}}, Shape{7, 2}}});
}

void AddAlongAxis(std::vector<ShapeCase>& cases) {
  cases.insert(cases.end(), {{"gather_elements", {{5, 3}, {2, 3}}, {}, Shape{2, 3}},
                             {"gather_elements", {{5, 3}, {5, 7}}, {{"axis", I(-1)}}, Shape{5, 7}},
                             {"gather_elements", {{5, 3}, {2, 1}}, {}, Shape{2, 3}},
                             {"gather_elements", {{5, 3}, {0, 3}}, {}, Shape{0, 3}},
                             {"gather_elements", {{5, 3}, {2, 2}}, {}, kError},
                             {"gather_elements", {{5, 1}, {2, 3}}, {}, kError},
                             {"gather_elements", {{5, 3}, {3}}, {}, kError},
                             {"gather_elements", {{}, {}}, {}, kError},
                             {"scatter_elements", {{5, 3}, {2, 1}, {2, 3}}, {}, Shape{5, 3}},
                             {"scatter_elements", {{5, 3}, {2, 1}, {2, 1}}, {}, kError},
                             {"scatter_elements", {{5, 3}, {2, 3}, {3}}, {}, kError},
                             {"take_along_axis", {{5, 3}, {2, 3}}, {}, Shape{2, 3}},
                             {"take_along_axis", {{5, 1}, {2, 3}}, {}, Shape{2, 3}},
                             {"take_along_axis", {{5, 3}, {2, 1}}, {}, Shape{2, 3}},
                             {"take_along_axis", {{5, 3}, {2, 2}}, {}, kError},
                             {"take_along_axis", {{5}, {2, 3}}, {}, kError},
                             {"put_along_axis", {{5, 3}, {2, 3}, {}}, {}, Shape{5, 3}},
                             {"put_along_axis", {{5, 3}, {2, 1}, {2, 1}}, {}, Shape{5, 3}},
                             {"put_along_axis", {{5, 3}, {2, 3}, {4, 2, 3}}, {}, kError},
                             {"put_along_axis", {{5, 1}, {2, 3}, {}}, {}, kError},
                             {"index", {{5, 3, 4}, {2}}, {{"axis", I(1)}}, Shape{5, 2, 4}},
                             {"index", {{5, 3, 4}, {2, 1}, {6}}, {}, Shape{2, 6, 4}},
                             {"index", {{5, 3, 4}, {}, {}, {}}, {}, Shape{}},
                             {"index", {{5, 3}, {2}, {3}}, {}, kError},
                             {"index", {{5, 3}, {2}, {2}}, {{"axis", I(1)}}, kError},
                             {"index", {{5, 3}}, {}, kError},
                             {"index_put", {{5, 3, 4}, {}, {2, 1}, {6}}, {}, Shape{5, 3, 4}},
                             {"index_put", {{5, 3, 4}, {6, 4}, {2, 1}, {6}}, {}, Shape{5, 3, 4}},
                             {"index_put", {{5, 3, 4}, {3, 4}, {2, 1}, {6}}, {}, kError},
                             {"index_put", {{5, 3}, {5}}, {}, kError}});
}

void AddIndexed(std::vector<ShapeCase>& cases) {
  cases.insert(cases.end(), {{"gather", {{5, 3}, {2, 4}}, {}, Shape{2, 4, 3}},
                             {"gather", {{5, 3}, {}}, {{"axis", I(1)}}, Shape{5}},
                             {"gather", {{5, 3}, {4}}, {{"axis", I(-1)}}, Shape{5, 4}},
                             {"gather", {{}, {4}}, {}, kError},
                             {"gather", {{5}, {4}}, {{"axis", I(1)}}, kError},
                             {"scatter_add", {{5, 3}, {2}, {2, 3}}, {}, Shape{5, 3}},
                             {"scatter_add", {{5, 3}, {2}, {3, 2}}, {}, kError},
                             {"scatter", {{5, 3}, {}, {5}}, {{"axis", I(1)}}, Shape{5, 3}},
                             {"scatter", {{5, 3}, {2}, {3}}, {}, kError},
                             {"take", {{5, 3}, {2, 4}}, {{"axis", I(-1)}}, Shape{5, 2, 4}},
                             {"one_hot", {{2, 3}}, {{"classes", I(4)}}, Shape{2, 3, 4}},
                             {"one_hot", {{2}}, {{"classes", I(0)}}, kError},
                             {"concat", {{2, 3}, {2, 1}, {2, 4}}, {{"axis", I(1)}}, Shape{2, 8}},
                             {"concat", {{2, 3}}, {}, Shape{2, 3}},
                             {"concat", {{2, 3}, {3, 3}}, {{"axis", I(1)}}, kError},
                             {"concat", {{2}, {2, 1}}, {}, kError},
                             {"concat", {}, {}, kError}});
}

void AddContractions(std::vector<ShapeCase>& cases) {
  cases.insert(cases.end(),
               {{"matmul", {{2, 3}, {3, 4}}, {}, Shape{2, 4}},
                {"matmul", {{3}, {3, 4}}, {}, Shape{4}},
                {"matmul", {{2, 3}, {3}}, {}, Shape{2}},
                {"matmul", {{3}, {3}}, {}, Shape{}},
                {"matmul", {{5, 1, 2, 3}, {6, 3, 4}}, {}, Shape{5, 6, 2, 4}},
                {"matmul", {{2, 3}, {4, 3}}, {}, kError},
                {"matmul", {{2, 2, 3}, {3, 3, 4}}, {}, kError},
                {"matmul", {{}, {3}}, {}, kError},
                {"linear", {{5, 2, 3}, {4, 3}}, {}, Shape{5, 2, 4}},
                {"linear", {{3}, {4, 3}, {4}}, {}, Shape{4}},
                {"linear", {{2, 3}, {3, 4}}, {}, kError},
                {"linear", {{2, 3}, {4, 3}, {3}}, {}, kError},
                {"linear", {{}, {4, 3}}, {}, kError},
                {"scaled_dot_product_attention", {{2, 5, 8}, {7, 8}, {7, 3}}, {}, Shape{2, 5, 3}},
                {"scaled_dot_product_attention", {{5, 8}, {7, 8}, {7, 3}, {1, 7}}, {}, Shape{5, 3}},
                {"scaled_dot_product_attention", {{5, 8}, {7, 8}, {7, 3}, {7, 5}}, {}, kError},
                {"scaled_dot_product_attention", {{5, 8}, {7, 9}, {7, 3}}, {}, kError}});
}

void AddOthers(std::vector<ShapeCase>& cases) {
  cases.insert(cases.end(), {{"iota", {}, {{"shape", Ints{2, 3}}}, Shape{2, 3}},
                             {"iota", {}, {{"shape", Ints{-2}}}, kError},
                             {"const", {}, {{"value", 1.0}, {"shape", Ints{4}}}, Shape{4}},
                             {"const", {}, {{"value", 1.0}, {"shape", Ints{kHuge, kHuge}}}, kError},
                             {"const", {}, {{"value", 1.0}, {"size", I(3)}}, kError},
                             {"cross_entropy", {{4, 5}, {4}}, {}, Shape{}},
                             {"gradient", {{}, {2, 3}}, {}, Shape{2, 3}},
                             {"gradient", {{4}, {2, 3}, {4}}, {}, Shape{2, 3}},
                             {"gradient", {{4}, {2, 3}}, {}, kError},
                             {"gradient", {{4}, {2, 3}, {5}}, {}, kError}});
}

}  // namespace

std::vector<ShapeCase> ShapeCases() {
  std::vector<ShapeCase> cases;
  AddBroadcasting(cases);
  AddReductions(cases);
  AddMovement(cases);
  AddWindows(cases);
  AddIndexed(cases);
  AddAlongAxis(cases);
  AddContractions(cases);
  AddConvolutionCases(cases);
  AddNeuralCases(cases);
  AddMatrices(cases);
  AddOthers(cases);
  return cases;
}

std::vector<DTypeCase> DTypeCases() {
  constexpr DType kNone = DType::kInvalid;
  constexpr DType kBool = DType::kBool;
  constexpr DType kInt8 = DType::kInt8;
  constexpr DType kInt32 = DType::kInt32;
  constexpr DType kInt64 = DType::kInt64;
  constexpr DType kUInt8 = DType::kUInt8;
  constexpr DType kUInt32 = DType::kUInt32;
  constexpr DType kUInt64 = DType::kUInt64;
  constexpr DType kHalf = DType::kFloat16;
  constexpr DType kBrain = DType::kBFloat16;
  constexpr DType kE4M3 = DType::kFloat8E4M3;
  constexpr DType kE5M2 = DType::kFloat8E5M2;
  constexpr DType kFloat = DType::kFloat32;
  constexpr DType kDouble = DType::kFloat64;
  return {
      {"add", {kFloat, kFloat}, kNone, kFloat},
      {"add", {kInt8, kUInt8}, kNone, DType::kInt16},
      {"add", {kInt32, kUInt32}, kNone, kInt64},
      {"add", {kInt8, kInt64}, kNone, kInt64},
      {"add", {kInt64, kUInt64}, kNone, kError},
      {"add", {kUInt8, kUInt64}, kNone, kUInt64},
      {"add", {kInt64, kFloat}, kNone, kFloat},
      {"add", {kBool, kFloat}, kNone, kError},
      {"add", {kBool, kBool}, kNone, kError},
      {"add", {kFloat, kDouble}, kNone, kDouble},
      {"add", {kHalf, kBrain}, kNone, kFloat},
      {"add", {kHalf, kFloat}, kNone, kFloat},
      {"add", {kE4M3, kE5M2}, kNone, kError},
      {"add", {kE4M3, kBrain}, kNone, kError},
      {"maximum", {kE4M3, kE5M2}, kNone, kHalf},
      {"maximum", {kE4M3, kBrain}, kNone, kBrain},
      {"where", {kBool, kE5M2, kE5M2}, kNone, kE5M2},
      {"cmplt", {kE4M3, kE4M3}, kNone, kBool},
      {"concat", {kE4M3, kE4M3}, kNone, kE4M3},
      {"sqrt", {kE5M2}, kNone, kError},
      {"exp", {kE4M3}, kNone, kError},
      {"sum", {kE4M3}, kNone, kError},
      {"softmax", {kE4M3}, kNone, kError},
      {"softmax", {kHalf}, kNone, kHalf},
      {"add", {kFloat, kFloat}, kDouble, kError},
      {"add", {kFloat, kFloat}, kFloat, kFloat},
      {"div", {kInt32, kInt32}, kNone, kFloat},
      {"div", {kInt32, kDouble}, kNone, kDouble},
      {"idiv", {kInt32, kInt8}, kNone, kInt32},
      {"idiv", {kFloat, kInt8}, kNone, kError},
      {"sqrt", {kInt64}, kNone, kFloat},
      {"sqrt", {kBool}, kNone, kFloat},
      {"exp", {kDouble}, kNone, kDouble},
      {"not", {kBool}, kNone, kBool},
      {"not", {kFloat}, kNone, kError},
      {"and", {kBool, kInt8}, kNone, kInt8},
      {"cmplt", {kInt32, kFloat}, kNone, kBool},
      {"cmplt", {kInt64, kUInt64}, kNone, kError},
      {"maximum", {kBool, kInt32}, kNone, kInt32},
      {"where", {kBool, kInt32, kFloat}, kNone, kFloat},
      {"where", {kInt32, kInt32, kFloat}, kNone, kError},
      {"cast", {kInt32}, kFloat, kFloat},
      {"cast", {kInt32}, kNone, kError},
      {"iota", {}, kInt32, kInt32},
      {"iota", {}, kNone, kError},
      {"sum", {kInt8}, kNone, kInt8},
      {"sum", {kBool}, kNone, kError},
      {"mean", {kInt32}, kNone, kFloat},
      {"argmax", {kFloat}, kNone, kInt64},
      {"argmax", {kFloat}, kInt32, kError},
      {"gather", {kDouble, kInt8}, kNone, kDouble},
      {"gather", {kDouble, kFloat}, kNone, kError},
      {"scatter_elements", {kBool, kInt8, kBool}, kNone, kBool},
      {"scatter_add", {kBool, kInt8, kBool}, kNone, kError},
      {"index", {kDouble, kInt8, kUInt64}, kNone, kDouble},
      {"index", {kDouble, kInt8, kFloat}, kNone, kError},
      {"index_put", {kInt32, kFloat, kInt8, kInt64}, kNone, kInt32},
      {"cross_entropy", {kFloat, kInt64}, kNone, kFloat},
      {"cross_entropy", {kInt64, kInt64}, kNone, kError},
      {"one_hot", {kUInt8}, kNone, kInt64},
      {"matmul", {kFloat, kDouble}, kNone, kDouble},
      {"concat", {kFloat, kInt32, kDouble}, kNone, kDouble},
      {"random_bits", {kUInt32}, kNone, kUInt32},
      {"random_uniform", {kUInt32}, kNone, kFloat},
      {"gradient", {kFloat, kDouble}, kNone, kDouble},
      {"gradient", {kFloat, kInt32}, kNone, kError},
  };
}

}  // namespace kiln::ops
