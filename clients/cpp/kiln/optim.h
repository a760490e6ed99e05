// Optimizer steps, as functions over values. Each adds to the graph the gradients of a loss and the
// updates of its parameters, so that a run of the graph is a training step.
//
//   std::vector<kiln::Value> weights = state.Inputs(builder);
//   kiln::Value loss = kiln::ops::CrossEntropy(Network(weights, images), labels);
//   kiln::optim::Sgd(loss, weights, 0.1);
//   builder.Output(loss);
//
// `loss` is a scalar. Parameters and optimizer state are inputs of the graph; see State. The
// learning rate is a number, or a scalar tensor, so that each run can have its own.
// GraphBuilder::Build returns errors.
#ifndef KILN_CLIENTS_CPP_KILN_OPTIM_H_
#define KILN_CLIENTS_CPP_KILN_OPTIM_H_

#include <vector>

#include "absl/types/span.h"
#include "kiln/graph.h"

namespace kiln::optim {

struct SgdOptions {
  // Times the parameter, is added to the gradient.
  double weight_decay = 0;
  // Momentum (Sutskever et al., 2013). Needs `velocities`: one of each parameter's shape, initially
  // zero.
  double momentum = 0;
  bool nesterov = false;
  std::vector<Value> velocities = {};
};
// parameter - learning_rate * gradient, as PyTorch's SGD.
void Sgd(Value loss, absl::Span<const Value> parameters, const Operand& learning_rate,
         const SgdOptions& options = {}, Location location = Location::current());

// The state of AdamW, all of it initially zero.
struct AdamWState {
  std::vector<Value> means;    // of each parameter's shape: the running mean of the gradient
  std::vector<Value> squares;  // and that of its square
  Value steps;                 // an integer scalar: the number of steps taken
};
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};
// Adam with decoupled weight decay (Kingma and Ba, 2015; Loshchilov and Hutter, 2019), as PyTorch's
// AdamW.
void AdamW(Value loss, absl::Span<const Value> parameters, const AdamWState& state,
           const Operand& learning_rate, const AdamWOptions& options = {},
           Location location = Location::current());

}  // namespace kiln::optim

#endif  // KILN_CLIENTS_CPP_KILN_OPTIM_H_
