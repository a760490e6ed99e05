// Activations, windows, resizing, normalizations and attention.
#include "tests/numerics/cases/builders.h"

namespace kiln::numerics {
namespace {

void AddActivations(std::vector<Case>& cases) {
  for (const char* op :
       {"relu6", "hardtanh", "hardsigmoid", "hardswish", "softshrink", "hardshrink", "logsigmoid",
        "quick_gelu", "squareplus", "mish", "tanhshrink", "softsign", "elu", "celu", "selu"}) {
    cases.push_back(Make(op, {{{3, 5}, -7, 7}}));
  }
  for (const char* op : {"logsigmoid", "softplus", "mish", "elu", "selu"}) {
    cases.push_back(Named(std::string(op) + "_far", Make(op, {{{9}, -120, 120}})));
  }
  cases.push_back(Make("threshold", {{{3, 4}}}, {{"threshold", 0.3}, {"value", -2.0}}));
  cases.push_back(Make("prelu", {{{2, 3, 4}}, {{3}, 0, 1}}));
  cases.push_back(Named("prelu_one", Make("prelu", {{{2, 3}}, {{1}, 0, 1}})));
  cases.push_back(Named("celu_wide", Make("celu", {{{3, 4}}}, {{"alpha", 2.5}})));
  cases.push_back(Named("softplus_beta",
                        Make("softplus", {{{9}, -9, 9}}, {{"beta", 3.0}, {"threshold", 8.0}})));
  cases.push_back(Make("glu", {{{3, 6}}}));
  cases.push_back(Named("glu_first", Make("glu", {{{4, 3}}}, {{"axis", int64_t{0}}})));
  cases.push_back(Make("normalize", {{{3, 4}}}));
  cases.push_back(Named("normalize_cubes", Make("normalize", {{{3, 4}}}, {{"p", 3.0}})));
  cases.push_back(Make("cosine_similarity", {{{2, 5, 3}}, {{5, 3}}}));
  cases.push_back(Make("pairwise_distance", {{{3, 4}}, {{3, 4}}}));
  cases.push_back(Named("pairwise_distance_sum", Make("pairwise_distance", {{{3, 4}}, {{4}}},
                                                      {{"p", 1.0}, {"keepdims", true}})));
}

void AddConvolutions(std::vector<Case>& cases) {
  cases.push_back(Make("conv1d", {{{2, 3, 9}}, {{4, 3, 3}}, {{4}}}, {{"padding", Ints{2, 1}}}));
  cases.push_back(Named("conv1d_grouped", Make("conv1d", {{{2, 4, 9}}, {{6, 2, 2}}},
                                               {{"stride", Ints{2}},
                                                {"padding", Ints{1}},
                                                {"dilation", Ints{3}},
                                                {"groups", int64_t{2}}})));
  cases.push_back(Make("conv3d", {{{1, 2, 4, 5, 4}}, {{2, 2, 2, 3, 2}}},
                       {{"stride", Ints{1, 2, 1}}, {"padding", Ints{0, 1, 1}}}));
  cases.push_back(Make("conv_transpose1d", {{{2, 3, 4}}, {{3, 2, 3}}, {{2}}}));
  cases.push_back(
      Named("conv_transpose1d_strided", Make("conv_transpose1d", {{{1, 4, 3}}, {{4, 1, 3}}},
                                             {{"stride", Ints{3}},
                                              {"padding", Ints{1}},
                                              {"output_padding", Ints{2}},
                                              {"groups", int64_t{2}}})));
  cases.push_back(Named("conv_transpose1d_dilated",
                        Make("conv_transpose1d", {{{1, 2, 3}}, {{2, 2, 2}}},
                             {{"dilation", Ints{3}}, {"output_padding", Ints{2}}})));
  cases.push_back(Make("conv_transpose2d", {{{1, 2, 3, 4}}, {{2, 3, 3, 2}}, {{3}}},
                       {{"stride", Ints{2, 1}}, {"padding", Ints{1, 0}}}));
  cases.push_back(Make("conv_transpose3d", {{{1, 2, 2, 2, 3}}, {{2, 1, 2, 1, 2}}},
                       {{"stride", Ints{1, 2, 2}}}));
}

void AddPools(std::vector<Case>& cases) {
  const ops::Attributes ceil = {
      {"kernel", Ints{3}}, {"stride", Ints{2}}, {"padding", Ints{1}}, {"ceil_mode", true}};
  ops::Attributes whole = ceil;
  whole["count_include_pad"] = false;
  cases.push_back(Make("max_pool1d", {{{2, 6}}}, ceil));
  cases.push_back(Named("max_pool2d_dilated", Make("max_pool2d", {{{7, 7}}},
                                                   {{"kernel", Ints{2, 3}},
                                                    {"stride", Ints{1, 2}},
                                                    {"padding", Ints{1, 0}},
                                                    {"dilation", Ints{3, 2}}})));
  cases.push_back(Make("max_pool3d", {{{4, 4, 4}}}, {{"kernel", Ints{2, 1, 3}}}));
  cases.push_back(Make("avg_pool1d", {{{2, 6}}}, ceil));
  cases.push_back(Named("avg_pool1d_inside", Make("avg_pool1d", {{{2, 6}}}, whole)));
  cases.push_back(Named(
      "avg_pool2d_divided",
      Make("avg_pool2d", {{{4, 5}}}, {{"kernel", Ints{2, 2}}, {"divisor_override", int64_t{3}}})));
  cases.push_back(Make("avg_pool3d", {{{4, 4, 4}}}, {{"kernel", Ints{2, 2, 4}}}));
  for (const char* op : {"lp_pool1d", "lp_pool2d", "lp_pool3d"}) {
    const size_t rank = op[7] - '0';
    cases.push_back(
        Make(op, {{ir::Shape(rank, 4), 0.1, 2}}, {{"kernel", Ints(rank, 2)}, {"norm", 3.0}}));
  }
  for (const char* op : {"adaptive_avg_pool", "adaptive_max_pool"}) {
    cases.push_back(Make(op, {{{2, 3, 7, 6}}}, {{"size", Ints{3, 2}}}));
    cases.push_back(
        Named(std::string(op) + "_larger", Make(op, {{{1, 2, 3}}}, {{"size", Ints{5}}})));
  }
}

void AddResizing(std::vector<Case>& cases) {
  const auto interpolate = [&](const char* name, Ints size, const char* mode, bool corners,
                               double scale) {
    const ir::Shape shape = size.size() == 1 ? ir::Shape{1, 2, 5} : ir::Shape{1, 2, 4, 5};
    cases.push_back(Named(std::string("interpolate_") + name, Make("interpolate", {{shape}},
                                                                   {{"size", std::move(size)},
                                                                    {"mode", std::string(mode)},
                                                                    {"align_corners", corners},
                                                                    {"scale", scale}})));
  };
  interpolate("nearest_twice", {8, 10}, "nearest", false, 0);
  interpolate("nearest_less", {2, 3}, "nearest", false, 0);
  interpolate("nearest_exact", {7, 3}, "nearest-exact", false, 0);
  interpolate("nearest_scale", {7}, "nearest", false, 1.5);
  interpolate("linear", {8}, "linear", false, 0);
  interpolate("linear_corners", {8}, "linear", true, 0);
  interpolate("linear_scale", {7}, "linear", false, 1.5);
  interpolate("bilinear", {8, 3}, "linear", false, 0);
  interpolate("cubic", {7, 3}, "cubic", false, 0);
  interpolate("cubic_corners", {7, 3}, "cubic", true, 0);
  const Ints around = {0, 0, 1, 2, 3, 0};
  for (const char* op : {"pad_constant", "pad_reflect", "pad_replicate", "pad_circular"}) {
    cases.push_back(Make(op, {{{2, 3, 4}}}, {{"padding", around}}));
  }
  cases.back().attributes["padding"] = Ints{0, 0, 3, 0, 0, 4};
  cases.push_back(Named("pad_constant_one", Make("pad_constant", {{{2, 3}}},
                                                 {{"padding", Ints{1, 0, 0, 2}}, {"value", 1.5}})));
  const ops::Attributes windows = {{"kernel", Ints{2, 3}},
                                   {"stride", Ints{2, 1}},
                                   {"padding", Ints{1, 1}},
                                   {"dilation", Ints{1, 2}}};
  ops::Attributes sized = windows;
  sized["size"] = Ints{4, 6};
  cases.push_back(Make("unfold", {{{1, 2, 4, 6}}}, windows));
  cases.push_back(Make("fold", {{{1, 12, 12}}}, sized));
  cases.push_back(Make("pixel_shuffle", {{{1, 8, 2, 3}}}, {{"factor", int64_t{2}}}));
  cases.push_back(Make("pixel_unshuffle", {{{2, 4, 6}}}, {{"factor", int64_t{2}}}));
}

void AddNormalizations(std::vector<Case>& cases) {
  cases.push_back(Make("group_norm", {{{2, 4, 3}}, {{4}}, {{4}}}, {{"groups", int64_t{2}}}));
  cases.push_back(Make("instance_norm", {{{2, 3, 4}}, {{3}}, {{3}}}));
  cases.push_back(Named("instance_norm_plain", Make("instance_norm", {{{2, 3, 2, 2}}})));
  cases.push_back(Named("layer_norm_plain", Make("layer_norm", {{{3, 8}}})));
  cases.push_back(Make("local_response_norm", {{{2, 5, 3}}},
                       {{"size", int64_t{3}}, {"alpha", 0.5}, {"beta", 0.6}, {"k", 2.0}}));
}

void AddAttention(std::vector<Case>& cases) {
  constexpr const char* kOp = "scaled_dot_product_attention";
  const std::vector<OperandSpec> parts = {{{2, 3, 4}}, {{2, 5, 4}}, {{2, 5, 6}}};
  auto masked = parts;
  masked.push_back(Bools({3, 5}));
  cases.push_back(Named("attention_mask", Make(kOp, masked)));
  masked.back() = {{2, 3, 5}};
  cases.push_back(Named("attention_bias", Make(kOp, masked, {{"scale", 0.7}})));
  cases.push_back(
      Named("attention_grouped",
            Make(kOp, {{{2, 4, 3, 2}}, {{2, 2, 5, 2}}, {{2, 2, 5, 3}}, Bools({4, 1, 5})},
                 {{"grouped", true}, {"causal", true}})));
  cases.push_back(Make("rotary_embedding", {{{2, 3, 6}}, {{3, 2}, -1, 1}, {{3, 2}, -1, 1}}));
  cases.push_back(Named("rotary_embedding_interleaved",
                        Make("rotary_embedding", {{{2, 3, 4}}, {{3, 2}, -1, 1}, {{3, 2}, -1, 1}},
                             {{"interleaved", true}})));
  cases.push_back(Make("dropout", {{{4, 5}}, {{2}, 0, 4e9, kUInt32}}, {{"p", 0.4}}));
  cases.push_back(Named("dropout_rows", Make("dropout", {{{4, 5}}, {{2}, 0, 4e9, kUInt32}},
                                             {{"shared_axes", Ints{-1}}})));
}

}  // namespace

void AddNeural(std::vector<Case>& cases) {
  AddActivations(cases);
  AddConvolutions(cases);
  AddPools(cases);
  AddResizing(cases);
  AddNormalizations(cases);
  AddAttention(cases);
}

}  // namespace kiln::numerics
