// Graphs of training steps of known networks, at the sizes at which GPUs train them.
#ifndef KILN_TESTS_LAUNCHES_NETWORKS_H_
#define KILN_TESTS_LAUNCHES_NETWORKS_H_

#include <cstdint>
#include <vector>

#include "compiler/graph/graph.h"

namespace kiln::launches {

// The blocks of a network's stages differ only in number, so two of each have all the shapes.
// With a `half` dtype, a network computes as under kiln.autocast (clients/python/kiln/amp.py).
struct ResNetSizes {
  int64_t batch = 64;
  int64_t image = 224;
  std::vector<int> blocks = {3, 4, 6, 3};  // ResNet-50; of each stage
  ir::DType half = ir::DType::kInvalid;
};
// Bottlenecks; SGD with momentum.
graph::Graph ResNetStep(const ResNetSizes& sizes);

struct GptSizes {
  int64_t batch = 8;
  int64_t tokens = 1024;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t words = 50257;
  int blocks = 12;  // GPT-2 small
  ir::DType half = ir::DType::kInvalid;
};
// The table of words is also used for the logits; Adam.
graph::Graph GptStep(const GptSizes& sizes);

}  // namespace kiln::launches

#endif  // KILN_TESTS_LAUNCHES_NETWORKS_H_
