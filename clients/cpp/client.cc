#include "kiln/client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "clients/cpp/address.h"
#include "clients/cpp/blobs.h"
#include "clients/cpp/login.h"
#include "clients/cpp/pieces.h"
#include "clients/cpp/placement.h"
#include "clients/cpp/status.h"
#include "clients/cpp/stream.h"
#include "kiln/v1/device.grpc.pb.h"
#include "kiln/v1/graph.pb.h"

namespace kiln {
namespace {

constexpr uint32_t kOpSetVersion = 2;
constexpr uint64_t kDefaultChunkBytes = 1 << 20;

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const client::Login& login) {
  grpc::ChannelArguments arguments;
  // gRPC's default of 4 MiB is less than one tensor may need.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // After a lost connection the first attempts should follow quickly, but one attempt may take
  // longer. The second setting, despite its name, bounds the length of an attempt.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return client::OpenChannel(login, arguments, client::ProcessSurroundings());
}

absl::StatusOr<v1::OpenSessionResponse> OpenSession(v1::SessionService::StubInterface& stub,
                                                    const ConnectOptions& options,
                                                    const std::string& address) {
  v1::OpenSessionRequest request;
  request.mutable_client()->set_name("kiln-cpp");
  request.mutable_client()->set_version(KILN_VERSION);
  request.mutable_client()->set_op_set_version(kOpSetVersion);
  request.mutable_client()->set_description(options.description);
  request.set_lease_seconds(static_cast<uint32_t>(absl::ToInt64Seconds(options.lease)));
  if (options.snapshot_interval > absl::ZeroDuration()) {
    request.set_snapshot_seconds(static_cast<uint32_t>(
        std::max<int64_t>(1, absl::ToInt64Seconds(options.snapshot_interval))));
  }
  if (options.batch) request.set_priority(v1::BATCH);
  request.set_device(options.device);
  grpc::ClientContext context;
  // Besides CloseSession, the only call with a deadline: all others may have to wait for a long
  // computation.
  context.set_deadline(absl::ToChronoTime(absl::Now() + options.timeout));
  v1::OpenSessionResponse answer;
  if (absl::Status status = client::FromGrpc(stub.OpenSession(&context, request, &answer), address);
      !status.ok())
    return status;
  if (answer.chunk_bytes() == 0) answer.set_chunk_bytes(kDefaultChunkBytes);
  return answer;
}

constexpr absl::Duration kRestorePause = absl::Milliseconds(50);

// Retries, because a daemon that has been restarted restores its sessions one after another.
absl::StatusOr<v1::AttachSessionResponse> AttachSession(v1::SessionService::StubInterface& stub,
                                                        const std::string& name,
                                                        absl::Time deadline,
                                                        const std::string& address) {
  v1::AttachSessionRequest request;
  request.set_name(name);
  while (true) {
    v1::AttachSessionResponse answer;
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    absl::Status status = client::FromGrpc(stub.AttachSession(&context, request, &answer), address);
    if (status.ok()) {
      if (answer.session().chunk_bytes() == 0)
        answer.mutable_session()->set_chunk_bytes(kDefaultChunkBytes);
      return answer;
    }
    if (client::ReasonOf(status) != "RESTARTING" || absl::Now() > deadline) return status;
    absl::SleepFor(kRestorePause);
  }
}

void Ignore(const absl::StatusOr<v1::Result>& result) {}

}  // namespace

// The data that a session's handles need. They keep a weak reference, so that they may outlive the
// client.
struct ClientCore {
  // `attached` has no session if the session has just been opened.
  ClientCore(const std::shared_ptr<grpc::Channel>& channel, const v1::OpenSessionResponse& opened,
             const std::string& address, const v1::AttachSessionResponse& attached = {})
      : sessions(v1::SessionService::NewStub(channel)),
        blob_service(v1::BlobService::NewStub(channel)),
        device_service(v1::DeviceService::NewStub(channel)),
        info(opened),
        address(address),
        is_local(client::IsLocal(address)),
        blobs(*blob_service, opened.session_id(), address, opened.chunk_bytes()),
        next_number(1 + std::max(attached.last_handle(), attached.last_program())),
        stream(*sessions, opened.session_id(), address, absl::Seconds(opened.lease_seconds()),
               attached.last_sequence()) {}

  std::unique_ptr<v1::SessionService::Stub> sessions;
  std::unique_ptr<v1::BlobService::Stub> blob_service;
  std::unique_ptr<v1::DeviceService::Stub> device_service;
  const v1::OpenSessionResponse info;
  const std::string address;
  const bool is_local;
  client::Blobs blobs;
  absl::Mutex pieces_in_turn;             // see PieceUpload::Send
  std::atomic<uint64_t> next_number;      // for handles, programs and blobs
  std::atomic<bool> is_detached = false;  // nothing more is released, and the session is kept
  client::OperationStream stream;         // last: its thread uses the members above
};

