// Trains a small convolutional network from C++.
//
//   train_digits                  on digits that it generates itself
//   train_digits --data FOLDER    on MNIST's four files, uncompressed
//
// Also: --epochs N, --batch N, --rate X, --address ADDRESS (else $KILN_ADDRESS, else the local
// daemon). Prints loss and test accuracy after each epoch.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "digits.h"
#include "kiln/client.h"
#include "kiln/ops.h"
#include "kiln/optim.h"
#include "kiln/state.h"

namespace {

using digits::Digits;
using kiln::DType;
using kiln::GraphBuilder;
using kiln::Value;
namespace ops = kiln::ops;

struct Options {
  std::string address;
  std::string data;
  int64_t epochs = 5;
  int64_t batch = 64;
  float rate = 2e-3F;
};

// Returns random initial parameters of Network (He et al., 2015).
absl::StatusOr<kiln::State> InitialWeights(kiln::Client& client, int64_t side) {
  const int64_t features = 32 * (side / 4) * (side / 4);
  std::mt19937 random(1);
  kiln::State weights(client);
  for (const kiln::Shape& shape :
       std::vector<kiln::Shape>{{16, 1, 3, 3}, {16}, {32, 16, 3, 3}, {32}, {10, features}, {10}}) {
    const auto product = [](int64_t a, int64_t b) { return a * b; };
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, product);
    const double spread = shape.size() == 1 ? 0 : std::sqrt(2.0 * shape[0] / count);
    std::normal_distribution<double> normal(0, 1);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(spread * normal(random));
    const absl::Status added = weights.Add<float>(shape, values);
    if (!added.ok()) return added;
  }
  return weights;
}

// Returns the scores (N, 10) of images (N, side, side) of bytes.
Value Network(const std::vector<Value>& w, Value images, int64_t batch, int64_t side) {
  Value x = ops::Cast(images, DType::kFloat32) / 255;
  x = ops::Reshape(x, {batch, 1, side, side});
  x = ops::Relu(ops::Conv2d(x, w[0], {.bias = w[1], .padding = {1, 1}}));
  x = ops::MaxPool2d(x, {2, 2});
  x = ops::Relu(ops::Conv2d(x, w[2], {.bias = w[3], .padding = {1, 1}}));
  x = ops::MaxPool2d(x, {2, 2});
  x = ops::Reshape(x, {batch, 32 * (side / 4) * (side / 4)});
  return ops::Linear(x, w[4], {.bias = w[5]});
}

// A data set on the daemon. A batch is given by the indices of its images.
struct Data {
  static absl::StatusOr<Data> Upload(kiln::Client& client, const Digits& digits) {
    auto images = client.Upload<uint8_t>({digits.count(), digits.side, digits.side}, digits.images);
    if (!images.ok()) return images.status();
    auto labels = client.Upload<int64_t>({digits.count()}, digits.labels);
    if (!labels.ok()) return labels.status();
    return Data{*images, *labels, digits.count(), digits.side};
  }

  kiln::Tensor images;
  kiln::Tensor labels;
  int64_t count;
  int64_t side;
};

// The same data as inputs of a graph: images and labels of a batch.
struct Batch {
  Batch(GraphBuilder& builder, const Data& data, int64_t size) {
    Value all_images = builder.Input(DType::kUInt8, {data.count, data.side, data.side});
    Value all_labels = builder.Input(DType::kInt64, {data.count});
    Value places = builder.Input(DType::kInt64, {size});
    images = ops::Gather(all_images, places);
    labels = ops::Gather(all_labels, places);
  }

  Value images;
  Value labels;
};

class Training {
 public:
  static absl::StatusOr<Training> Start(kiln::Client& client, const Data& data, int64_t batch) {
    auto weights = InitialWeights(client, data.side);
    if (!weights.ok()) return weights.status();
    Training training(client, *std::move(weights), data, batch);
    if (absl::Status status = training.DefineStep(); !status.ok()) return status;
    return training;
  }

  // Runs one step on the images at these indices; returns a future with the loss.
  absl::StatusOr<kiln::Future<std::string>> Step(absl::Span<const int64_t> places, float rate) {
    auto places_tensor = client_->Upload<int64_t>({batch_}, places);
    if (!places_tensor.ok()) return places_tensor.status();
    auto rate_tensor = client_->Upload<float>({}, {rate});
    if (!rate_tensor.ok()) return rate_tensor.status();
    std::vector<kiln::Tensor> inputs = Inputs({&weights_, &means_, &squares_, &steps_});
    inputs.insert(inputs.end(), {data_.images, data_.labels, *places_tensor, *rate_tensor});
    auto run = client_->Run(*step_, inputs);
    if (!run.ok()) return run.status();
    return client_->Read(run->outputs[0]);
  }

  // Returns the fraction of `test`'s images whose highest score is that of their label.
  absl::StatusOr<double> Accuracy(const Data& test);

 private:
  Training(kiln::Client& client, kiln::State weights, const Data& data, int64_t batch)
      : client_(&client),
        data_(data),
        batch_(batch),
        weights_(std::move(weights)),
        means_(client),
        squares_(client),
        steps_(client) {}

  static std::vector<kiln::Tensor> Inputs(std::initializer_list<const kiln::State*> states) {
    std::vector<kiln::Tensor> inputs;
    for (const kiln::State* state : states) {
      inputs.insert(inputs.end(), state->tensors().begin(), state->tensors().end());
    }
    return inputs;
  }

  absl::Status DefineStep();

  kiln::Client* client_;
  Data data_;
  int64_t batch_;
  kiln::State weights_, means_, squares_, steps_;
  std::optional<kiln::Program> step_;
};

