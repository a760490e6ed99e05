#include "server/rpc/server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <sys/resource.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/check/check.h"
#include "server/auth/accounts.h"
#include "server/clock/clock.h"
#include "server/log/log.h"
#include "server/log/rate_limit.h"
#include "server/relay/relay.h"
#include "server/relay/tls_reloader.h"
#include "server/rpc/connections/acceptors.h"
#include "server/rpc/connections/call_meter.h"
#include "server/rpc/connections/credentials.h"
#include "server/rpc/connections/peer_socket.h"
#include "server/rpc/connections/tcp_socket.h"
#include "server/rpc/connections/waiting_room.h"
#include "server/rpc/connections/watch.h"
#include "server/rpc/deadline.h"

namespace kiln::rpc {
namespace {

// A quiet connection gets a ping after this time.
constexpr int kPingAfterMilliseconds = 20'000;

void SetUpOnce() {
  // Both are global to the process, in which tests run several daemons, and must precede the first
  // builder.
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    // Keeps gRPC's threads until the process ends. Without this reference, the last server's
    // destructor joins them. That takes up to 10 s if a client was slow to read an answer, since
    // the thread that writes the rest polls for so long.
    grpc_init();
  });
}

// gRPC's default is ten seconds.
constexpr int kPollMilliseconds = 1000;

// A client that needs more concurrent calls opens another connection.
constexpr int kConnectionStreamsMax = 1000;

// The maximum time for clients to read what was sent before the server ends.
constexpr absl::Duration kLastAnswers = absl::Seconds(2);

// The maximum time for a client to complete its handshake; shorter if connections may be idle only
// for a shorter time.
constexpr absl::Duration kHandshakeTime = absl::Seconds(20);

void CloseDeadConnections(grpc::ServerBuilder& builder, absl::Duration idle,
                          absl::Duration ping_answer) {
  const auto milliseconds = [](absl::Duration time) {
    return static_cast<int>(absl::ToInt64Milliseconds(time));
  };
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             milliseconds(std::min(kHandshakeTime, idle)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(idle));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingAfterMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(ping_answer));
}

void Configure(grpc::ServerBuilder& builder, int64_t transport_bytes) {
  builder.SetResourceQuota(
      grpc::ResourceQuota("kilnd").Resize(static_cast<size_t>(transport_bytes)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kConnectionStreamsMax);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMessageBytesMax));
  // gRPC would decompress a message to any size before the daemon counts its bytes.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  // Unlimited: results are as large as the user's tensors.
  builder.SetMaxSendMessageSize(-1);
  // With SO_REUSEPORT, gRPC's default on Linux, two daemons would share a port without noticing.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A thread that polls for calls may miss the server's end, and checks again after this time.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::CQ_TIMEOUT_MSEC,
                              kPollMilliseconds);
  // The Python client pings every 20 seconds. By default gRPC disconnects clients that ping more
  // often than every five minutes.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

uint64_t OpenFilesMax() {
  rlimit limit{};
  constexpr uint64_t kUsual = 1024;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : kUsual;
}

