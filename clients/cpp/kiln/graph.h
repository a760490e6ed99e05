// Graphs: built by GraphBuilder, sent to the daemon by Client::Define. The ops are in kiln/ops.h.
//
//   kiln::GraphBuilder builder;
//   kiln::Value x = builder.Input(kiln::DType::kFloat32, {2, 3});
//   builder.Output(kiln::ops::Mean(0.5 * x * x + 1));
//   absl::StatusOr<kiln::Graph> graph = builder.Build();
#ifndef KILN_CLIENTS_CPP_KILN_GRAPH_H_
#define KILN_CLIENTS_CPP_KILN_GRAPH_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kiln/dtype.h"
#include "kiln/mesh.h"

namespace kiln {

namespace v1 {
class Graph;
}

// Row-major, outermost dimension first; empty for a scalar.
using Shape = std::vector<int64_t>;

// The place where a node was built; messages show it as "train.cc:31". Replaces
// std::source_location, which Clang has only from version 16 on.
class Location {
 public:
  // As a default argument, gives the caller's location.
  static constexpr Location current(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
    return Location(file, line);
  }
  constexpr const char* file_name() const { return file_; }
  constexpr int line() const { return line_; }

 private:
  constexpr Location(const char* file, int line) : file_(file), line_(line) {}

  const char* file_;
  int line_;
};

// constant + the sum of factor * variable, for variables declared by GraphBuilder::Variable.
struct DimensionSum {
  int64_t constant = 0;
  std::vector<std::pair<std::string, int64_t>> terms;
};

// A size or another integer of a graph: a number, the name of a variable, or a sum of variables.
using Dimension = std::variant<int64_t, std::string, DimensionSum>;

// A list of dimensions: {2, "length"}, or a Shape.
class Dimensions {
 public:
  Dimensions(std::initializer_list<Dimension> list) : list_(list) {}
  Dimensions(std::vector<Dimension> list) : list_(std::move(list)) {}
  Dimensions(const Shape& shape) : list_(shape.begin(), shape.end()) {}

  const std::vector<Dimension>& list() const { return list_; }

 private:
  std::vector<Dimension> list_;
};

// The value of a constant: a number, a variable or a sum of variables, as in Dimension.
using Number = std::variant<int64_t, double, bool, std::string, DimensionSum>;

class GraphBuilder;

// A node of the graph that a GraphBuilder builds. Small and cheap to copy. Must not be used after
// the builder is destroyed.
class Value {
 public:
  // No node. Nothing can be computed from it.
  Value() = default;

  // The dtype that the daemon will infer; kUnspecified if the node is invalid.
  DType dtype() const { return dtype_; }
  // Null for a default-constructed value.
  GraphBuilder* builder() const { return builder_; }

 private:
  friend class GraphBuilder;
  Value(GraphBuilder* builder, int32_t node, DType dtype)
      : builder_(builder), node_(node), dtype_(dtype) {}

  GraphBuilder* builder_ = nullptr;
  int32_t node_ = -1;  // -1 with a builder: an invalid node, whose error the builder has kept
  DType dtype_ = DType::kUnspecified;
};

// An operand of an op that broadcasts: a value or a number. Numbers are weakly typed: beside a
// tensor they take its dtype, except that a floating-point number beside an integer tensor is a
// float32, and an integer beside a bool tensor an int64.
class Operand {
 public:
  Operand(const Value& value, Location location = Location::current())
      : content_(value), location_(location) {}
  template <typename T>
  requires std::is_arithmetic_v<T> Operand(T number, Location location = Location::current())
      : content_(ToNumber(number)), location_(location) {}

  // Null if this is a number.
  const Value* value() const { return std::get_if<Value>(&content_); }
  // Requires: this is a number.
  const Number& number() const { return std::get<Number>(content_); }
  // The place where the value or number became an operand.
  const Location& location() const { return location_; }

 private:
  template <typename T>
  static Number ToNumber(T number) {
    if constexpr (std::is_same_v<T, bool>) return number;
    if constexpr (std::is_floating_point_v<T>) return static_cast<double>(number);
    return static_cast<int64_t>(number);
  }

  std::variant<Value, Number> content_;
  Location location_;
};

// Equivalent to ops::Add, Sub, Mul, Div and Neg.
Value operator+(const Operand& a, const Operand& b);
Value operator-(const Operand& a, const Operand& b);
Value operator*(const Operand& a, const Operand& b);
Value operator/(const Operand& a, const Operand& b);
Value operator-(const Operand& x);

using AttributeValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>,
                                    std::vector<Dimension>, DimensionSum>;
using Attributes = std::map<std::string, AttributeValue>;

// An immutable graph, ready to be sent. Copies share it. Thread-safe.
class Graph {
 public:
  int num_inputs() const { return num_inputs_; }
  int num_outputs() const { return num_outputs_; }
  // The devices of its mesh; empty if it runs on one device.
  const std::vector<std::string>& devices() const { return devices_; }
  const v1::Graph& proto() const { return *proto_; }

