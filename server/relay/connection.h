// One connection between a client and gRPC, as everybody but its relay sees it.
#ifndef KILN_SERVER_RELAY_CONNECTION_H_
#define KILN_SERVER_RELAY_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/relay/call_budgets.h"

namespace kiln::relay {

// The client, as the system and TLS know it.
struct Peer {
  enum Entrance { kPort, kTlsPort, kUnixSocket };
  Entrance entrance = kPort;
  std::string address = {};  // "192.0.2.7:40112", "[2001:db8::1]:40112", "unix:uid=1000"
  // Connections of one origin share a budget: "192.0.2.7", the first 64 bits of an IPv6 address,
  // "uid=1000".
  std::string origin = {};
  unsigned user_id = 0;               // of a Unix socket
  std::string certificate_name = {};  // that TLS has verified; empty: none
};

// Thread-safe.
class Connection {
 public:
  // `name`: as gRPC names it in a call's peer(), without "unix-abstract:".
  Connection(uint64_t number, std::string name, Peer peer,
             std::unique_ptr<CallBudgets::Connection> budget)
      : number_(number),
        name_(std::move(name)),
        peer_(std::move(peer)),
        budget_(std::move(budget)) {}

  uint64_t number() const { return number_; }  // of this relay's
  const std::string& name() const { return name_; }
  const Peer& peer() const { return peer_; }
  CallBudgets::Connection& budget() { return *budget_; }

  // How many bytes of the client have gone on to gRPC.
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

// Shared by the relay and by whoever watches.
using ConnectionPointer = std::shared_ptr<Connection>;

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CONNECTION_H_