std::string WithPort(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace

struct Server::Implementation {
  std::unique_ptr<relay::Relay> MakeRelay(const ServiceParts& parts, const Options& options);
  std::unique_ptr<ConnectionWatch> MakeWatch(const ServiceParts& parts, const Options& options);
  std::unique_ptr<WaitingRoom> MakeWaitingRoom(const ServiceParts& parts, const Options& options);
  absl::Status Listen(const std::string& address, const Options& options);
  void LogRefusal(const relay::Peer& peer, const absl::Status& why, absl::Time now);

  OpenCalls* open_calls;
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::vector<std::string> listening;
  std::unique_ptr<relay::TlsReloader> tls;
  absl::Mutex refused_mutex;
  log::RateLimit refused ABSL_GUARDED_BY(refused_mutex){30, absl::Minutes(1)};
  std::unique_ptr<relay::Relay> relay;
  std::unique_ptr<ConnectionWatch> watch;  // ends connections of the relay
  std::unique_ptr<Acceptors> acceptors;
  std::unique_ptr<grpc::Server> server;  // after the members that it uses
  std::unique_ptr<WaitingRoom> waiting_room;
  // Last: they give connections to the relay and the waiting room.
  std::vector<std::unique_ptr<PeerSocket>> sockets;
  std::vector<std::unique_ptr<TcpSocket>> ports;
};

std::unique_ptr<relay::Relay> Server::Implementation::MakeRelay(const ServiceParts& parts,
                                                                const Options& options) {
  return std::make_unique<relay::Relay>(
      relay::Relay::Options{.handshake = std::min(kHandshakeTime, options.idle_connection),
                            .limits = relay::ConnectionLimits::ForFiles(OpenFilesMax()),
                            .now = SteadyNow,
                            .hand_over =
                                [this](const relay::ConnectionPointer& connection, int file) {
                                  watch->Add(connection);
                                  acceptors->HandOver(connection->peer(), file);
                                },
                            .on_refused =
                                [this, metrics = parts.metrics, now = parts.clock.steady](
                                    const relay::Peer& peer, const absl::Status& why) {
                                  metrics->ConnectionRefused();
                                  LogRefusal(peer, why, now());
                                }});
}

std::unique_ptr<WaitingRoom> Server::Implementation::MakeWaitingRoom(const ServiceParts& parts,
                                                                     const Options& options) {
  // They are among the files that the relay's limits leave for everything else.
  constexpr uint64_t kWaitingMin = 8, kWaitingMax = 64, kShareOfFiles = 16;
  return std::make_unique<WaitingRoom>(WaitingRoom::Options{
      .of_account_max = std::clamp(OpenFilesMax() / kShareOfFiles, kWaitingMin, kWaitingMax),
      .patience = std::min(kHandshakeTime, options.idle_connection),
      .now = SteadyNow,
      .take = [this](int file, const relay::Peer& peer) { acceptors->HandOver(peer, file); },
      .on_refused =
          [this, metrics = parts.metrics, now = parts.clock.steady](const relay::Peer& peer,
                                                                    const absl::Status& why) {
            metrics->ConnectionRefused();
            LogRefusal(peer, why, now());
          }});
}

std::unique_ptr<ConnectionWatch> Server::Implementation::MakeWatch(const ServiceParts& parts,
                                                                   const Options& options) {
  return std::make_unique<ConnectionWatch>(ConnectionWatch::Options{
      .bounds = {.call_bytes_max = kMessageBytesMax, .bytes_together_max = options.transport_bytes},
      .now = parts.clock.steady,
      .abort = [this](const relay::Connection& connection) { relay->Abort(connection); },
      .set_user = [this](relay::Connection& connection,
                         const std::string& user) { relay->SetUser(connection, user); },
      .user_of =
          [access = parts.access](const grpc::ServerContextBase& call) {
            const auto caller = access->Caller(call);
            return caller.ok() ? caller->user : std::string();
          }});
}

absl::Status Server::Implementation::Listen(const std::string& address, const Options& options) {
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    auto socket = PeerSocket::Listen(std::string(path), options.system_users,
                                     [this](int file, relay::Peer peer) {
                                       // Callers who could stop the daemon anyway bypass the relay.
                                       if (auth::RunsDaemon(peer.user_id))
                                         return waiting_room->Add(file, std::move(peer));
                                       relay->Add(file, std::move(peer), nullptr);
                                     });
    if (!socket.ok()) return socket.status();
    listening.push_back(address);
    sockets.push_back(*std::move(socket));
    return absl::OkStatus();
  }
  auto port = TcpSocket::Listen(address, [this](int file, relay::Peer peer) {
    relay::TlsContext context = tls->current();
    peer.entrance = context == nullptr ? relay::Peer::kPort : relay::Peer::kTlsPort;
    relay->Add(file, std::move(peer), std::move(context));
  });
  if (!port.ok()) return port.status();
  listening.push_back(WithPort(address, (*port)->port()));
  ports.push_back(*std::move(port));
  return absl::OkStatus();
}

