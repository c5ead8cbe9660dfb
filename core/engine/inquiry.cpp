#include "core/engine/inquiry.hpp"

namespace ringlet {

namespace {
constexpr Duration kPatience = Duration::seconds(1);
}

void Inquiry::start(GroupEngine& group, std::uint16_t stream) {
  group_ = &group;
  stream_ = stream;
  const Standing own = group.standing(stream, UINT64_MAX);
  sequence_ = own.sequence;
  met_.assign(static_cast<std::size_t>(group.members().size()), false);
  met_[static_cast<std::size_t>(group.options().rank)] = true;
  give_up_at_ = host_.loop().now() + kPatience;
  if (own.kind != Standing::Kind::waits) return conclude({});
  ask(own.peer, own.sequence);
}

void Inquiry::forget(const GroupEngine& group) {
  if (group_ == &group) stop();
}

bool Inquiry::still_overdue() {
  const Standing own = group_->standing(stream_, sequence_);
  if (own.kind == Standing::Kind::waits && own.sequence == sequence_) return true;
  stop();
  return false;
}

void Inquiry::ask(int peer, std::uint64_t sequence) {
  asked_ = peer;
  met_[static_cast<std::size_t>(peer)] = true;
  wire::Question question;
  question.number = ++number_;
  question.group = group_->members().group_id(peer);
  question.stream = stream_;
  question.sequence = sequence;
  host_.send_control(group_->members().world_rank(peer), question);
}

void Inquiry::on_answer(int from, const wire::Answer& answer) {
  if (!active() || answer.number != number_ || group_->members().world_rank(asked_) != from || !still_overdue()) return;
  if (answer.standing == wire::Answer::Standing::not_called) return conclude({Holdup::Kind::has_not_called, asked_, answer.sequence});
  const auto world_size = static_cast<std::uint32_t>(host_.options().size);
  const auto next = answer.rank < world_size ? group_->members().rank_of(static_cast<int>(answer.rank)) : std::nullopt;
  // In a circle all wait for bytes that are under way: what is seen from here says it best.
  if (answer.standing != wire::Answer::Standing::waits || !next || met_[static_cast<std::size_t>(*next)]) return conclude({});
  ask(*next, answer.sequence);
}

void Inquiry::on_tick(Instant now) {
  if (active() && still_overdue() && now >= give_up_at_) conclude({Holdup::Kind::does_not_answer, asked_, sequence_});
}

void Inquiry::conclude(const Holdup& holdup) {
  const Status status = group_->timeout(stream_, holdup);
  stop();
  host_.fail(status);
}

}  // namespace ringlet
