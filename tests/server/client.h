// A client for tests: plain gRPC, one stream, answers kept by sequence number.
#ifndef KILN_TESTS_SERVER_CLIENT_H_
#define KILN_TESTS_SERVER_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/v1/admin.grpc.pb.h"
#include "kiln/v1/blob.grpc.pb.h"
#include "kiln/v1/device.grpc.pb.h"
#include "kiln/v1/program.grpc.pb.h"
#include "kiln/v1/session.grpc.pb.h"

namespace kiln::testing {

// One Connect stream. Not thread-safe, but one thread may send while another reads.
class Stream {
 public:
  Stream(v1::SessionService::Stub& stub, const std::string& session_id, uint64_t acknowledged = 0);
  // With a connection of its own, for ten minutes at most.
  Stream(std::unique_ptr<v1::SessionService::Stub> stub, const std::string& session_id,
         uint64_t acknowledged);
  ~Stream();

  // False: the stream ended before the session was attached to.
  bool attached() const { return attached_; }
  // What Attached said.
  uint64_t last_sequence() const { return last_sequence_; }
  // Sends the operation under the next number (or the one given) and returns the number.
  uint64_t Send(v1::ConnectRequest request, uint64_t sequence = 0);
  // Several in one message, the first under the next number (or the one given); returns the last's.
  uint64_t SendTogether(std::vector<v1::ConnectRequest> requests, uint64_t sequence = 0);
  // Waits for the answer to an operation. An answer that never comes (the stream ended) has code
  // -1.
  v1::Result Answer(uint64_t sequence);
  v1::Result Call(v1::ConnectRequest request) { return Answer(Send(std::move(request))); }
  // Reads until the stream ends.
  grpc::Status End();
  // Drops the connection, as a lost network does.
  void Drop();
  // How often each answer came on this stream.
  const std::map<uint64_t, int>& received() const { return received_; }
  // The answers so far, by sequence.
  const std::map<uint64_t, v1::Result>& answers() const { return answers_; }
  // In how many messages they came.
  int messages() const { return messages_; }
  uint64_t next_sequence() const { return next_sequence_; }
  void set_next_sequence(uint64_t sequence) { next_sequence_ = sequence; }

 private:
  void Attach(const std::string& session_id, uint64_t acknowledged);
  bool ReadOne();
  void Keep(const v1::Result& result);

  grpc::ClientContext context_;
  std::unique_ptr<v1::SessionService::Stub> stub_;  // if it has one of its own
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConnectRequest, v1::ConnectResponse>> stream_;
  bool attached_ = false;
  uint64_t last_sequence_ = 0;
  uint64_t next_sequence_ = 1;
  std::map<uint64_t, v1::Result> answers_;
  std::map<uint64_t, int> received_;
  int messages_ = 0;
  bool finished_ = false;
};

// A connection with a session.
struct Client {
  explicit Client(const std::string& address, uint32_t lease_seconds = 0,
                  const std::string& device = "", uint32_t snapshot_seconds = 0);
  // Over any channel; every call carries the token, if there is one.
  struct Login {
    std::string token{};
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  };
  Client(const std::string& address, const Login& login, uint32_t lease_seconds = 0,
         uint32_t snapshot_seconds = 0);

  const Login login{};
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::SessionService::Stub> sessions;
  std::unique_ptr<v1::BlobService::Stub> blobs;
  std::unique_ptr<v1::ProgramService::Stub> programs;
  std::unique_ptr<v1::AdminService::Stub> admin;
  std::unique_ptr<v1::DeviceService::Stub> devices;
  v1::OpenSessionResponse session;
  grpc::Status opened;

 private:
  void Open(uint32_t lease_seconds, const std::string& device, uint32_t snapshot_seconds = 0);