void Server::Implementation::LogRefusal(const relay::Peer& peer, const absl::Status& why,
                                        absl::Time now) {
  std::optional<int64_t> held_back;
  {
    absl::MutexLock lock(&refused_mutex);
    held_back = refused.Admit(now);
  }
  if (!held_back) return;
  log::Warning("connection_refused", {{"peer", peer.address},
                                      {"why", std::string(why.message())},
                                      {"unlogged", absl::StrCat(*held_back)}});
}

Server::Server(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {
  KILN_CHECK(implementation_->server != nullptr && implementation_->relay != nullptr);
}
Server::~Server() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Parts& parts, const Options& options) {
  const std::vector<std::string>& addresses = options.addresses;
  if (absl::Status status =
          CheckListening(addresses, options.tls, parts.admin.users->nobody_known());
      !status.ok())
    return status;
  SetUpOnce();
  auto implementation = std::make_unique<Implementation>();
  implementation->open_calls = parts.sessions.open_calls;
  auto tls = relay::TlsReloader::Load(options.tls);
  if (!tls.ok()) return tls.status();
  implementation->tls = *std::move(tls);
  grpc::ServerBuilder builder;
  Configure(builder, options.transport_bytes);
  CloseDeadConnections(builder, options.idle_connection, options.ping_answer);
  implementation->watch = implementation->MakeWatch(parts.sessions, options);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(implementation->watch->MakeInterceptorFactory());
  interceptors.push_back(MakeCallMeter({.metrics = parts.trace.metrics,
                                        .trace_recorder = parts.trace.recorder,
                                        .access = parts.trace.access},
                                       parts.trace.clock.steady));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  implementation->acceptors = std::make_unique<Acceptors>(
      Acceptors::Options{
          .system_users = options.system_users,
          .access = parts.sessions.access,
          .name_of = auth::AccountName,
          .on_accepted = [watch = implementation->watch.get()] { watch->CallAccepted(); }},
      builder);
  for (const std::string& address : addresses) {
    if (absl::Status status = implementation->Listen(address, options); !status.ok()) return status;
  }
  auto& services = implementation->services;
  services.push_back(MakeDeviceService(parts.devices));
  services.push_back(MakeSessionService(parts.sessions));
  services.push_back(MakeBlobService(parts.blobs));
  services.push_back(MakeProgramService(parts.programs));
  services.push_back(MakeAdminService(parts.admin));
  services.push_back(MakeTraceService(parts.trace));
  for (const auto& service : services) builder.RegisterService(service.get());
  implementation->server = builder.BuildAndStart();
  if (!implementation->server) {
    return absl::UnavailableError(absl::StrCat("cannot serve on ", absl::StrJoin(addresses, ", ")));
  }
  implementation->relay = implementation->MakeRelay(parts.sessions, options);
  implementation->waiting_room = implementation->MakeWaitingRoom(parts.sessions, options);
  for (const auto& socket : implementation->sockets) socket->Start();
  for (const auto& port : implementation->ports) port->Start();
  return std::unique_ptr<Server>(new Server(std::move(implementation)));
}

const std::vector<std::string>& Server::listening() const { return implementation_->listening; }

void Server::SetServing(const std::string& name, bool serving) {
  implementation_->server->GetHealthCheckService()->SetServingStatus(name, serving);
}

void Server::Stop(absl::Duration patience) {
  if (!implementation_->server) return;
  // gRPC sends GOAWAY with a ping, and closes the connection when the ping is answered and no call
  // is left. If GOAWAY follows the streams' last answers, the ping's answer shows that the client
  // has read them. If it came before, closing could overtake the answers: a client that writes to a
  // closed connection drops what it has not read yet.
  implementation_->open_calls->WaitUntilNone(patience);
  for (const auto& socket : implementation_->sockets) socket->Stop();
  for (const auto& port : implementation_->ports) port->Stop();
  implementation_->waiting_room->Stop();
  implementation_->relay->StopHandingOver();
  implementation_->server->Shutdown(FromNow(patience));
  implementation_->relay->Drain(kLastAnswers);
}

void Server::ReloadTls() { implementation_->tls->Look(); }

absl::Time Server::CertificateExpiry() const {
  return relay::ExpiryOf(implementation_->tls->current());
}

}  // namespace kiln::rpc