// Released with the last copy.
struct Tensor::Handle {
  Handle(std::weak_ptr<ClientCore> core, uint64_t number) : core(std::move(core)), number(number) {}
  ~Handle() {
    // If the client is gone, its session is too, and there is nothing to release.
    auto alive = core.lock();
    if (alive == nullptr || alive->is_detached) return;
    v1::ConnectRequest request;
    request.mutable_release()->add_handles(number);
    alive->stream.Send(std::move(request), Ignore);
  }
  const std::weak_ptr<ClientCore> core;
  const uint64_t number;
};

struct Program::Handle {
  Handle(std::weak_ptr<ClientCore> core, uint64_t number, int inputs, int outputs, std::string name)
      : core(std::move(core)),
        number(number),
        inputs(inputs),
        outputs(outputs),
        name(std::move(name)) {}
  ~Handle() {
    auto alive = core.lock();
    if (alive == nullptr || alive->is_detached) return;
    v1::ConnectRequest request;
    request.mutable_release_program()->set_program(number);
    alive->stream.Send(std::move(request), Ignore);
  }
  const std::weak_ptr<ClientCore> core;
  const uint64_t number;
  const int inputs;
  const int outputs;
  const std::string name;
};

uint64_t Tensor::handle() const { return handle_->number; }

struct Client::Impl {
  std::shared_ptr<ClientCore> core;
  absl::Duration closing_timeout;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ConnectOptions& options) {
  const auto login = client::FindLogin(
      {options.address, options.token, options.ca, options.certificate, options.key},
      client::ProcessSurroundings());
  if (!login.ok()) return login.status();
  const std::string& address = login->address;
  auto channel = OpenChannel(*login);
  if (!channel.ok()) return channel.status();
  auto stub = v1::SessionService::NewStub(*channel);
  absl::StatusOr<v1::OpenSessionResponse> opened = OpenSession(*stub, options, address);
  if (!opened.ok()) return client::WithElsewhere(opened.status(), *login);
  auto impl = std::make_unique<Impl>();
  impl->closing_timeout = options.closing_timeout;
  impl->core = std::make_shared<ClientCore>(*channel, *opened, address);
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

absl::StatusOr<Attached> Client::Attach(const std::string& name, const ConnectOptions& options) {
  const auto login = client::FindLogin(
      {options.address, options.token, options.ca, options.certificate, options.key},
      client::ProcessSurroundings());
  if (!login.ok()) return login.status();
  auto channel = OpenChannel(*login);
  if (!channel.ok()) return channel.status();
  auto stub = v1::SessionService::NewStub(*channel);
  const auto answer = AttachSession(*stub, name, absl::Now() + options.timeout, login->address);
  if (!answer.ok()) return client::WithElsewhere(answer.status(), *login);
  auto impl = std::make_unique<Impl>();
  impl->closing_timeout = options.closing_timeout;
  impl->core = std::make_shared<ClientCore>(*channel, answer->session(), login->address, *answer);
  Attached attached;
  for (const v1::NamedTensor& tensor : answer->tensors()) {
    attached.tensors.emplace(
        tensor.name(),
        NamedTensor{Tensor(std::make_shared<Tensor::Handle>(impl->core, tensor.handle())),
                    static_cast<DType>(tensor.dtype()),
                    Shape(tensor.shape().begin(), tensor.shape().end()),
                    client::PlacementOf(tensor.placement())});
  }
  attached.client.reset(new Client(std::move(impl)));
  return attached;
}

absl::Status Client::Detach(const std::string& name, absl::Duration keep,
                            const std::map<std::string, Tensor>& tensors) {
  v1::ConnectRequest request;
  v1::Detach* detach = request.mutable_detach();
  detach->set_name(name);
  detach->set_keep_seconds(static_cast<uint32_t>(std::max(int64_t{1}, absl::ToInt64Seconds(keep))));
  for (const auto& [tensor_name, tensor] : tensors) {
    v1::NamedTensor* named = detach->add_tensors();
    named->set_name(tensor_name);
    named->set_handle(tensor.handle());
  }
  ClientCore& core = *impl_->core;
  core.is_detached = true;
  Future<v1::Result>::Promise done;
  core.stream.Send(std::move(request),
                   [done](absl::StatusOr<v1::Result> result) { done.Set(std::move(result)); });
  const absl::Status status = done.future().Get().status();
  core.is_detached = status.ok();
  return status;
}

Client::~Client() {
  if (impl_->core->is_detached) return;
  v1::CloseSessionRequest request;
  request.set_session_id(impl_->core->info.session_id());
  v1::CloseSessionResponse answer;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + impl_->closing_timeout));
  // .ok() says that the result is ignored on purpose.
  impl_->core->sessions->CloseSession(&context, request, &answer).ok();
}