 private:
  friend class GraphBuilder;
  std::shared_ptr<const v1::Graph> proto_;
  std::vector<std::string> devices_;
  int num_inputs_ = 0;
  int num_outputs_ = 0;
};

// The precision of the float32 factors of matrix products and convolutions, including those in
// gradients. Products are computed and accumulated in float32 in either case.
enum class MatmulPrecision {
  kHighest,  // unchanged
  // Rounded to tf32, which has 10 bits of fraction instead of 23. NVIDIA's matrix units are many
  // times faster with it; other devices round too, so that results agree.
  kHigh,
};

// Builds a graph node by node. The daemon infers and checks shapes; the builder only checks that
// values belong to it. It keeps the first error, which Build returns. Not thread-safe.
class GraphBuilder {
 public:
  GraphBuilder();
  ~GraphBuilder();
  // Not copyable: Values hold a pointer to their builder.
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // Declares a variable for dimensions, 1 <= min <= max; each run binds it to a number.
  void Variable(std::string name, int64_t min, int64_t max);
  // Inputs are numbered in the order of these calls; Client::Run takes its tensors in that order.
  Value Input(DType dtype, const Dimensions& shape, Location location = Location::current());

  // Adds any op of the daemon's table, by name; the functions of kiln/ops.h call this. `dtype` is
  // needed only for sources, cast and bitcast.
  Value AddNode(std::string_view op, absl::Span<const Value> operands,
                const Attributes& attributes = {}, DType dtype = DType::kUnspecified,
                Location location = Location::current());

  // Sets the precision of the whole graph, no matter when it is called; the default is kHighest.
  void SetFloat32MatmulPrecision(MatmulPrecision precision);

  // Makes the graph run on all devices of a mesh. Requires: called before Lay, Shard and outputs
  // with a spec.
  void SetMesh(Mesh mesh);
  // Sets the layout of the tensors that are passed for an input; by default each device has the
  // whole tensor. The new value that Update gives the input has the same layout.
  void Lay(Value input, const Spec& spec);
  // Returns `x`, laid out as `spec` says, which has an entry for each dimension. This changes only
  // which device computes what, not the results.
  Value Shard(Value x, const Spec& spec, Location location = Location::current());

  // Sets stages instead of a mesh: some layers on one device and the next ones on another, in one
  // program. An op runs on the device of its operands; gradients of sent values are sent back.
  // `devices`: up to 64, each once. Requires: called before PutOn and Send.
  void SetStages(std::vector<std::string> devices);
  // Sets the device of the tensors that are passed for an input; by default the first device.
  // Requires: called before the input is used.
  void PutOn(Value input, std::string_view device);
  // Returns `x` on another device.
  Value Send(Value x, std::string_view device, Location location = Location::current());

  // Adds an output. Outputs are numbered in the order of these calls. On a mesh, `spec` gives the
  // layout.
  void Output(Value value, const Spec& spec = {});
  // After a run, the tensor bound to `input` holds `value` instead. All reads within the run see
  // the old value.
  void Update(Value input, Value value);

  // Keeps `mistake` as the graph's error, unless there is one already, and returns an invalid
  // value. For functions that build graphs and find an error.
  Value Fail(const absl::Status& mistake);

  // Returns the graph so far, or the first error.
  absl::StatusOr<Graph> Build() const;

 private:
  // Returns true if `value` is a node of this graph. Otherwise keeps an error that names `where`.
  bool Check(const Value& value, std::string_view where, std::string_view what);

  std::unique_ptr<v1::Graph> proto_;
  // Returns the number of the device, in stages, of a node with these operands; -1 if it depends on
  // no input.
  int DeviceOf(std::string_view op, absl::Span<const Value> operands,
               const Attributes& attributes) const;
  // Returns the number of a device of the stages; otherwise -1, and keeps an error that names
  // `where`.
  int FindDevice(std::string_view device, std::string_view where);

  Mesh mesh_;
  std::vector<int> devices_;  // by node, in stages
  bool in_stages_ = false;
  absl::Status status_;
  int num_inputs_ = 0;
};

}  // namespace kiln

#endif  // KILN_CLIENTS_CPP_KILN_GRAPH_H_
