// Layers of neural networks, each as a line of text.
//
//   conv 3x224x224 64 k7 s2 p3 bn relu
//
// A kind, the shape of the input (without the batch), numbers, options of a letter and numbers (for
// each dimension, or one for all), and following ops, in this order. Kinds:
//
//   conv C x spatial, outputs k s p d g      deconv C x spatial, outputs k s p d g o
//   maxpool, avgpool C x spatial k s p       globalpool C x spatial     resize C x H x W, size
//   linear rows x K, outputs
//   matmul A x M x K, columns [t1: the first, t2: the second, t3: both transposed in memory]
//   attention H x L x E [k keys] [causal]    embedding L x E, rows of the table
//   lstm, gru I, hidden                      cross_entropy [rows x] classes
//   mse, bce shape      concat C x H x W, other channels      shuffle C x H x W, factor
//   sum, max shape, axes                     permute shape, axes (0: the batch)
//   adam shape                               of any shape: only what comes after
//
// and following ops: bias, bn, ln, rms, gn (of n groups), in, lrn, residual, scale (by channel),
// softmax, glu, or any op of one operand. `k` of conv with `causal` looks back along its only
// dimension.
#ifndef KILN_TESTS_FULL_SIZE_LAYER_H_
#define KILN_TESTS_FULL_SIZE_LAYER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/graph/graph.h"

namespace kiln::full_size {

struct Layer {
  std::string text;
  std::string kind;
  ir::Shape shape;                               // without the batch
  std::vector<int64_t> numbers;                  // after the shape
  std::map<char, std::vector<int64_t>> options;  // by letter
  std::vector<std::string> after;
};

// Returns INVALID_ARGUMENT, naming the word that is not valid.
absl::StatusOr<Layer> ParseLayer(absl::string_view text);

struct Network {
  std::string name;
  std::vector<Layer> layers;
};
// Parses lines "network NAME", each followed by its layers; "#" begins a comment.
absl::StatusOr<std::vector<Network>> ParseNetworks(absl::string_view text);

// Returns a graph of the layer's result and, for a given upstream gradient, the gradients of all
// inputs; for an optimizer, its step.
graph::Graph MakeGraph(const Layer& layer, int64_t batch, ir::DType dtype);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_LAYER_H_
