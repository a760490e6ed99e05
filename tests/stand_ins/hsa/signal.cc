// Signals, including doorbells, and the times of kernels and copies in them.
#include <algorithm>
#include <chrono>

#include "tests/stand_ins/hsa/objects.h"

namespace kiln::drivers::hsa {
namespace {

SignalState* FindSignal(uint64_t handle, const char* what) {
  const auto found = TheRuntime().signals.find(handle);
  if (found != TheRuntime().signals.end()) return &found->second;
  Mistake(std::string(what) + " of a signal that is none", HSA_STATUS_ERROR_INVALID_SIGNAL);
  return nullptr;
}

// `value`: the number of the last packet that was written.
void Ring(Queue& queue, hsa_signal_value_t value) {
  ++TheControl().doorbells;
  const auto told = static_cast<uint64_t>(value) + 1;
  if (told <= queue.rung)
    Mistake("a doorbell goes back to packet " + std::to_string(value), HSA_STATUS_ERROR);
  if (told > queue.write_index)
    Mistake("a doorbell tells of packet " + std::to_string(value) + ", which nobody reserved",
            HSA_STATUS_ERROR);
  if (told - queue.read_index > queue.api.size)
    Mistake("packets are written over that were not read", HSA_STATUS_ERROR);
  queue.rung = std::max(queue.rung, std::min(told, queue.write_index));
}

void Store(hsa_signal_t signal, hsa_signal_value_t value) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return;
  SignalState* state = FindSignal(signal.handle, "a store");
  if (state == nullptr) return;
  state->value = value;
  if (state->doorbell_of != nullptr) Ring(*state->doorbell_of, value);
  TheRuntime().changed.notify_all();
}

}  // namespace

bool IsSignalOrNone(hsa_signal_t signal, const char* what) {
  return signal.handle == 0 || FindSignal(signal.handle, what) != nullptr;
}

bool AreZero(const std::vector<uint64_t>& signals) {
  return std::all_of(signals.begin(), signals.end(), [](uint64_t handle) {
    const auto found = TheRuntime().signals.find(handle);
    return handle == 0 || (found != TheRuntime().signals.end() && found->second.value == 0);
  });
}

void CountDown(uint64_t signal, uint64_t begin, uint64_t end, bool dispatched, bool copied) {
  if (signal == 0) return;
  SignalState* state = FindSignal(signal, "the completion");
  if (state == nullptr) return;
  if (--state->value < 0) Mistake("a completion signal falls below 0", HSA_STATUS_ERROR);
  state->begin = begin;
  state->end = end;
  state->dispatched = dispatched;
  state->copied = copied;
  TheRuntime().changed.notify_all();
}

extern "C" {

hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t consumer_count,
                               const hsa_agent_t* consumers, hsa_signal_t* signal) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  signal->handle = TheRuntime().next_handle++;
  TheRuntime().signals[signal->handle].value = value;
  ++TheControl().objects;
  ++TheControl().signals_made;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_signal_destroy(hsa_signal_t signal) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  const SignalState* state = FindSignal(signal.handle, "the end");
  if (state == nullptr) return HSA_STATUS_ERROR_INVALID_SIGNAL;
  if (state->doorbell_of != nullptr)
    return Mistake("a doorbell is destroyed", HSA_STATUS_ERROR_INVALID_SIGNAL);
  TheRuntime().signals.erase(signal.handle);
  --TheControl().objects;
  return HSA_STATUS_SUCCESS;
}

hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal) {
  std::unique_lock lock(TheRuntime().mutex);
  const SignalState* state = IsOpen() ? FindSignal(signal.handle, "a load") : nullptr;
  return state == nullptr ? 0 : state->value;
}

void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  Store(signal, value);
}
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  Store(signal, value);
}

hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                             hsa_signal_value_t value, uint64_t timeout,
                                             hsa_wait_state_t) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return 0;
  if (condition != HSA_SIGNAL_CONDITION_LT) {
    Mistake("a wait of an unknown kind", HSA_STATUS_ERROR_INVALID_ARGUMENT);
    return 0;
  }
  const auto seconds = std::chrono::duration<double>(
      std::min(3600.0, static_cast<double>(timeout) / kTicksPerSecond));
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(seconds);
  while (true) {
    const SignalState* state = FindSignal(signal.handle, "a wait");
    if (state == nullptr) return 0;
    if (state->value < value) return state->value;
    if (TheRuntime().changed.wait_until(lock, until) == std::cv_status::timeout) {
      state = FindSignal(signal.handle, "a wait");
      return state == nullptr ? 0 : state->value;
    }
  }
}

hsa_status_t hsa_amd_profiling_async_copy_enable(bool enable) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  TheRuntime().copies_timed = enable;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t, hsa_signal_t signal,
                                                 hsa_amd_profiling_dispatch_time_t* time) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  const SignalState* state = FindSignal(signal.handle, "the time");
  if (state == nullptr || state->value != 0 || !state->dispatched)
    return Mistake("the time of no kernel", HSA_STATUS_ERROR_INVALID_SIGNAL);
  *time = {.start = state->begin, .end = state->end};
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
                                                   hsa_amd_profiling_async_copy_time_t* time) {
  std::unique_lock lock(TheRuntime().mutex);
  if (!IsOpen()) return HSA_STATUS_ERROR_NOT_INITIALIZED;
  const SignalState* state = FindSignal(signal.handle, "the time");
  if (state == nullptr || state->value != 0 || !state->copied)
    return Mistake("the time of no copy", HSA_STATUS_ERROR_INVALID_SIGNAL);
  *time = {.start = state->begin, .end = state->end};
  return HSA_STATUS_SUCCESS;
}

}  // extern "C"

}  // namespace kiln::drivers::hsa
