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

#include "absl/time/time.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "kiln/v1/blob.grpc.pb.h"
#include "kiln/v1/device.grpc.pb.h"
#include "kiln/v1/program.grpc.pb.h"
#include "kiln/v1/session.grpc.pb.h"

namespace kiln::testing {

// Longer than any test: a wait ends only because its event has occurred.
inline constexpr absl::Duration kPatience = absl::Hours(1);

// The blob "1st!", named by its SHA-256.
inline constexpr char kFirstBlob[] =
    "sha256:d76ad5e094028ac5a7d13f2c3d0492c96e675135bdc2c002d34919616e118a76";

// One Connect stream. Not thread-safe, but one thread may send while another reads.
class Stream {
 public:
  Stream(v1::SessionService::Stub& stub, const std::string& session_id, uint64_t acknowledged = 0);
  // Opens its own connection, for ten minutes at most.
  Stream(std::unique_ptr<v1::SessionService::Stub> stub, const std::string& session_id,
         uint64_t acknowledged);
  ~Stream();

  // False if the stream ended before it attached to the session.
  bool attached() const { return attached_; }
  // The last_sequence in Attached.
  uint64_t last_sequence() const { return last_sequence_; }
  // Sends the operation under the next number (or the given one) and returns the number.
  uint64_t Send(v1::ConnectRequest request, uint64_t sequence = 0);
  // Sends several in one message, the first under the next number (or the given one); returns the
  // last number.
  uint64_t SendTogether(std::vector<v1::ConnectRequest> requests, uint64_t sequence = 0);
  // Waits for the answer to an operation. Returns code -1 if the stream ended without it.
  v1::Result Answer(uint64_t sequence);
  v1::Result Call(v1::ConnectRequest request) { return Answer(Send(std::move(request))); }
  // Reads until the stream ends.
  grpc::Status End();
  // Drops the connection, as a lost network does.
  void Drop();
  // The number of times that each answer arrived on this stream.
  const std::map<uint64_t, int>& received() const { return received_; }
  // The answers so far, by sequence.
  const std::map<uint64_t, v1::Result>& answers() const { return answers_; }
  // For long streams, whose answers would fill the memory.
  void ForgetAnswers() {
    answers_.clear();
    received_.clear();
  }
  // The number of messages in which they arrived.
  int messages() const { return messages_; }
  uint64_t next_sequence() const { return next_sequence_; }
  void set_next_sequence(uint64_t sequence) { next_sequence_ = sequence; }

 private:
  void Attach(const std::string& session_id, uint64_t acknowledged);
  bool ReadOne();
  void Keep(const v1::Result& result);

  grpc::ClientContext context_;
  std::unique_ptr<v1::SessionService::Stub> stub_;  // if it opened its own connection
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
  // Connects over any channel; every call carries the token, if there is one.
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

// Opens a stream that attaches to a client's session, also after its daemon has been restarted.
// Opens its own connection and retries for as long as the daemon asks for it. Returns null, and
// sets `*why` unless it is null, if the session is lost.
std::unique_ptr<Stream> Reattach(const std::string& address, const Client& client,
                                 uint64_t acknowledged = 0, grpc::Status* why = nullptr);

struct Taken {
  grpc::Status status;
  v1::AttachSessionResponse session;
};
// Takes over the session that was detached under this name. The daemon first executes what the
// previous client has sent, and answers RESTARTING until then; this function repeats the call.
Taken TakeOver(v1::SessionService::Stub& sessions, const std::string& name);

// Makes a call of which only the status is of interest.
template <typename Service, typename Stub, typename Request, typename Response>
grpc::Status Try(const std::unique_ptr<Stub>& service,
                 grpc::Status (Service::*method)(grpc::ClientContext*, const Request&, Response*),
                 const Request& request) {
  grpc::ClientContext context;
  Response response;
  return (*service.*method)(&context, request, &response);
}
// The same for a method given by its name, "/kiln.v1.SessionService/OpenSession", with any bytes.
grpc::Status TryBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const grpc::ByteBuffer& request, grpc::ClientContext& context);

// Returns the exit status of curl on /metrics: 0, or 22 for an HTTP error. `password`: empty for
// none. `url`: "http://127.0.0.1:7434"; `options`: for curl.
int Scrape(const std::string& url, const std::string& password, const std::string& options = "");

// Has an admin add a user with a role ("": the default). Returns the token; empty if it failed.
std::string AddUser(Client& admin, const std::string& name, const std::string& role = "",
                    const std::vector<std::string>& identities = {});

// Returns the sessions that the caller may see.
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
// The sum of the sines of 0, 1, … size - 1: reads no memory.
v1::Graph SumOfSines(int64_t size);
// The product of two vectors and its sum, which share a kernel unless it is decided otherwise.
v1::Graph ProductAndSum(int64_t size);
// x + y over a dimension "n" of 1 to `max`.
v1::Graph VariableAddGraph(int64_t max);

// Defines program 1, which adds value 2 to value 1, and writes 0 to value 1 and 1 to value 2. Waits
// for the answers.
void DefineCounter(Stream& stream);
inline constexpr uint64_t kCounterOperations = 3;  // the number of sequence numbers that it uses

std::vector<float> Floats(const std::string& bytes);
// The reason in a Status' ErrorInfo; empty if there is none.
std::string Reason(const v1::Status& status);
std::string Reason(const grpc::Status& status);

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_CLIENT_H_
