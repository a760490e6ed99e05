#include "server/rpc/access.h"

#include <grpcpp/security/auth_context.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "server/auth/method_table.h"
#include "server/errors/errors.h"

namespace kiln::rpc {
namespace {

constexpr char kListenerProperty[] = "kiln_listener";
constexpr char kAcceptedProperty[] = "kiln_accepted";
constexpr char kAuthorization[] = "authorization";

absl::Status NoToken() {
  return errors::WithReason(
      absl::UnauthenticatedError(
          "this daemon requires a token: set it in $KILN_TOKEN or in ~/.config/kiln/config.toml; "
          "an admin of the daemon makes one with `kiln user add NAME`"),
      "NO_TOKEN");
}

absl::Status NotAllowed(const auth::Principal& caller, absl::string_view method,
                        auth::Role role_min) {
  const absl::string_view name = absl::StripPrefix(method, "/kiln.v1.");
  const absl::string_view remedy =
      role_min == auth::Role::kAdmin
          ? "use an admin's token, or the daemon's Unix socket as the user who runs kilnd"
          : "use a user's token; an admin of the daemon makes one with `kiln user add NAME`";
  return errors::WithReason(
      absl::PermissionDeniedError(absl::StrCat(name, " requires the role ", auth::Name(role_min),
                                               ", but ", caller.user, " has the role ",
                                               auth::Name(caller.role), "; ", remedy)),
      "ROLE");
}

std::string ToString(grpc::string_ref text) { return {text.data(), text.size()}; }

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// gRPC itself refuses calls with more metadata, once their headers end. If a connection ends before
// they do, gRPC calls this check with all metadata received so far.
constexpr size_t kMetadataBytesMax = 8 << 10;

bool IsWhole(const Metadata& metadata) {
  size_t bytes = 0;
  for (auto each = metadata.begin(); each != metadata.end() && bytes <= kMetadataBytesMax; ++each)
    bytes += each->first.size() + each->second.size();
  return bytes <= kMetadataBytesMax;
}

Access::Credentials CredentialsOf(const Metadata& metadata, int listener) {
  Access::Credentials credentials{.listener = listener, .authorization = std::nullopt};
  const auto [first, end] = metadata.equal_range(kAuthorization);
  // Two values are ambiguous, so the call is refused: no token is empty.
  if (first != end)
    credentials.authorization = std::next(first) == end ? ToString(first->second) : "";
  return credentials;
}

class Processor : public grpc::AuthMetadataProcessor {
 public:
  Processor(Access& access, int listener, std::function<void()> on_accepted)
      : access_(access), listener_(listener), on_accepted_(std::move(on_accepted)) {}

  // Only the first use of a token takes long, and that is rare (auth::Authenticator).
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* connection,
                       OutputMetadata* consumed, OutputMetadata* response) override {
    // The watch would attribute the acceptance to another connection whose call is accepted.
    if (!IsWhole(metadata))
      return {grpc::RESOURCE_EXHAUSTED, "the headers of the call are incomplete"};
    access_.Mark(*connection, listener_);
    const auto path = metadata.find(":path");
    const absl::Status status = access_.Check(CredentialsOf(metadata, listener_),
                                              path == metadata.end() ? "" : ToString(path->second));
    if (status.ok() && access_.MarkAccepted(*connection)) on_accepted_();
    // gRPC sends only code and message here; a status' details would be lost.
    return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
  }

 private:
  Access& access_;
  const int listener_;
  const std::function<void()> on_accepted_;
};

}  // namespace

Access::Access(Options options) : options_(std::move(options)) {
  KILN_CHECK(options_.users != nullptr && options_.audit != nullptr && options_.metrics != nullptr);
}

Access::Listener Access::AddListener(Entrance entrance, std::function<void()> on_accepted) {
  KILN_CHECK(on_accepted != nullptr);
  absl::MutexLock lock(&mutex_);
  const int number = static_cast<int>(listeners_.size());
  listeners_.push_back({entrance, NoToken()});
  return {number, std::make_shared<Processor>(*this, number, std::move(on_accepted))};
}