const std::string& Client::session() const { return impl_->core->info.name(); }
const std::string& Client::device() const { return impl_->core->info.device(); }

absl::StatusOr<std::vector<Device>> Client::Devices() {
  v1::ListDevicesResponse answer;
  const absl::Status status = impl_->core->stream.ThroughCuts([&] {
    grpc::ClientContext context;
    answer.Clear();
    return client::FromGrpc(impl_->core->device_service->ListDevices(&context, {}, &answer),
                            impl_->core->address);
  });
  if (!status.ok()) return status;
  std::vector<Device> devices;
  for (const v1::Device& device : answer.devices()) {
    devices.push_back({.name = device.name(),
                       .model = device.model(),
                       .memory_total_bytes = device.memory_total_bytes(),
                       .memory_used_bytes = device.memory_used_bytes(),
                       .healthy = device.health() == v1::Device::HEALTHY});
  }
  return devices;
}

absl::StatusOr<Tensor> Client::Move(const Tensor& tensor, const Placement& placement) {
  ClientCore& core = *impl_->core;
  v1::ConnectRequest request;
  v1::Move* move = request.mutable_move();
  if (!client::IsSet(placement)) {
    move->mutable_placement()->add_devices(device());
  } else if (absl::Status status = client::SetPlacement(placement, move->mutable_placement());
             !status.ok()) {
    return status;
  }
  const uint64_t handle = core.next_number++;
  move->set_source(tensor.handle());
  move->set_handle(handle);
  core.stream.Send(std::move(request), Ignore);
  return Tensor(std::make_shared<Tensor::Handle>(impl_->core, handle));
}

