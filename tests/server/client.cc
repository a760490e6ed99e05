#include "tests/server/client.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "kiln/v1/error.pb.h"
#include "tests/eventually.h"

namespace kiln::testing {
namespace {

// Streams and downloads end after this time, so that a test reports a missing answer.
constexpr std::chrono::minutes kAnswerTime{10};

v1::Node* AddNode(v1::Graph* graph, const char* op, const std::vector<uint32_t>& operands) {
  v1::Node* node = graph->add_nodes();
  node->set_op(op);
  for (const uint32_t operand : operands) node->add_operands(operand);
  return node;
}

v1::Dim* AddInput(v1::Graph* graph, int index) {
  v1::Node* node = AddNode(graph, "input", {});
  node->set_dtype(v1::DTYPE_FLOAT32);
  (*node->mutable_attributes())["index"].set_i(index);
  return (*node->mutable_attributes())["shape"].mutable_shape()->add_dims();
}

v1::Graph TwoInputs(int64_t size) {
  v1::Graph graph;
  graph.set_op_set_version(1);
  for (int i = 0; i < 2; ++i) AddInput(&graph, i)->set_size(size);
  return graph;
}

}  // namespace

Stream::Stream(v1::SessionService::Stub& stub, const std::string& session_id, uint64_t acknowledged)
    : stream_(stub.Connect(&context_)) {
  Attach(session_id, acknowledged);
}

Stream::Stream(std::unique_ptr<v1::SessionService::Stub> stub, const std::string& session_id,
               uint64_t acknowledged)
    : stub_(std::move(stub)) {
  context_.set_deadline(std::chrono::system_clock::now() + kAnswerTime);
  stream_ = stub_->Connect(&context_);
  Attach(session_id, acknowledged);
}

void Stream::Attach(const std::string& session_id, uint64_t acknowledged) {
  v1::ConnectRequest attach = AttachTo(session_id);
  attach.mutable_attach()->set_takes_more(true);
  attach.set_acknowledged(acknowledged);
  stream_->Write(attach);
  v1::ConnectResponse response;
  if (!stream_->Read(&response)) return;
  attached_ = true;
  last_sequence_ = response.attached().last_sequence();
  next_sequence_ = last_sequence_ + 1;
}

Stream::~Stream() { Drop(); }

uint64_t Stream::Send(v1::ConnectRequest request, uint64_t sequence) {
  if (sequence == 0) sequence = next_sequence_++;
  request.set_sequence(sequence);
  stream_->Write(request);
  return sequence;
}

uint64_t Stream::SendTogether(std::vector<v1::ConnectRequest> requests, uint64_t sequence) {
  if (sequence == 0) {
    sequence = next_sequence_;
    next_sequence_ += requests.size();
  }
  v1::ConnectRequest message = std::move(requests.front());
  message.set_sequence(sequence);
  for (size_t i = 1; i < requests.size(); ++i) {
    requests[i].set_sequence(++sequence);
    *message.add_more() = std::move(requests[i]);
  }
  stream_->Write(message);
  return sequence;
}

bool Stream::ReadOne() {
  v1::ConnectResponse response;
  if (finished_ || !stream_->Read(&response)) return false;
  ++messages_;
  Keep(response.result());
  for (const v1::Result& result : response.more()) Keep(result);
  return true;
}

void Stream::Keep(const v1::Result& result) {
  ++received_[result.sequence()];
  answers_[result.sequence()] = result;
}

v1::Result Stream::Answer(uint64_t sequence) {
  while (answers_.count(sequence) == 0) {
    if (ReadOne()) continue;
    v1::Result none;
    none.mutable_error()->set_code(-1);
    return none;
  }
  return answers_[sequence];
}

grpc::Status Stream::End() {
  while (ReadOne()) {
  }
  finished_ = true;
  return stream_->Finish();
}

void Stream::Drop() {
  if (finished_) return;
  context_.TryCancel();
  v1::ConnectResponse response;
  while (stream_->Read(&response)) {
  }
  finished_ = true;
  stream_->Finish();
}

namespace {

// Adds the token to every call of a channel.
class TokenAdder : public grpc::experimental::Interceptor {
 public:
  explicit TokenAdder(const std::string& token) : token_(token) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* call) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (call->QueryInterceptionHookPoint(Point::PRE_SEND_INITIAL_METADATA))
      call->GetSendInitialMetadata()->insert({"authorization", "Bearer " + token_});
    call->Proceed();
  }

 private:
  const std::string token_;
};
class TokenAdderFactory : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenAdderFactory(std::string token) : token_(std::move(token)) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenAdder(token_);
  }

 private:
  const std::string token_;
};

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const Client::Login& login) {
  grpc::ChannelArguments arguments;
  // Gives each client its own connection, as in separate processes.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> adders;
  if (!login.token.empty()) adders.push_back(std::make_unique<TokenAdderFactory>(login.token));
  return grpc::experimental::CreateCustomChannelWithInterceptors(address, login.credentials,
                                                                 arguments, std::move(adders));
}

}  // namespace

