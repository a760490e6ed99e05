#include "kiln/optim.h"

#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "clients/cpp/call.h"
#include "kiln/ops.h"

namespace kiln::optim {
namespace {

// As functions, these operators can be given the caller's location.
using ops::Add;
using ops::Div;
using ops::Mul;
using ops::Sub;

// Returns the loss's builder, if `kept` has a value for each parameter. Otherwise returns null, and
// the builder, if there is one, keeps that error.
GraphBuilder* BuilderFor(Value loss, absl::Span<const Value> parameters,
                         absl::Span<const Value> kept, std::string_view what,
                         const Location& location) {
  GraphBuilder* builder = loss.builder();
  if (builder == nullptr || kept.size() == parameters.size()) return builder;
  builder->Fail(absl::InvalidArgumentError(
      absl::StrCat(std::string(what), " (", internal::SourceOf(location), ") has ", kept.size(),
                   "; it needs one for each of the ", parameters.size(), " parameters")));
  return nullptr;
}

// Returns the rate in the dtype of the parameter that it is multiplied with. A number needs no
// cast.
Operand RateFor(Value parameter, const Operand& rate, const Location& location) {
  if (rate.value() == nullptr) return rate;
  return ops::Cast(*rate.value(), parameter.dtype(), {}, location);
}

// before * decay + now * (1 - decay).
Value RunningMean(Value before, Value now, double decay, const Location& at) {
  return Add(Mul(before, decay, at), Mul(now, 1 - decay, at), at);
}

// 1 - decay^steps, accurate even if decay is close to 1.
Value BiasCorrection(double decay, Value steps, const Location& at) {
  const Value exponent = ops::Cast(steps, DType::kFloat32, {}, at);
  return ops::Neg(ops::Expm1(Mul(exponent, std::log(decay), at), at), at);
}

}  // namespace

void Sgd(Value loss, absl::Span<const Value> parameters, const Operand& learning_rate,
         const SgdOptions& options, Location at) {
  const bool has_momentum = options.momentum != 0;
  // Without momentum no velocities are needed, so the check is given the parameters themselves.
  GraphBuilder* builder =
      BuilderFor(loss, parameters, has_momentum ? options.velocities : parameters,
                 "SgdOptions::velocities", at);
  if (builder == nullptr) return;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value parameter = parameters[i];
    Value step = ops::Gradient(loss, parameter, {}, at);
    if (options.weight_decay != 0) {
      step = Add(step, Mul(parameter, options.weight_decay, at), at);
    }
    if (has_momentum) {
      const Value velocity = Add(Mul(options.velocities[i], options.momentum, at), step, at);
      builder->Update(options.velocities[i], velocity);
      step = options.nesterov ? Add(step, Mul(velocity, options.momentum, at), at) : velocity;
    }
    const Operand rate = RateFor(parameter, learning_rate, at);
    builder->Update(parameter, Sub(parameter, Mul(step, rate, at), at));
  }
}

void AdamW(Value loss, absl::Span<const Value> parameters, const AdamWState& state,
           const Operand& learning_rate, const AdamWOptions& options, Location at) {
  if (!BuilderFor(loss, parameters, state.means, "AdamWState::means", at)) return;
  GraphBuilder* builder = BuilderFor(loss, parameters, state.squares, "AdamWState::squares", at);
  if (builder == nullptr) return;
  // Counted on the daemon, so that a step needs no number from the client.
  const Value steps = Add(state.steps, 1, at);
  builder->Update(state.steps, steps);
  const Value correction1 = BiasCorrection(options.beta1, steps, at);
  const Value correction2 = ops::Sqrt(BiasCorrection(options.beta2, steps, at), at);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value parameter = parameters[i];
    const DType dtype = parameter.dtype();
    const Value gradient = ops::Gradient(loss, parameter, {}, at);
    const Value mean = RunningMean(state.means[i], gradient, options.beta1, at);
    const Value square =
        RunningMean(state.squares[i], ops::Square(gradient, at), options.beta2, at);
    builder->Update(state.means[i], mean);
    builder->Update(state.squares[i], square);
    const Value spread = Add(Div(ops::Sqrt(square, at), ops::Cast(correction2, dtype, {}, at), at),
                             options.epsilon, at);
    const Value direction = Div(Div(mean, ops::Cast(correction1, dtype, {}, at), at), spread, at);
    // The weight decay is added to the direction, not to the gradient, whose means must not include
    // it (Loshchilov and Hutter, 2019).
    const Value step = Add(direction, Mul(parameter, options.weight_decay, at), at);
    const Operand rate = RateFor(parameter, learning_rate, at);
    builder->Update(parameter, Sub(parameter, Mul(step, rate, at), at));
  }
}

}  // namespace kiln::optim
