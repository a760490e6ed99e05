// One connection between a client and gRPC, as seen by everything except its relay.
#ifndef KILN_SERVER_RELAY_CONNECTION_H_
#define KILN_SERVER_RELAY_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/relay/call_budgets.h"

namespace kiln::relay {

// The client, as identified by the system and TLS.
struct Peer {
  enum Entrance { kPort, kTlsPort, kUnixSocket };
  Entrance entrance = kPort;
  std::string address = {};  // "192.0.2.7:40112", "[2001:db8::1]:40112", "unix:uid=1000"
  // Connections of one origin share a budget. An origin is "192.0.2.7", the first 64 bits of an
  // IPv6 address, or "uid=1000".
  std::string origin = {};
  unsigned user_id = 0;               // for Unix sockets
  std::string certificate_name = {};  // verified by TLS; empty: none
};

// Thread-safe.
class Connection {
 public:
  // `name`: the name in a gRPC call's peer(), without "unix-abstract:".
  Connection(uint64_t number, std::string name, Peer peer,
             std::unique_ptr<CallBudgets::Connection> budget)
      : number_(number),
        name_(std::move(name)),
        peer_(std::move(peer)),
        budget_(std::move(budget)) {}

  uint64_t number() const { return number_; }  // within this relay
  const std::string& name() const { return name_; }
  const Peer& peer() const { return peer_; }
  CallBudgets::Connection& budget() { return *budget_; }

  // The bytes from the client that were forwarded to gRPC.
  int64_t received_bytes() const { return received_bytes_.load(std::memory_order_relaxed); }
  bool is_open() const { return is_open_.load(std::memory_order_relaxed); }
  // Whether a call was accepted, so that its user is known.
  bool is_users() const { return is_users_.load(std::memory_order_relaxed); }

  // The rest is for the relay.

  void AddReceived(size_t bytes) {
    received_bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }
  void MarkUsers() { is_users_.store(true, std::memory_order_relaxed); }
  void MarkClosed() { is_open_.store(false, std::memory_order_relaxed); }

 private:
  const uint64_t number_;
  const std::string name_;
  const Peer peer_;
  const std::unique_ptr<CallBudgets::Connection> budget_;
  std::atomic<int64_t> received_bytes_ = 0;
  std::atomic<bool> is_open_ = true;
  std::atomic<bool> is_users_ = false;
};

// Shared by the relay and by the code that watches connections.
using ConnectionPointer = std::shared_ptr<Connection>;

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CONNECTION_H_
