// Cases of sliding windows, and of losses and other composites of neural networks.
#include "compiler/ops/rules/shape_cases.h"

namespace kiln::ops {
namespace {

using ir::Shape;
using Ints = std::vector<int64_t>;

Attributes Reduction(const char* name) { return {{"reduction", std::string(name)}}; }

void AddConvolutions(std::vector<ShapeCase>& cases) {
  const Attributes strided = {
      {"stride", Ints{2, 1}}, {"padding", Ints{1, 2}}, {"dilation", Ints{1, 2}}, {"groups", I(2)}};
  cases.insert(cases.end(),
               {{"conv2d", {{2, 3, 8, 9}, {4, 3, 3, 3}}, {}, Shape{2, 4, 6, 7}},
                {"conv2d", {{2, 3, 8, 9}, {4, 3, 3, 3}, {4}}, {}, Shape{2, 4, 6, 7}},
                {"conv2d", {{2, 4, 7, 8}, {6, 2, 3, 3}}, strided, Shape{2, 6, 4, 8}},
                {"conv2d", {{2, 3, 7, 8}, {6, 2, 3, 3}}, strided, kError},
                {"conv2d", {{2, 3, 8, 9}, {4, 2, 3, 3}}, {}, kError},
                {"conv2d", {{2, 3, 8, 9}, {4, 3, 3, 3}, {3}}, {}, kError},
                {"conv2d", {{3, 8, 9}, {4, 3, 3, 3}}, {}, kError},
                {"conv2d", {{2, 3, 2, 9}, {4, 3, 3, 3}}, {}, kError},
                {"conv2d", {{2, 3, 8, 9}, {4, 3, 3, 3}}, {{"stride", Ints{1}}}, kError},
                {"conv2d", {{2, 3, 8, 9}, {4, 3, 3, 3}}, {{"padding", Ints{-1, 0}}}, kError},
                {"conv2d", {{2, 3, 8, 9}, {4, 3, 3, 3}}, {{"groups", I(0)}}, kError},
                {"max_pool2d", {{2, 3, 6, 7}}, {{"kernel", Ints{2, 2}}}, Shape{2, 3, 3, 3}},
                {"max_pool2d",
                 {{6, 7}},
                 {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1}}},
                 Shape{3, 4}},
                {"max_pool2d", {{6, 7}}, {{"kernel", Ints{2, 2}}, {"padding", Ints{2, 0}}}, kError},
                {"max_pool2d", {{7}}, {{"kernel", Ints{2, 2}}}, kError},
                {"avg_pool2d", {{1, 4, 4}}, {{"kernel", Ints{5, 5}}}, kError},
                {"avg_pool2d", {{1, 4, 4}}, {{"kernel", Ints{2, 4}}}, Shape{1, 2, 1}}});
}

void AddPools(std::vector<ShapeCase>& cases) {
  const Attributes ceil = {{"kernel", Ints{3}}, {"stride", Ints{2}}, {"ceil_mode", true}};
  // The stride exceeds the window: with ceil_mode, one more window is added only if it starts
  // within the tensor or the padding before it.
  const Attributes hanging = {
      {"kernel", Ints{2}}, {"stride", Ints{3}}, {"padding", Ints{1}}, {"ceil_mode", true}};
  cases.insert(cases.end(),
               {{"max_pool1d", {{2, 6}}, ceil, Shape{2, 3}},
                {"max_pool1d", {{2, 7}}, ceil, Shape{2, 3}},
                {"avg_pool1d", {{5}}, hanging, Shape{2}},
                {"avg_pool1d", {{6}}, hanging, Shape{3}},
                {"max_pool1d", {{9}}, {{"kernel", Ints{3}}, {"dilation", Ints{4}}}, Shape{1}},
                {"max_pool1d", {{8}}, {{"kernel", Ints{3}}, {"dilation", Ints{4}}}, kError},
                {"avg_pool1d", {{8}}, {{"kernel", Ints{3}}, {"dilation", Ints{1}}}, kError},
                {"max_pool3d", {{2, 4, 4, 4}}, {{"kernel", Ints{2, 1, 4}}}, Shape{2, 2, 4, 1}},
                {"lp_pool2d", {{4, 4}}, {{"kernel", Ints{2, 2}}}, Shape{2, 2}},
                {"lp_pool2d", {{4, 4}}, {{"kernel", Ints{2}}}, kError},
                {"adaptive_avg_pool", {{2, 3, 7, 5}}, {{"size", Ints{3, 2}}}, Shape{2, 3, 3, 2}},
                {"adaptive_max_pool", {{7}}, {{"size", Ints{9}}}, Shape{9}},
                {"adaptive_avg_pool", {{7}}, {{"size", Ints{0}}}, kError},
                {"adaptive_avg_pool", {{7}}, {{"size", Ints{2, 2}}}, kError},
                {"interpolate", {{1, 2, 3, 4}}, {{"size", Ints{6, 2}}}, Shape{1, 2, 6, 2}},
                {"interpolate", {{1, 0}}, {{"size", Ints{2}}}, kError}});
}