absl::StatusOr<Tensor> Client::Upload(DType dtype, const Shape& shape, absl::Span<const char> data,
                                      const Placement& placement) {
  int64_t expected = SizeOf(dtype);
  for (int64_t size : shape) expected *= size;
  if (expected != static_cast<int64_t>(data.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape and dtype need ", expected, " bytes, but the data has ", data.size()));
  }
  ClientCore& core = *impl_->core;
  const uint64_t handle = core.next_number++;
  v1::ConnectRequest request;
  v1::Write* write = request.mutable_write();
  write->set_handle(handle);
  write->set_dtype(static_cast<v1::DType>(dtype));
  for (int64_t size : shape) write->add_shape(size);
  if (client::IsSet(placement)) {
    absl::Status status = client::SetPlacement(placement, write->mutable_placement());
    if (!status.ok()) return status;
  }
  // Created before anything is sent, so that every return below releases the handle.
  const Tensor tensor(std::make_shared<Tensor::Handle>(impl_->core, handle));
  if (data.size() <= core.info.chunk_bytes()) {
    write->set_data(data.data(), data.size());
    core.stream.Send(std::move(request), Ignore);
    return tensor;
  }
  // On the same machine, hashing would take longer than sending.
  if (!core.is_local) {
    absl::MutexLock lock(&core.pieces_in_turn);
    client::PieceUpload pieces(core.blobs, core.stream, absl::StrCat("tensor-", handle));
    const auto names = pieces.Send(data);
    if (!names.ok()) {
      v1::ConnectRequest release;
      for (const std::string& name : pieces.offered()) release.mutable_release()->add_blobs(name);
      // Waits for the release, because before it the daemon would tell the next upload that the
      // blobs are there.
      absl::Notification forgotten;
      core.stream.Send(std::move(release),
                       [&](const absl::StatusOr<v1::Result>&) { forgotten.Notify(); });
      forgotten.WaitForNotification();
      return names.status();
    }
    write->mutable_pieces()->mutable_names()->Assign(names->begin(), names->end());
    core.stream.Send(std::move(request), Ignore);
    return tensor;
  }
  const std::string blob = absl::StrCat("tensor-", handle);
  write->set_blob(blob);
  const absl::Status uploaded =
      core.stream.ThroughCuts([&] { return core.blobs.Upload(blob, data); });
  // Sent only now, because the blob must be there when the write is executed.
  if (uploaded.ok()) core.stream.Send(std::move(request), Ignore);
  // Ordered after the write, which has made a copy. An upload that failed may still have arrived.
  v1::ConnectRequest release;
  release.mutable_release()->add_blobs(blob);
  core.stream.Send(std::move(release), Ignore);
  if (!uploaded.ok()) return uploaded;
  return tensor;
}

absl::StatusOr<Program> Client::Define(const absl::StatusOr<Graph>& graph, std::string name,
                                       const std::string& device) {
  if (!graph.ok()) return graph.status();
  ClientCore& core = *impl_->core;
  const uint64_t number = core.next_number++;
  v1::ConnectRequest request;
  v1::DefineProgram* define = request.mutable_define_program();
  define->set_program(number);
  *define->mutable_graph() = graph->proto();
  define->set_name(name);
  for (const std::string& member : graph->devices()) define->add_devices(member);
  if (graph->devices().empty() && !device.empty()) define->add_devices(device);
  Future<std::string>::Promise digest;
  core.stream.Send(std::move(request), [digest](absl::StatusOr<v1::Result> result) {
    if (result.ok()) {
      digest.Set(result->digest());
    } else {
      digest.Set(result.status());
    }
  });
  return Program(std::make_shared<Program::Handle>(impl_->core, number, graph->num_inputs(),
                                                   graph->num_outputs(), std::move(name)),
                 digest.future());
}

absl::StatusOr<RunResult> Client::Run(const Program& program, absl::Span<const Tensor> inputs,
                                      const RunOptions& options) {
  const Program::Handle& handle = *program.handle_;
  if (static_cast<int>(inputs.size()) != handle.inputs) {
    return absl::InvalidArgumentError(absl::StrCat("program ", handle.name, " has ", handle.inputs,
                                                   " inputs, but the call gives ", inputs.size()));
  }
  ClientCore& core = *impl_->core;
  v1::ConnectRequest request;
  v1::Run* run = request.mutable_run();
  run->set_program(handle.number);
  run->set_report_time(options.report_time);
  for (const auto& [name, value] : options.bindings) (*run->mutable_bindings())[name] = value;
  for (const Tensor& input : inputs) run->add_inputs(input.handle());
  std::vector<Tensor> outputs;
  // The client chooses the handles, so nothing here waits for the daemon.
  for (int i = 0; i < handle.outputs; ++i) {
    const uint64_t number = core.next_number++;
    run->add_outputs(number);
    outputs.push_back(Tensor(std::make_shared<Tensor::Handle>(impl_->core, number)));
  }
  Future<RunReport>::Promise done;
  core.stream.Send(std::move(request), [done](absl::StatusOr<v1::Result> result) {
    if (result.ok()) {
      done.Set(RunReport{.device_seconds = result->device_seconds()});
    } else {
      done.Set(result.status());
    }
  });
  return RunResult{.outputs = std::move(outputs), .done = done.future()};
}

absl::StatusOr<std::string> Client::DownloadBytes(const Tensor& tensor) {
  ClientCore& core = *impl_->core;
  absl::StatusOr<std::string> bytes;
  const absl::Status status = core.stream.ThroughCuts([&] {
    // Downloads do not use the stream, so the daemon is told for which operations to wait first.
    bytes = core.blobs.Download(tensor.handle(), core.stream.last_sequence());
    return bytes.status();
  });
  if (!status.ok()) return status;
  return bytes;
}

Future<std::string> Client::Read(const Tensor& tensor) {
  v1::ConnectRequest request;
  request.mutable_read()->set_handle(tensor.handle());
  Future<std::string>::Promise bytes;
  impl_->core->stream.Send(std::move(request), [bytes](absl::StatusOr<v1::Result> result) {
    if (result.ok()) {
      bytes.Set(std::move(*result->mutable_data()));
    } else {
      bytes.Set(result.status());
    }
  });
  return bytes.future();
}

absl::Status Client::Barrier() {
  v1::ConnectRequest request;
  request.mutable_barrier();
  Future<v1::Result>::Promise reached;
  impl_->core->stream.Send(std::move(request), [reached](absl::StatusOr<v1::Result> result) {
    reached.Set(std::move(result));
  });
  return reached.future().Get().status();
}

absl::Status Client::Cancel() {
  v1::ConnectRequest request;
  request.mutable_cancel()->set_first(1);
  Future<v1::Result>::Promise taken;
  impl_->core->stream.Send(std::move(request), [taken](absl::StatusOr<v1::Result> result) {
    // Without an error it is answered in stream order, which nothing waits for.
    if (!result.ok()) taken.Set(std::move(result));
  });
  const Future<v1::Result> refused = taken.future();
  return refused.Ready() ? refused.Get().status() : absl::OkStatus();
}

std::string ErrorReason(const absl::Status& status) { return client::ReasonOf(status); }

}  // namespace kiln