 public:
  std::unique_ptr<Stream> Connect(uint64_t acknowledged = 0) {
    return std::make_unique<Stream>(*sessions, session.session_id(), acknowledged);
  }
  grpc::Status Upload(const std::string& blob, const std::string& data, size_t chunk = 1 << 20);
  grpc::Status Download(uint64_t handle, uint64_t after_sequence, std::string* data);
};

// A stream that attaches to a client's session, also after its daemon has been restarted: by a
// connection of its own, as often as it is told to come back. Null if the session is lost; `why`,
// if not null, is told.
std::unique_ptr<Stream> Reattach(const std::string& address, const Client& client,
                                 uint64_t acknowledged = 0, grpc::Status* why = nullptr);

struct Taken {
  grpc::Status status;
  v1::AttachSessionResponse session;
};
// Takes over the session that was left under this name. The daemon executes first what its holder
// has sent, and answers RESTARTING until then: the call is repeated as often as it does.
Taken TakeOver(v1::SessionService::Stub& sessions, const std::string& name);

// A call of whose answer only the status matters.
template <typename Service, typename Stub, typename Request, typename Response>
grpc::Status Try(const std::unique_ptr<Stub>& service,
                 grpc::Status (Service::*method)(grpc::ClientContext*, const Request&, Response*),
                 const Request& request) {
  grpc::ClientContext context;
  Response response;
  return (*service.*method)(&context, request, &response);
}
// The same for a method by its name, "/kiln.v1.SessionService/OpenSession", with any bytes.
grpc::Status TryBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const grpc::ByteBuffer& request, grpc::ClientContext& context);

// The exit status of curl that scrapes /metrics there: 0, or 22 for an HTTP error. `password`:
// empty for none. `url`: "http://127.0.0.1:7434"; `options` for curl.
int Scrape(const std::string& url, const std::string& password, const std::string& options = "");

// A user whom an admin adds; "" is the usual role. The token; empty if it did not work.
std::string AddUser(Client& admin, const std::string& name, const std::string& role = "",
                    const std::vector<std::string>& identities = {});

// Those that the caller may see.
v1::ListSessionsResponse Sessions(const std::string& address);

// Requests.
v1::ConnectRequest AttachTo(const std::string& session_id);
v1::ConnectRequest Define(uint64_t program, const v1::Graph& graph);
v1::ConnectRequest RunProgram(uint64_t program, const std::vector<uint64_t>& inputs,
                              const std::vector<uint64_t>& outputs);
v1::ConnectRequest Write(uint64_t handle, const std::vector<float>& values);
v1::ConnectRequest WriteBlob(uint64_t handle, const std::string& blob, int64_t floats);
v1::ConnectRequest WritePieces(uint64_t handle, const std::vector<std::string>& blobs,
                               int64_t floats);
v1::ConnectRequest Read(uint64_t handle);
v1::ConnectRequest Release(const std::vector<uint64_t>& handles);
v1::ConnectRequest Barrier();
v1::ConnectRequest CancelFrom(uint64_t first);
using Names = std::vector<std::pair<std::string, uint64_t>>;  // of tensors, and their handles
v1::ConnectRequest Detach(const std::string& name, uint32_t keep_seconds, const Names& tensors);

// Graphs on vectors of `size` floats: x + y; the negation of x; x + y with x replaced by it.
v1::Graph AddGraph(int64_t size);
v1::Graph NegGraph(int64_t size);
v1::Graph AccumulateGraph(int64_t size);
// The sum of the sines of 0, 1, … size - 1: nothing that lies in memory.
v1::Graph SumOfSines(int64_t size);
// x + y over a dimension "n" of 1 to `max`.
v1::Graph VariableAddGraph(int64_t max);

// Program 1, which adds value 2 to value 1: value 1 is 0, value 2 is 1. All of it is answered.
void DefineCounter(Stream& stream);
inline constexpr uint64_t kCounterOperations = 3;  // the sequences that it takes

std::vector<float> Floats(const std::string& bytes);
// The reason in a Status' ErrorInfo; empty if there is none.
std::string Reason(const v1::Status& status);
std::string Reason(const grpc::Status& status);

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_CLIENT_H_
