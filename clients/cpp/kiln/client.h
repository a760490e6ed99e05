// The C++ client of kilnd: connect, upload, build a graph, run it, download. Graphs are built with
// kiln/graph.h, which this header includes, and kiln/ops.h, which has every op as a function.
// kiln/state.h and kiln/optim.h are for training.
//
//   auto client = *kiln::Client::Connect();
//   kiln::GraphBuilder builder;
//   kiln::Value x = builder.Input(kiln::DType::kFloat32, {2, 3});
//   builder.Output(kiln::ops::Sum(x * x));
//   auto program = *client->Define(builder.Build(), "sum_of_squares");
//   auto tensor = *client->Upload<float>({2, 3}, {1, 2, 3, 4, 5, 6});
//   auto run = *client->Run(program, {tensor});
//   std::vector<float> result = *client->Download<float>(run.outputs[0]);   // {91}
//
// No function throws. If the daemon refuses an operation, the absl::Status of that operation, or of
// what depends on it, has the daemon's message. ErrorReason returns the constant name of the error
// ("SHAPE_MISMATCH").
//
// Only Download, Future::Get and Client::Connect wait for the daemon's answers. All other calls put
// a message on an ordered stream and return, so that many runs are in flight; they block only while
// 4,096 operations or 256 MiB of them are unanswered. After a lost connection the client
// reconnects, without running anything twice, for as long as the session's lease lasts. A daemon
// that is restarted (SIGTERM, `kiln drain`) keeps its sessions, and clients wait for the next
// daemon. A daemon that is killed keeps only the sessions that have a
// ConnectOptions::snapshot_interval. If a session could not be kept, pending calls fail with
// NOT_FOUND and the reason SESSION_LOST, with the cause if the daemon knows it, or with UNAVAILABLE
// if the daemon keeps no sessions.
#ifndef KILN_CLIENTS_CPP_KILN_CLIENT_H_
#define KILN_CLIENTS_CPP_KILN_CLIENT_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kiln/dtype.h"
#include "kiln/graph.h"

namespace kiln {

// A value that will be set later. Copies share it. Thread-safe.
template <typename T>
class Future {
 public:
  // Sets the value; Set is called once.
  class Promise;

  // Waits for the value or the error.
  absl::StatusOr<T> Get() const { return Get(absl::InfiniteFuture()); }
  // Waits until `deadline`; then returns DEADLINE_EXCEEDED, and Get may be called again.
  absl::StatusOr<T> Get(absl::Time deadline) const;
  bool Ready() const;

