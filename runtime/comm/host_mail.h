// Messages between two ranks of a host group (send, recv). A send returns at once and moves on whenever its rank waits
// for anything in the group; messages from one rank to another keep their order.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/host_group.h"

namespace drivetrain {

class HostMail {
 public:
  explicit HostMail(HostGroup& group);
  ~HostMail();
  HostMail(const HostMail&) = delete;
  HostMail& operator=(const HostMail&) = delete;

  Work send(const Tensor& x, int to);
  Work recv(const Tensor& x, int from);
  // Posts whatever can be posted without waiting.
  void progress();

 private:
  struct Outgoing;
  struct Channel {  // to one peer, the sender's side
    std::deque<std::shared_ptr<Outgoing>> queue;
    std::uint64_t messages = 0;
    std::uint32_t posted = 0;
    SharedBlock staging;
    BlockTicket ticket;
    bool sealed = true;
  };
  struct Source {  // from one peer, the receiver's side
    std::uint64_t messages = 0;
    std::uint32_t taken = 0;
    SharedBlock staging;
  };

  bool advance(int to);  // true if anything moved
  void start(Channel& channel, Outgoing& message);
  void finish_sending(Outgoing& message);

  HostGroup& group_;
  std::vector<Channel> channels_;
  std::vector<Source> sources_;
};

}  // namespace drivetrain