Client::Client(const std::string& address, uint32_t lease_seconds, const std::string& device,
               uint32_t snapshot_seconds)
    : channel(OpenChannel(address, {})) {
  Open(lease_seconds, device, snapshot_seconds);
}

Client::Client(const std::string& address, const Login& login, uint32_t lease_seconds,
               uint32_t snapshot_seconds)
    : login(login), channel(OpenChannel(address, login)) {
  Open(lease_seconds, "", snapshot_seconds);
}

void Client::Open(uint32_t lease_seconds, const std::string& device, uint32_t snapshot_seconds) {
  sessions = v1::SessionService::NewStub(channel);
  blobs = v1::BlobService::NewStub(channel);
  programs = v1::ProgramService::NewStub(channel);
  admin = v1::AdminService::NewStub(channel);
  devices = v1::DeviceService::NewStub(channel);
  grpc::ClientContext context;
  v1::OpenSessionRequest request;
  request.mutable_client()->set_name("test");
  request.set_lease_seconds(lease_seconds);
  request.set_device(device);
  request.set_snapshot_seconds(snapshot_seconds);
  opened = sessions->OpenSession(&context, request, &session);
}

grpc::Status Client::Upload(const std::string& blob, const std::string& data, size_t chunk) {
  grpc::ClientContext context;
  v1::UploadResponse response;
  auto writer = blobs->Upload(&context, &response);
  v1::UploadRequest request;
  request.mutable_header()->set_session_id(session.session_id());
  request.mutable_header()->set_blob(blob);
  request.mutable_header()->set_size_bytes(data.size());
  for (size_t offset = 0; offset < data.size(); offset += chunk) {
    request.set_data(data.substr(offset, chunk));
    if (!writer->Write(request)) break;
    request.clear_header();
  }
  writer->WritesDone();
  return writer->Finish();
}

grpc::Status Client::Download(uint64_t handle, uint64_t after_sequence, std::string* data) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAnswerTime);
  v1::DownloadRequest request;
  request.set_session_id(session.session_id());
  request.set_handle(handle);
  request.set_after_sequence(after_sequence);
  auto reader = blobs->Download(&context, request);
  v1::DownloadResponse response;
  while (reader->Read(&response)) data->append(response.data());
  return reader->Finish();
}

std::unique_ptr<Stream> Reattach(const std::string& address, const Client& client,
                                 uint64_t acknowledged, grpc::Status* why) {
  std::unique_ptr<Stream> stream;
  grpc::Status status;
  Eventually([&] {
    stream =
        std::make_unique<Stream>(v1::SessionService::NewStub(OpenChannel(address, client.login)),
                                 client.session.session_id(), acknowledged);
    if (stream->attached()) return true;
    status = stream->End();
    stream.reset();
    return status.error_code() != grpc::UNAVAILABLE ||
           !(Reason(status).empty() || Reason(status) == "RESTARTING");
  });
  if (stream == nullptr && why != nullptr) *why = status;
  return stream;
}

Taken TakeOver(v1::SessionService::Stub& sessions, const std::string& name) {
  Taken taken;
  v1::AttachSessionRequest request;
  request.set_name(name);
  Eventually([&] {
    grpc::ClientContext context;
    taken.status = sessions.AttachSession(&context, request, &taken.session);
    return Reason(taken.status) != "RESTARTING";
  });
  return taken;
}

grpc::Status TryBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const grpc::ByteBuffer& request, grpc::ClientContext& context) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  return status;
}

int Scrape(const std::string& url, const std::string& password, const std::string& options) {
  const std::string login = password.empty() ? "" : absl::StrCat("-u prometheus:", password, " ");
  return WEXITSTATUS(std::system(
      absl::StrCat("curl -sf -o /dev/null ", login, options, " ", url, "/metrics").c_str()));
}

std::string AddUser(Client& admin, const std::string& name, const std::string& role,
                    const std::vector<std::string>& identities) {
  grpc::ClientContext context;
  v1::AddUserRequest request;
  request.set_name(name);
  request.set_role(role);
  request.mutable_identities()->Assign(identities.begin(), identities.end());
  v1::AddUserResponse response;
  if (!admin.admin->AddUser(&context, request, &response).ok()) return "";
  return response.user().name() == name ? response.token() : "";
}

v1::ListSessionsResponse Sessions(const std::string& address) {
  Client client(address);
  grpc::ClientContext context;
  v1::ListSessionsResponse sessions;
  client.sessions->ListSessions(&context, {}, &sessions);
  return sessions;
}

v1::ConnectRequest AttachTo(const std::string& session_id) {
  v1::ConnectRequest request;
  request.mutable_attach()->set_session_id(session_id);
  return request;
}

v1::ConnectRequest Define(uint64_t program, const v1::Graph& graph) {
  v1::ConnectRequest request;
  request.mutable_define_program()->set_program(program);
  *request.mutable_define_program()->mutable_graph() = graph;
  return request;
}

v1::ConnectRequest RunProgram(uint64_t program, const std::vector<uint64_t>& inputs,
                              const std::vector<uint64_t>& outputs) {
  v1::ConnectRequest request;
  request.mutable_run()->set_program(program);
  request.mutable_run()->mutable_inputs()->Add(inputs.begin(), inputs.end());
  request.mutable_run()->mutable_outputs()->Add(outputs.begin(), outputs.end());
  return request;
}