 private:
  struct State {
    mutable absl::Mutex mutex;
    absl::StatusOr<T> value ABSL_GUARDED_BY(mutex) = absl::UnknownError("not available yet");
    bool ready ABSL_GUARDED_BY(mutex) = false;
  };
  explicit Future(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

template <typename T>
class Future<T>::Promise {
 public:
  Promise() : state_(std::make_shared<State>()) {}
  Future<T> future() const { return Future<T>(state_); }
  void Set(absl::StatusOr<T> value) const {
    absl::MutexLock lock(&state_->mutex);
    state_->value = std::move(value);
    state_->ready = true;
  }

 private:
  std::shared_ptr<State> state_;
};

class Client;

// A buffer on the daemon. Copies share it; the buffer is released with the last copy. Thread-safe.
class Tensor {
 public:
  uint64_t handle() const;

 private:
  friend class Client;
  struct Handle;
  explicit Tensor(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<Handle> handle_;
};

// A graph that was sent to the daemon. Copies share it; it is released with the last copy.
// Thread-safe.
class Program {
 public:
  // Returns the digest, by which `kiln explain` identifies it. Waits for the daemon's checks and
  // returns their error.
  absl::StatusOr<std::string> digest() const { return digest_.Get(); }

 private:
  friend class Client;
  struct Handle;
  Program(std::shared_ptr<Handle> handle, Future<std::string> digest)
      : handle_(std::move(handle)), digest_(std::move(digest)) {}
  std::shared_ptr<Handle> handle_;
  Future<std::string> digest_;
};

struct RunOptions {
  // The values of the graph's variables.
  std::map<std::string, int64_t> bindings = {};
  // Makes the daemon report how long the program ran on the device.
  bool report_time = false;
};

struct RunReport {
  double device_seconds = 0;  // set if RunOptions::report_time
};

struct RunResult {
  std::vector<Tensor> outputs;  // in the order of the graph's outputs; usable at once
  Future<RunReport> done;       // or the error with which the run failed
};

struct ConnectOptions {
  // "unix:/path", "/path" or "host:port". Empty: $KILN_ADDRESS, else the local daemon's socket,
  // else what ~/.config/kiln/config.toml says, else 127.0.0.1:7433.
  std::string address = {};
  // The caller's credentials, and the authority of the daemon's certificate; the last three are
  // paths of PEM files. Empty: $KILN_TOKEN, $KILN_CA, $KILN_CERTIFICATE and $KILN_KEY, else the
  // values in the config file. With a `ca` ("system": the authorities known to this machine) the
  // connection uses TLS.
  std::string token = {};
  std::string ca = {};
  std::string certificate = {};
  std::string key = {};
  // The device on which programs run, for example "cpu:0". Empty: the daemon chooses.
  std::string device = {};
  // Shown to the daemon's admins and viewers, for example "ann@laptop train".
  std::string description = {};
  // Low priority: the session gets the device time that interactive sessions leave, and at least
  // 1/17.
  bool batch = false;
  // The time for which the session survives a lost connection. Zero: the daemon's default.
  absl::Duration lease = absl::ZeroDuration();
  // Above zero: the session also survives a daemon that is killed. The daemon writes a snapshot of
  // it to disk at this interval, at least one second. FAILED_PRECONDITION: the daemon has no folder
  // for snapshots.
  absl::Duration snapshot_interval = absl::ZeroDuration();
  // The time for which Connect and Attach wait for the daemon.
  absl::Duration timeout = absl::Seconds(10);
  // The time for which the client's destructor waits for the daemon to close the session. A daemon
  // that does not answer closes it when the lease runs out.
  absl::Duration closing_timeout = absl::Seconds(2);
};

// A device of the daemon's machine.
struct Device {
  std::string name;   // "cuda:1", as meshes name it
  std::string model;  // the vendor's name
  uint64_t memory_total_bytes = 0;
  uint64_t memory_used_bytes = 0;
  bool healthy = false;
};

// A tensor returned by Client::Attach, with its type and placement.
struct NamedTensor {
  Tensor tensor;
  DType dtype = DType::kUnspecified;
  Shape shape;
  Placement placement;  // empty: on the session's device
};
struct Attached;

// A session on a daemon. Thread-safe: operations of one thread take effect in the order of its
// calls. Tensors and programs may outlive the client, but are then unusable.
class Client {
 public:
  // Returns UNAVAILABLE if no daemon answers at the address, UNAUTHENTICATED if it does not know
  // the caller; the message says what to do.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ConnectOptions& options = {});
  // Takes over a session that was detached under this name, by this or another process of the user.
  // Uses only those `options` that give the daemon's address and the caller's credentials. The
  // process that had the session before can no longer use it. NOT_FOUND if there is no session of
  // that name.
  static absl::StatusOr<Attached> Attach(const std::string& name,
                                         const ConnectOptions& options = {});
  // Closes the session, unless it was detached; the daemon frees what it holds. Pending futures
  // fail with CANCELLED.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The session's public name ("s12"), and the device on which its programs run.
  const std::string& session() const;
  const std::string& device() const;

  // Returns the daemon's devices, with their current memory use.
  absl::StatusOr<std::vector<Device>> Devices();

  // Creates a tensor from `data`, row-major and little-endian. INVALID_ARGUMENT if its size does
  // not match shape and dtype. `data` has been copied or sent on return. To a daemon on another
  // machine, large data is sent only if the daemon does not already have it. The tensor is stored
  // as `placement` says, by default on the session's device.
  absl::StatusOr<Tensor> Upload(DType dtype, const Shape& shape, absl::Span<const char> data,
                                const Placement& placement = {});
  template <typename T>
  absl::StatusOr<Tensor> Upload(const Shape& shape, absl::Span<const T> data,
                                const Placement& placement = {}) {
    static_assert(kDTypeOf<T> != DType::kUnspecified);
    return Upload(
        kDTypeOf<T>, shape,
        absl::MakeConstSpan(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T)),
        placement);
  }
  template <typename T>
  absl::StatusOr<Tensor> Upload(const Shape& shape, std::initializer_list<T> data,
                                const Placement& placement = {}) {
    return Upload<T>(shape, absl::MakeConstSpan(data.begin(), data.size()), placement);
  }

  // Returns a copy of a tensor that is stored as `placement` says.
  absl::StatusOr<Tensor> Move(const Tensor& tensor, const Placement& placement);

  // Sends a graph to the daemon. Compilation starts at once; Program::digest tells whether the
  // graph was valid. `name` is shown by `kiln programs` and in the metrics. Returns the error of
  // `graph`, if it is one. The program runs on the devices of the graph's mesh, or else on
  // `device`, by default the session's.
  absl::StatusOr<Program> Define(const absl::StatusOr<Graph>& graph, std::string name,
                                 const std::string& device = {});

  // Runs a program. INVALID_ARGUMENT for a wrong number of inputs. Errors that the daemon finds are
  // returned by RunResult::done and by every use of the outputs.
  absl::StatusOr<RunResult> Run(const Program& program, absl::Span<const Tensor> inputs,
                                const RunOptions& options = {});
  absl::StatusOr<RunResult> Run(const Program& program, std::initializer_list<Tensor> inputs,
                                const RunOptions& options = {}) {
    return Run(program, absl::MakeConstSpan(inputs.begin(), inputs.size()), options);
  }

  // Returns the tensor's bytes. Waits for its value; returns the error of the operation that should
  // have computed it, if that failed.
  absl::StatusOr<std::string> DownloadBytes(const Tensor& tensor);
  // Returns the elements; INTERNAL if the size is not a multiple of the element's size.
  template <typename T>
  absl::StatusOr<std::vector<T>> Download(const Tensor& tensor);

  // Returns a future with the bytes of a small tensor. For tensors above the daemon's chunk size (1
  // MiB by default), use DownloadBytes.
  Future<std::string> Read(const Tensor& tensor);

  // Waits until all earlier operations have finished.
  absl::Status Barrier();

  // Cancels the most recent runs that have not been fully submitted to the device. They and their
  // outputs fail with CANCELLED; the inputs that they would have updated keep their values. A run
  // that is partly submitted stops at the next slice. Does not wait for that.
  absl::Status Cancel();

  // Leaves the session and these tensors to the process that calls Attach with its name. Operations
  // sent before continue. Once this client has been destroyed, everything is kept for `keep`,
  // clamped to the daemon's limit. Afterwards the client may only be destroyed. Names have 1 to 64
  // letters, digits, ".", "_" and "-". ALREADY_EXISTS if another session of the user has the name;
  // then nothing has changed.
  absl::Status Detach(const std::string& name, absl::Duration keep,
                      const std::map<std::string, Tensor>& tensors);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Attached {
  std::unique_ptr<Client> client;
  std::map<std::string, NamedTensor> tensors;  // by the names that were passed to Detach
};

// Returns the constant that names the kind of a daemon's error ("SHAPE_MISMATCH"); empty if there
// is none.
std::string ErrorReason(const absl::Status& status);

// Implementation of templates.

template <typename T>
absl::StatusOr<T> Future<T>::Get(absl::Time deadline) const {
  absl::MutexLock lock(&state_->mutex);
  if (!state_->mutex.AwaitWithDeadline(absl::Condition(&state_->ready), deadline)) {
    return absl::DeadlineExceededError("the result is not available yet");
  }
  return state_->value;
}

template <typename T>
bool Future<T>::Ready() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->ready;
}

template <typename T>
absl::StatusOr<std::vector<T>> Client::Download(const Tensor& tensor) {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>,
                "bool tensors: Download<uint8_t>");
  absl::StatusOr<std::string> bytes = DownloadBytes(tensor);
  if (!bytes.ok()) return bytes.status();
  if (bytes->size() % sizeof(T) != 0)
    return absl::InternalError("the tensor is not a whole number of elements of this type");
  std::vector<T> elements(bytes->size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), bytes->data(), bytes->size());
  return elements;
}

}  // namespace kiln

#endif  // KILN_CLIENTS_CPP_KILN_CLIENT_H_
