// The C++ client of kilnd: connect, upload, build a graph, run it, download. Graphs are built with
// kiln/graph.h, which this header includes, and kiln/ops.h, which has every op as a function;
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
// Nothing here throws. What the daemon refuses comes as the absl::Status of the operation or of
// what depends on it, with the daemon's message; ErrorReason gives its constant name
// ("SHAPE_MISMATCH").
//
// Only Download, Future::Get and Client::Connect wait for the daemon's answers. Everything else
// puts a message on an ordered stream and returns, so that many runs are in flight; it waits only
// while the daemon has 4,096 operations or 256 MiB of them still to answer. A lost connection is
// taken up again, without running anything twice, for as long as the session's lease lasts. A
// daemon that is restarted (SIGTERM, `kiln drain`) keeps its sessions, and clients wait for the
// next one. One that is killed keeps those that have a ConnectOptions::snapshot_interval. If a
// session could not be kept, whatever waits fails with NOT_FOUND and the reason SESSION_LOST, and
// the message says why where the daemon knows it; or with UNAVAILABLE if the daemon keeps none.
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

// A value that comes later. Copies share it. Thread-safe.
template <typename T>
class Future {
 public:
  // Where the value is put in: once.
  class Promise;

  // Waits for the value or the error.
  absl::StatusOr<T> Get() const { return Get(absl::InfiniteFuture()); }
  // DEADLINE_EXCEEDED if it is not there by then; it can be asked for again.
  absl::StatusOr<T> Get(absl::Time deadline) const;
  bool Ready() const;

 private:
  struct State {
    mutable absl::Mutex mutex;
    absl::StatusOr<T> value ABSL_GUARDED_BY(mutex) = absl::UnknownError("not there yet");
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

// A buffer on the daemon. Copies share it; the buffer is released when the last one goes.
// Thread-safe.
class Tensor {
 public:
  uint64_t handle() const;

 private:
  friend class Client;
  struct Handle;
  explicit Tensor(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<Handle> handle_;
};

// A graph that the daemon knows. Copies share it; released when the last one goes. Thread-safe.
class Program {
 public:
  // The name under which `kiln explain` knows it; waits for the daemon's checks, and gives their
  // error.
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
  // Values of the graph's variables.
  std::map<std::string, int64_t> bindings = {};
  // Have the daemon report how long the program ran on the device.
  bool report_time = false;
};

struct RunReport {
  double device_seconds = 0;  // with RunOptions::report_time
};

struct RunResult {
  std::vector<Tensor> outputs;  // by the graph's outputs; they may be used at once
  Future<RunReport> done;       // or why the run failed
};

struct ConnectOptions {
  // "unix:/path", "/path" or "host:port". Empty: $KILN_ADDRESS, else the local daemon's socket,
  // else what ~/.config/kiln/config.toml says, else 127.0.0.1:7433.
  std::string address = {};
  // What tells the daemon who calls, and the authority of its certificate; the last three are files
  // in PEM. Empty: $KILN_TOKEN, $KILN_CA, $KILN_CERTIFICATE and $KILN_KEY, else as in the file.
  // With a `ca` ("system": those that this machine knows) the connection speaks TLS.
  std::string token = {};
  std::string ca = {};
  std::string certificate = {};
  std::string key = {};
  // The device that programs run on, for example "cpu:0". Empty: the daemon chooses.
  std::string device = {};
  // Shown to the box's admins and viewers, for example "ann@laptop train".
  std::string description = {};
  // The session takes what interactive ones leave of the device's time, and a seventeenth of it at
  // least.
  bool batch = false;
  // How long the session outlives a lost connection. Zero: the daemon's default.
  absl::Duration lease = absl::ZeroDuration();
  // Above zero: the session survives a daemon that is killed, too; its images on the daemon's disk
  // are so far apart, a second at least. FAILED_PRECONDITION: the daemon has no folder for them.
  absl::Duration snapshot_interval = absl::ZeroDuration();
  // How long Connect and Attach wait for the daemon.
  absl::Duration timeout = absl::Seconds(10);
  // How long the client's end waits for the daemon to close the session. A daemon that does not
  // answer closes it by itself when the lease runs out.
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

// A tensor of Client::Attach, with what it is.
struct NamedTensor {
  Tensor tensor;
  DType dtype = DType::kUnspecified;
  Shape shape;
  Placement placement;  // where it lies; empty: on the session's device
};
struct Attached;

// A session on a daemon. Thread-safe: operations of one thread take effect in its order. Tensors
// and programs may outlive the client; they are then of no use.
class Client {
 public:
  // UNAVAILABLE if no daemon answers there, UNAUTHENTICATED if it does not know the caller, with
  // what to do.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ConnectOptions& options = {});
  // Takes up a session that was detached under this name, by this or another process of the user's;
  // of `options` only what says where the daemon is and who calls. Whoever had it before cannot use
  // it any more. NOT_FOUND if there is none of that name.
  static absl::StatusOr<Attached> Attach(const std::string& name,
                                         const ConnectOptions& options = {});
  // Ends the session, unless it was detached: the daemon frees what it holds. Futures that are
  // still open fail with CANCELLED.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The session's public name ("s12"), and the device its programs run on.
  const std::string& session() const;
  const std::string& device() const;