void AddTransposed(std::vector<ShapeCase>& cases) {
  const Attributes strided = {{"stride", Ints{2, 3}},
                              {"padding", Ints{1, 0}},
                              {"dilation", Ints{1, 2}},
                              {"output_padding", Ints{1, 2}},
                              {"groups", I(2)}};
  cases.insert(
      cases.end(),
      {{"conv_transpose1d", {{2, 3, 5}, {3, 4, 3}}, {}, Shape{2, 4, 7}},
       {"conv_transpose2d", {{2, 4, 5, 6}, {4, 3, 3, 2}, {6}}, strided, Shape{2, 6, 10, 20}},
       {"conv_transpose3d", {{1, 1, 2, 2, 2}, {1, 2, 1, 2, 3}}, {}, Shape{1, 2, 2, 3, 4}},
       {"conv_transpose1d", {{2, 3, 5}, {4, 3, 3}}, {}, kError},
       {"conv_transpose1d", {{2, 3, 5}, {3, 4, 3}, {3}}, {}, kError},
       {"conv_transpose1d", {{2, 3, 5}, {3, 4, 3}}, {{"output_padding", Ints{1}}}, kError},
       {"conv_transpose1d", {{2, 3, 2}, {3, 4, 3}}, {{"padding", Ints{2}}}, kError},
       {"conv_transpose1d", {{2, 3, 0}, {3, 4, 3}}, {}, kError},
       {"conv1d", {{2, 3, 9}, {4, 3, 4}}, {{"padding", Ints{1, 2}}}, Shape{2, 4, 9}},
       {"conv1d", {{2, 3, 9}, {4, 3, 4}}, {{"padding", Ints{1, 2, 3}}}, kError},
       {"conv3d", {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 4}}, {}, Shape{1, 3, 3, 3, 3}},
       {"conv3d", {{1, 2, 5, 6}, {3, 2, 3, 4}}, {}, kError}});
}

void AddFolds(std::vector<ShapeCase>& cases) {
  const Attributes unfold = {
      {"kernel", Ints{2, 3}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 0}}};
  Attributes fold = unfold;
  fold["size"] = Ints{4, 5};
  cases.insert(cases.end(),
               {{"unfold", {{2, 3, 4, 5}}, unfold, Shape{2, 18, 9}},
                {"unfold", {{3, 4, 5}}, unfold, kError},
                {"fold", {{2, 18, 9}}, fold, Shape{2, 3, 4, 5}},
                {"fold", {{2, 17, 9}}, fold, kError},
                {"fold", {{2, 18, 8}}, fold, kError},
                {"pixel_shuffle", {{2, 12, 4, 5}}, {{"factor", I(2)}}, Shape{2, 3, 8, 10}},
                {"pixel_shuffle", {{2, 6, 4, 5}}, {{"factor", I(2)}}, kError},
                {"pixel_shuffle", {{4, 5}}, {{"factor", I(1)}}, kError},
                {"pixel_unshuffle", {{3, 8, 10}}, {{"factor", I(2)}}, Shape{12, 4, 5}},
                {"pixel_unshuffle", {{3, 8, 9}}, {{"factor", I(2)}}, kError},
                {"pad_reflect", {{2, 3}}, {{"padding", Ints{0, 0, 1, 2}}}, Shape{2, 6}},
                {"glu", {{2, 6}}, {}, Shape{2, 3}},
                {"glu", {{2, 6}}, {{"axis", I(0)}}, Shape{1, 6}},
                {"glu", {{2, 5}}, {}, kError}});
}

