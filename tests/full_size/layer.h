// Layers of neural networks as a line of text each.
//
//   conv 3x224x224 64 k7 s2 p3 bn relu
//
// A kind, the shape of what goes in (without the batch), numbers, options of a letter and numbers
// (for each dimension, or one for all), and what comes after, in this order. Kinds:
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
// and after: bias, bn, ln, rms, gn (of n groups), in, lrn, residual, scale (by channel), softmax,
// glu, or any op of one operand. `k` of conv with `causal` looks back along its only dimension.
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

// INVALID_ARGUMENT names the word that is none.
absl::StatusOr<Layer> ParseLayer(absl::string_view text);

struct Network {
  std::string name;
  std::vector<Layer> layers;
};
// Lines "network NAME", each with its layers after it; "#" begins a comment.
absl::StatusOr<std::vector<Network>> ParseNetworks(absl::string_view text);

// The layer's result and, for a given upstream, the gradients of all that goes in. Of an
// optimizer, its step.
graph::Graph MakeGraph(const Layer& layer, int64_t batch, ir::DType dtype);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_LAYER_H_