v1::ConnectRequest Write(uint64_t handle, const std::vector<float>& values) {
  v1::ConnectRequest request;
  request.mutable_write()->set_handle(handle);
  request.mutable_write()->set_dtype(v1::DTYPE_FLOAT32);
  request.mutable_write()->add_shape(static_cast<int64_t>(values.size()));
  request.mutable_write()->set_data(values.data(), values.size() * sizeof(float));
  return request;
}

v1::ConnectRequest WriteBlob(uint64_t handle, const std::string& blob, int64_t floats) {
  v1::ConnectRequest request;
  request.mutable_write()->set_handle(handle);
  request.mutable_write()->set_dtype(v1::DTYPE_FLOAT32);
  request.mutable_write()->add_shape(floats);
  request.mutable_write()->set_blob(blob);
  return request;
}

v1::ConnectRequest WritePieces(uint64_t handle, const std::vector<std::string>& blobs,
                               int64_t floats) {
  v1::ConnectRequest request = WriteBlob(handle, "", floats);
  v1::BlobList& pieces = *request.mutable_write()->mutable_pieces();
  pieces.mutable_names()->Assign(blobs.begin(), blobs.end());
  return request;
}

v1::ConnectRequest Read(uint64_t handle) {
  v1::ConnectRequest request;
  request.mutable_read()->set_handle(handle);
  return request;
}

v1::ConnectRequest Release(const std::vector<uint64_t>& handles) {
  v1::ConnectRequest request;
  request.mutable_release()->mutable_handles()->Add(handles.begin(), handles.end());
  return request;
}

v1::ConnectRequest CancelFrom(uint64_t first) {
  v1::ConnectRequest request;
  request.mutable_cancel()->set_first(first);
  return request;
}

v1::ConnectRequest Detach(const std::string& name, uint32_t keep_seconds, const Names& tensors) {
  v1::ConnectRequest request;
  request.mutable_detach()->set_name(name);
  request.mutable_detach()->set_keep_seconds(keep_seconds);
  for (const auto& [tensor, handle] : tensors) {
    v1::NamedTensor* named = request.mutable_detach()->add_tensors();
    named->set_name(tensor);
    named->set_handle(handle);
  }
  return request;
}

v1::ConnectRequest Barrier() {
  v1::ConnectRequest request;
  request.mutable_barrier();
  return request;
}

v1::Graph AddGraph(int64_t size) {
  v1::Graph graph = TwoInputs(size);
  AddNode(&graph, "add", {0, 1});
  graph.add_outputs(2);
  return graph;
}

v1::Graph NegGraph(int64_t size) {
  v1::Graph graph;
  graph.set_op_set_version(1);
  AddInput(&graph, 0)->set_size(size);
  AddNode(&graph, "neg", {0});
  graph.add_outputs(1);
  return graph;
}

v1::Graph SumOfSines(int64_t size) {
  v1::Graph graph;
  graph.set_op_set_version(1);
  v1::Node* iota = AddNode(&graph, "iota", {});
  iota->set_dtype(v1::DTYPE_FLOAT32);
  (*iota->mutable_attributes())["shape"].mutable_shape()->add_dims()->set_size(size);
  AddNode(&graph, "sin", {0});
  AddNode(&graph, "sum", {1});
  graph.add_outputs(2);
  return graph;
}

v1::Graph ProductAndSum(int64_t size) {
  v1::Graph graph = TwoInputs(size);
  AddNode(&graph, "mul", {0, 1});
  AddNode(&graph, "sum", {2});
  graph.add_outputs(2);
  graph.add_outputs(3);
  return graph;
}

v1::Graph AccumulateGraph(int64_t size) {
  v1::Graph graph = AddGraph(size);
  v1::Update* update = graph.add_updates();
  update->set_input(0);
  update->set_value(2);
  return graph;
}

v1::Graph VariableAddGraph(int64_t max) {
  v1::Graph graph;
  graph.set_op_set_version(1);
  v1::Variable* variable = graph.add_variables();
  variable->set_name("n");
  variable->set_min(1);
  variable->set_max(max);
  for (int i = 0; i < 2; ++i) AddInput(&graph, i)->set_variable("n");
  AddNode(&graph, "add", {0, 1});
  graph.add_outputs(2);
  return graph;
}

void DefineCounter(Stream& stream) {
  stream.Call(Define(1, AccumulateGraph(1)));
  stream.Call(Write(1, {0}));
  stream.Call(Write(2, {1}));
}

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::string Reason(const v1::Status& status) {
  v1::ErrorInfo info;
  if (status.details_size() == 0 || !info.ParseFromString(status.details(0).value())) return "";
  return info.domain() == "kiln" ? info.reason() : "";
}

std::string Reason(const grpc::Status& status) {
  v1::Status proto;
  if (!proto.ParseFromString(status.error_details())) return "";
  return Reason(proto);
}

}  // namespace kiln::testing