absl::Status Training::DefineStep() {
  absl::Status added = means_.AddZerosLike(weights_);
  added.Update(squares_.AddZerosLike(weights_));
  added.Update(steps_.Add<int64_t>({}, {0}));
  if (!added.ok()) return added;
  GraphBuilder builder;
  const std::vector<Value> weights = weights_.Inputs(builder);
  const kiln::optim::AdamWState state{.means = means_.Inputs(builder),
                                      .squares = squares_.Inputs(builder),
                                      .steps = steps_.Inputs(builder)[0]};
  const Batch batch(builder, data_, batch_);
  const Value rate = builder.Input(DType::kFloat32, {});
  const Value scores = Network(weights, batch.images, batch_, data_.side);
  const Value loss = ops::CrossEntropy(scores, batch.labels);
  kiln::optim::AdamW(loss, weights, state, rate);
  builder.Output(loss);
  auto program = client_->Define(builder.Build(), "train_digits");
  if (!program.ok()) return program.status();
  step_ = *std::move(program);
  return step_->digest().status();
}

absl::StatusOr<double> Training::Accuracy(const Data& test) {
  const int64_t size = std::min<int64_t>(test.count, 500);
  GraphBuilder builder;
  const std::vector<Value> weights = weights_.Inputs(builder);
  const Batch batch(builder, test, size);
  const Value scores = Network(weights, batch.images, size, test.side);
  const Value correct = ops::Cmpeq(ops::Argmax(scores, {.axes = {1}}), batch.labels);
  builder.Output(ops::CountNonzero(correct));
  auto program = client_->Define(builder.Build(), "count_correct");
  if (!program.ok()) return program.status();
  int64_t right = 0, tested = 0;
  std::vector<int64_t> places(size);
  for (; tested + size <= test.count; tested += size) {
    std::iota(places.begin(), places.end(), tested);
    auto places_tensor = client_->Upload<int64_t>({size}, places);
    if (!places_tensor.ok()) return places_tensor.status();
    std::vector<kiln::Tensor> inputs = weights_.tensors();
    inputs.insert(inputs.end(), {test.images, test.labels, *places_tensor});
    auto run = client_->Run(*program, inputs);
    if (!run.ok()) return run.status();
    auto count = client_->Download<int64_t>(run->outputs[0]);
    if (!count.ok()) return count.status();
    right += count->at(0);
  }
  return static_cast<double>(right) / static_cast<double>(tested);
}

// Waits for the losses and returns their mean.
absl::StatusOr<double> Mean(const std::vector<kiln::Future<std::string>>& losses) {
  double sum = 0;
  for (const auto& loss : losses) {
    const auto bytes = loss.Get();
    if (!bytes.ok()) return bytes.status();
    float value = 0;
    std::memcpy(&value, bytes->data(), sizeof(value));
    sum += value;
  }
  return sum / static_cast<double>(losses.size());
}

absl::Status Train(const Options& options) {
  auto client = kiln::Client::Connect({.address = options.address, .description = "train_digits"});
  if (!client.ok()) return client.status();
  const bool draws = options.data.empty();
  const auto train = draws ? digits::Draw(8000, 1) : digits::Read(options.data, "train");
  if (!train.ok()) return train.status();
  const auto test = draws ? digits::Draw(2000, 2) : digits::Read(options.data, "t10k");
  if (!test.ok()) return test.status();
  if (options.batch > train->count()) return absl::InvalidArgumentError("a batch is too large");
  auto train_data = Data::Upload(**client, *train);
  if (!train_data.ok()) return train_data.status();
  auto test_data = Data::Upload(**client, *test);
  if (!test_data.ok()) return test_data.status();
  auto training = Training::Start(**client, *train_data, options.batch);
  if (!training.ok()) return training.status();

  std::vector<int64_t> order(train->count());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(3);
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    // Cosine decay from the initial rate to zero.
    const double progress = static_cast<double>(epoch) / static_cast<double>(options.epochs);
    const auto rate =
        static_cast<float>(options.rate * 0.5 * (1 + std::cos(std::numbers::pi * progress)));
    // Steps do not wait for one another: all steps of an epoch are sent before a loss is read.
    std::vector<kiln::Future<std::string>> losses;
    for (size_t i = 0; i + options.batch <= order.size(); i += options.batch) {
      auto loss = training->Step(absl::MakeConstSpan(order).subspan(i, options.batch), rate);
      if (!loss.ok()) return loss.status();
      losses.push_back(*std::move(loss));
    }
    const auto loss = Mean(losses);
    if (!loss.ok()) return loss.status();
    const auto accuracy = training->Accuracy(*test_data);
    if (!accuracy.ok()) return accuracy.status();
    std::printf("epoch %d: loss %.4f, test accuracy %.4f\n", static_cast<int>(epoch + 1), *loss,
                *accuracy);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// Returns nothing if there is an unknown option.
std::optional<Options> ParseOptions(int argc, char** argv) {
  Options options;
  if (argc % 2 == 0) return std::nullopt;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--address") {
      options.address = value;
    } else if (name == "--data") {
      options.data = value;
    } else if (name == "--epochs") {
      options.epochs = std::atoll(value);
    } else if (name == "--batch") {
      options.batch = std::max(1LL, std::atoll(value));
    } else if (name == "--rate") {
      options.rate = std::strtof(value, nullptr);
    } else {
      return std::nullopt;
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = ParseOptions(argc, argv);
  if (!parsed.has_value()) {
    std::fprintf(stderr,
                 "usage: train_digits [--data FOLDER] [--epochs N] [--batch N] [--rate X] "
                 "[--address ADDRESS]\n");
    return 2;
  }
  const Options& options = *parsed;
  const absl::Status status = Train(options);
  if (!status.ok()) std::fprintf(stderr, "train_digits: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
