// Losses.
#include "tests/numerics/cases/builders.h"

namespace kiln::numerics {
namespace {

Case Reduced(const char* reduction, Case test_case) {
  test_case.attributes["reduction"] = std::string(reduction);
  test_case.name += "_" + std::string(reduction);
  return test_case;
}

void AddPairs(std::vector<Case>& cases) {
  const OperandSpec x = {{3, 4}};
  const OperandSpec probability = {{3, 4}, 0.05, 0.95};
  for (const char* op :
       {"l1_loss", "smooth_l1_loss", "huber_loss", "hinge_embedding_loss", "soft_margin_loss"}) {
    cases.push_back(Make(op, {x, x}));
  }
  cases.push_back(Reduced("sum", Make("mse_loss", {x, x})));
  cases.push_back(Reduced("none", Make("mse_loss", {x, x})));
  cases.push_back(Reduced("none", Make("smooth_l1_loss", {x, x}, {{"beta", 0.4}})));
  cases.push_back(Reduced("sum", Make("huber_loss", {x, x}, {{"delta", 0.7}})));
  cases.push_back(Make("margin_ranking_loss", {x, x, x}, {{"margin", 0.3}}));
  cases.push_back(Make("binary_cross_entropy", {probability, probability}));
  cases.push_back(
      Reduced("sum", Make("binary_cross_entropy", {probability, probability, {{4}, 0.5, 2}})));
  cases.push_back(Reduced("none", Make("binary_cross_entropy_with_logits",
                                       {x, probability, {{3, 1}, 0.5, 2}, {{4}, 0.5, 2}})));
  cases.push_back(Make("kl_div", {x, probability}));
  cases.push_back(Reduced("sum", Make("kl_div", {x, x}, {{"log_target", true}})));
  cases.push_back(Make("gaussian_nll_loss", {x, x, probability}, {{"full", true}}));
  cases.push_back(Make("poisson_nll_loss", {x, {{3, 4}, 0.2, 5}}, {{"full", true}}));
  cases.push_back(Reduced(
      "none", Make("poisson_nll_loss", {probability, {{3, 4}, 0.2, 5}}, {{"log_input", false}})));
}

void AddRows(std::vector<Case>& cases) {
  const OperandSpec x = {{3, 4}};
  cases.push_back(Make("cosine_embedding_loss", {x, x, {{3}}}));
  cases.push_back(Make("triplet_margin_loss", {x, x, x}));
  cases.push_back(Reduced("none", Make("triplet_margin_loss", {x, x, x},
                                       {{"swap", true}, {"p", 3.0}, {"margin", 2.0}})));
}

void AddLabels(std::vector<Case>& cases) {
  const OperandSpec scores = {{6, 5}};
  const OperandSpec labels = Ints32({6}, 0, 5);
  const OperandSpec weight = {{5}, 0.5, 2};
  cases.push_back(Reduced("none", Make("cross_entropy", {scores, labels})));
  cases.push_back(Reduced("sum", Make("cross_entropy", {scores, labels, weight})));
  cases.push_back(Named("cross_entropy_ignored",
                        Make("cross_entropy", {scores, labels}, {{"ignore_index", int64_t{2}}})));
  cases.push_back(Named("cross_entropy_smooth",
                        Make("cross_entropy", {scores, labels, weight},
                             {{"label_smoothing", 0.2}, {"ignore_index", int64_t{1}}})));
  cases.push_back(Named(
      "cross_entropy_probabilities",
      Make("cross_entropy", {{{4, 5, 2}}, {{4, 5, 2}, 0, 1}, weight}, {{"label_smoothing", 0.1}})));
  cases.push_back(Named("cross_entropy_single", Make("cross_entropy", {{{5}}, Ints32({}, 0, 5)})));
  cases.push_back(
      Named("nll_loss_weighted", Make("nll_loss", {{{2, 5, 3}}, Ints32({2, 3}, 0, 5), weight},
                                      {{"ignore_index", int64_t{3}}})));
}

}  // namespace

void AddNeuralLosses(std::vector<Case>& cases) {
  AddPairs(cases);
  AddRows(cases);
  AddLabels(cases);
}

}  // namespace kiln::numerics
