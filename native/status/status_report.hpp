#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/engine/world.hpp"
#include "native/status/membership.hpp"

namespace ringlet::native {

/// Returns a JSON object in one line. Later versions only add fields.
///
/// `format` 1, `world` (16 hexadecimal digits), `size`, `told_by` (the rank that was asked), `failure` (text, null while the world lives),
/// `stalled` (whether any rank is, or does not answer), `ranks`: of each `rank`, `state` ("in_operation", "computing", "not_answering",
/// "not_asked": it has left, or the world has failed), and where it has answered `host`, `pid`, `program`, `stalled`, `running` and `last`
/// (operations; null: none), `operations`, `bytes_sent`, `bytes_received`, `links`, `cipher`. An operation has `call`, `number`, `stream`,
/// `group` (empty: the world), `seconds` (since it began or, for `last`, ended), `received`, `to_receive`, `sent`, `to_send` (bytes) and
/// `waits_for` (ranks).
///
/// `elastic` is null, or of an elastic world the object of membership_report() of the rank that was asked, and in it `lost_ranks` and
/// `joined_ranks`: how many since that rank is in the group.
std::string status_report(const ringlet::World& world, std::uint64_t world_id, const Survey& survey,
                          const std::optional<GroupState>& group = {});

/// Returns a JSON object in one line: `epoch`, `lineage` (16 hexadecimal digits), `rank`, `size`, `door`, and `change`, which is null or
/// has `lost` (ranks), `cause` (text, null where none is lost), `joined` (a number) and `milliseconds`.
std::string membership_report(const GroupState& group);

/// Returns a JSON object in one line: `ended_by_loss_of`, a rank.
std::string loss_report(int rank);

}  // namespace ringlet::native