  // The daemon's devices, with their memory as it is now.
  absl::StatusOr<std::vector<Device>> Devices();

  // Makes a tensor of `data`, row-major and little-endian. INVALID_ARGUMENT if its size is not that
  // of shape and dtype. `data` has been copied or sent when this returns.
  // Of what is large, a daemon on another machine is sent only what it does not have already.
  // It lies as `placement` says, by default on the session's device.
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

  // A copy of a tensor that lies as `placement` says.
  absl::StatusOr<Tensor> Move(const Tensor& tensor, const Placement& placement);

  // Gives the daemon a graph. Compilation starts at once; Program::digest tells whether the graph
  // was right. `name` is shown by `kiln programs` and in the metrics. The error of `graph`, if it
  // is one. It runs on its mesh's devices, if it has a mesh, else on `device`, by default the
  // session's.
  absl::StatusOr<Program> Define(const absl::StatusOr<Graph>& graph, std::string name,
                                 const std::string& device = {});

  // Runs a program. INVALID_ARGUMENT for a wrong number of inputs; what the daemon finds comes from
  // RunResult::done and from whatever uses the outputs.
  absl::StatusOr<RunResult> Run(const Program& program, absl::Span<const Tensor> inputs,
                                const RunOptions& options = {});
  absl::StatusOr<RunResult> Run(const Program& program, std::initializer_list<Tensor> inputs,
                                const RunOptions& options = {}) {
    return Run(program, absl::MakeConstSpan(inputs.begin(), inputs.size()), options);
  }

  // The tensor's bytes. Waits for its value; the error of what should have made it, if that failed.
  absl::StatusOr<std::string> DownloadBytes(const Tensor& tensor);
  // As elements; INTERNAL if the bytes are not a whole number of them.
  template <typename T>
  absl::StatusOr<std::vector<T>> Download(const Tensor& tensor);

  // The bytes of a small tensor, later. For tensors above the daemon's chunk (1 MiB by default) use
  // DownloadBytes.
  Future<std::string> Read(const Tensor& tensor);

  // Waits until everything before it has finished.
  absl::Status Barrier();

  // Cancels the runs sent so far that the device has not been given whole, the last ones: they fail
  // with CANCELLED, and so do their outputs; what they would have updated keeps its value. A run
  // that is on the device in part stops at the next slice. Does not wait for that.
  absl::Status Cancel();

  // Leaves the session and these tensors to whoever calls Attach with its name. What was sent
  // before goes on; everything is kept for `keep`, held to the daemon's limit, once this client has
  // been destroyed, which is all that may be done with it then. Names have 1 to 64 letters, digits,
  // ".", "_" and "-". ALREADY_EXISTS if another session of the user's has the name; then nothing
  // has changed.
  absl::Status Detach(const std::string& name, absl::Duration keep,
                      const std::map<std::string, Tensor>& tensors);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Attached {
  std::unique_ptr<Client> client;
  std::map<std::string, NamedTensor> tensors;  // by the names that Detach gave them
};

// The constant that names the kind of an error of the daemon's ("SHAPE_MISMATCH"); empty if there
// is none.
std::string ErrorReason(const absl::Status& status);

// Implementation of templates.

template <typename T>
absl::StatusOr<T> Future<T>::Get(absl::Time deadline) const {
  absl::MutexLock lock(&state_->mutex);
  if (!state_->mutex.AwaitWithDeadline(absl::Condition(&state_->ready), deadline)) {
    return absl::DeadlineExceededError("the result is not there yet");
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
    return absl::InternalError("the tensor is no whole number of elements of this type");
  std::vector<T> elements(bytes->size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), bytes->data(), bytes->size());
  return elements;
}

}  // namespace kiln

#endif  // KILN_CLIENTS_CPP_KILN_CLIENT_H_