void Access::SetPeer(int listener, absl::StatusOr<auth::Principal> peer) {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(listener >= 0 && listener < static_cast<int>(listeners_.size())) << listener;
  ListenerState& state = listeners_[static_cast<size_t>(listener)];
  KILN_CHECK(state.entrance == Entrance::kPeer || state.entrance == Entrance::kCertificate);
  state.peer = std::move(peer);
}

void Access::Mark(grpc::AuthContext& connection, int listener) {
  // A connection has one context, and its calls come on any thread.
  absl::MutexLock lock(&marking_mutex_);
  if (connection.FindPropertyValues(kListenerProperty).empty())
    connection.AddProperty(kListenerProperty, absl::StrCat(listener));
}

bool Access::MarkAccepted(grpc::AuthContext& connection) {
  absl::MutexLock lock(&marking_mutex_);
  if (!connection.FindPropertyValues(kAcceptedProperty).empty()) return false;
  connection.AddProperty(kAcceptedProperty, "yes");
  return true;
}

absl::StatusOr<auth::Principal> Access::Identify(const Credentials& credentials) const {
  absl::StatusOr<auth::Principal> peer;
  Entrance entrance;
  {
    absl::MutexLock lock(&mutex_);
    if (credentials.listener < 0 || credentials.listener >= static_cast<int>(listeners_.size()))
      return NoToken();
    const ListenerState& listener = listeners_[static_cast<size_t>(credentials.listener)];
    entrance = listener.entrance;
    peer = listener.peer;
  }
  if (credentials.authorization) {
    absl::string_view token = *credentials.authorization;
    if (!absl::ConsumePrefix(&token, "Bearer ")) token = "";
    return options_.users->ByToken(std::string(token));
  }
  switch (entrance) {
    case Entrance::kLoopback:
      if (options_.users->nobody_known())
        return auth::Principal{auth::kLocalUser, auth::Role::kUser, "loopback"};
      return NoToken();
    case Entrance::kView:
      if (options_.users->nobody_known())
        return auth::Principal{auth::kLocalUser, auth::Role::kAdmin, "loopback"};
      return NoToken();
    case Entrance::kTls:
      return NoToken();
    case Entrance::kCertificate:
      if (!peer.ok()) return peer;
      return options_.users->ByCertificate(peer->user);
    case Entrance::kPeer:
      if (peer.ok() && peer->role != auth::Role::kAdmin)
        return options_.users->BySystemName(peer->user);
      return peer;
  }
  return NoToken();
}

absl::Status Access::Check(const Credentials& credentials, const std::string& method) {
  const auto caller = Identify(credentials);
  absl::Status status = caller.status();
  if (caller.ok()) {
    const auto role_min = auth::LeastRole(method);
    if (!role_min)
      return absl::UnimplementedError(absl::StrCat("kilnd has no method ", Quoted(method)));
    if (caller->role < *role_min) status = NotAllowed(*caller, method, *role_min);
  }
  if (!status.ok()) AuditRefusal(caller.ok() ? caller->user : "", method, status);
  return status;
}

void Access::AuditRefusal(const std::string& user, const std::string& method,
                          const absl::Status& why) {
  options_.metrics->Failed(why.code());
  const absl::Time now = options_.clock.steady();
  std::optional<int64_t> held_back;
  {
    absl::MutexLock lock(&mutex_);
    held_back = (user.empty() ? refused_unknown_ : refused_users_).Admit(now);
  }
  if (!held_back) return;
  std::string outcome = errors::Reason(why);
  if (*held_back > 0) absl::StrAppend(&outcome, " (and ", *held_back, " more before)");
  // For other methods, the caller chose the text.
  const std::string subject = auth::LeastRole(method) ? method : "unknown method";
  options_.audit->Append({0, options_.clock.wall(), user, "refused", subject, std::move(outcome)});
}

absl::StatusOr<auth::Principal> Access::Caller(const grpc::ServerContextBase& context) const {
  const auto connection = context.auth_context();
  int number = -1;
  for (const auto& listener : connection->FindPropertyValues(kListenerProperty)) {
    if (!absl::SimpleAtoi(ToString(listener), &number)) return NoToken();
  }
  return Identify(CredentialsOf(context.client_metadata(), number));
}

}  // namespace kiln::rpc
