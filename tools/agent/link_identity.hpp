#pragma once

#include <optional>
#include <string>

#include "tools/job/messages.hpp"
#include "tools/machines/introduction.hpp"

namespace ringlet::agent {

/// This machine, as it introduces itself on links with the agents of its group.
class LinkIdentity {
 public:
  LinkIdentity(machines::MachineKey key, std::string name, std::string version);

  const machines::PublicKey& public_key() const noexcept { return key_.public_key(); }
  /// Returns the question that asks an agent of this group only who it is; its program is empty.
  job::Hail question(const std::string& group, const LinkBinding& binding) const;
  /// Sign the message for this link. The first takes the asking machine's name and the group from it, the second its own name.
  void sign(job::Hail& hail, const LinkBinding& binding) const;
  void sign(job::Offer& offer, const std::string& group, const LinkBinding& binding) const;

 private:
  machines::MachineKey key_;
  std::string name_, version_;
};

/// Return the key of the machine that sent the message, or nothing if it did not prove it on this link.
std::optional<machines::PublicKey> sender_of(const job::Hail& hail, const std::string& group, const LinkBinding& binding);
std::optional<machines::PublicKey> sender_of(const job::Offer& offer, const std::string& group, const LinkBinding& binding);

}  // namespace ringlet::agent
