#include "tools/agent/link_identity.hpp"

#include <utility>

#include "core/base/printable.hpp"

namespace ringlet::agent {

using machines::Part;

LinkIdentity::LinkIdentity(machines::MachineKey key, std::string name, std::string version)
    : key_(std::move(key)), name_(std::move(name)), version_(std::move(version)) {}

job::Hail LinkIdentity::question(const std::string& group, const LinkBinding& binding) const {
  job::Hail hail{job::kProtocol, version_, group, name_, "", ""};
  sign(hail, binding);
  return hail;
}

void LinkIdentity::sign(job::Hail& hail, const LinkBinding& binding) const {
  // Texts become printable when they are received, so what is signed has to be that already.
  hail.from = printable(hail.from);
  machines::Introduction own = introduce(key_, Part::asks, hail.group, hail.from, binding);
  hail.public_key = std::move(own.public_key);
  hail.signature = std::move(own.signature);
}

void LinkIdentity::sign(job::Offer& offer, const std::string& group, const LinkBinding& binding) const {
  machines::Introduction own = introduce(key_, Part::answers, group, offer.name, binding);
  offer.public_key = std::move(own.public_key);
  offer.signature = std::move(own.signature);
}

std::optional<machines::PublicKey> sender_of(const job::Hail& hail, const std::string& group, const LinkBinding& binding) {
  return proved_key({hail.from, hail.public_key, hail.signature}, Part::asks, group, binding);
}

std::optional<machines::PublicKey> sender_of(const job::Offer& offer, const std::string& group, const LinkBinding& binding) {
  return proved_key({offer.name, offer.public_key, offer.signature}, Part::answers, group, binding);
}

}  // namespace ringlet::agent
