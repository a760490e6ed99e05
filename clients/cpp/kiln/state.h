// Tensors that stay on the daemon between runs and that graphs take as inputs: a model's
// parameters, or an optimizer's state.
//
//   kiln::State weights(*client);
//   absl::Status added = weights.Add<float>({10, 64}, values);
//   kiln::GraphBuilder builder;
//   std::vector<kiln::Value> inputs = weights.Inputs(builder);
//   …
//   client->Run(program, weights.tensors());
#ifndef KILN_CLIENTS_CPP_KILN_STATE_H_
#define KILN_CLIENTS_CPP_KILN_STATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kiln/client.h"

namespace kiln {

// A list of tensors with their dtypes and shapes. Movable; not thread-safe. The client must outlive
// it.
class State {
 public:
  explicit State(Client& client) : client_(&client) {}

  // Appends a tensor of these values. INVALID_ARGUMENT if their number does not match the shape.
  template <typename T>
  absl::Status Add(const Shape& shape, absl::Span<const T> values) {
    return Append(kDTypeOf<T>, shape, client_->Upload<T>(shape, values));
  }
  // Appends a tensor of zeros for each tensor of `other`, with its dtype and shape.
  absl::Status AddZerosLike(const State& other);

  // Adds inputs to `builder` for the tensors, in their order, and returns them.
  std::vector<Value> Inputs(GraphBuilder& builder, Location location = Location::current()) const;
  // The tensors to pass to a run of a graph that has these inputs. A run replaces the contents of
  // those that the graph updates (GraphBuilder::Update).
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  struct Type {
    DType dtype;
    Shape shape;
  };

  absl::Status Append(DType dtype, const Shape& shape, const absl::StatusOr<Tensor>& tensor);

  Client* client_;
  std::vector<Type> types_;
  std::vector<Tensor> tensors_;
};

}  // namespace kiln

#endif  // KILN_CLIENTS_CPP_KILN_STATE_H_