void AddLosses(std::vector<ShapeCase>& cases) {
  cases.insert(
      cases.end(),
      {{"mse_loss", {{2, 3}, {2, 3}}, {}, Shape{}},
       {"mse_loss", {{2, 3}, {2, 3}}, Reduction("none"), Shape{2, 3}},
       {"mse_loss", {{2, 3}, {3}}, {}, kError},
       {"mse_loss", {{2, 3}, {2, 3}}, Reduction("median"), kError},
       {"margin_ranking_loss", {{2, 3}, {2, 3}, {2, 3}}, {}, Shape{}},
       {"gaussian_nll_loss", {{2, 3}, {2, 3}, {2, 3}}, {}, Shape{}},
       {"binary_cross_entropy", {{2, 3}, {2, 3}, {3}}, Reduction("sum"), Shape{}},
       {"binary_cross_entropy", {{2, 3}, {2, 3}, {2}}, {}, kError},
       {"cross_entropy", {{4, 5}, {4}}, {}, Shape{}},
       {"cross_entropy", {{4, 5, 6}, {4, 6}, {5}}, Reduction("none"), Shape{4, 6}},
       {"cross_entropy", {{5}, {}}, Reduction("none"), Shape{}},
       {"cross_entropy", {{4, 5}, {4, 5}}, Reduction("none"), Shape{4}},
       {"cross_entropy", {{4, 5}, {5}}, {}, kError},
       {"cross_entropy", {{4, 5}, {4}, {4}}, {}, kError},
       {"nll_loss", {{}, {}}, {}, kError},
       {"triplet_margin_loss", {{4, 5}, {4, 5}, {4, 5}}, Reduction("none"), Shape{4}},
       {"triplet_margin_loss", {{4, 5}, {4, 5}, {5}}, {}, kError},
       {"cosine_embedding_loss", {{4, 5}, {4, 5}, {4}}, {}, Shape{}},
       {"cosine_embedding_loss", {{4, 5}, {4}, {4}}, {}, kError},
       {"cosine_similarity", {{4, 5}, {2, 1, 5}}, {}, Shape{2, 5}},
       {"cosine_similarity", {{4, 5}, {4, 5}}, {{"axis", I(2)}}, kError},
       {"pairwise_distance", {{4, 5}, {4, 5}}, {{"keepdims", true}}, Shape{4, 1}},
       {"pairwise_distance", {{4, 5}, {3, 5}}, {}, kError},
       {"scaled_dot_product_attention",
        {{2, 6, 5, 8}, {2, 3, 7, 8}, {2, 3, 7, 4}, {6, 1, 7}},
        {{"grouped", true}},
        Shape{2, 6, 5, 4}},
       {"scaled_dot_product_attention",
        {{2, 6, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 4}},
        {{"grouped", true}},
        kError},
       {"scaled_dot_product_attention", {{5, 8}, {7, 8}, {7, 4}}, {{"grouped", true}}, kError}});
}

}  // namespace

void AddConvolutionCases(std::vector<ShapeCase>& cases) {
  AddConvolutions(cases);
  AddTransposed(cases);
  AddPools(cases);
}

void AddNeuralCases(std::vector<ShapeCase>& cases) {
  AddFolds(cases);
  AddLosses(cases);
}

}  // namespace kiln::ops
