#include "core/engine/surveys.hpp"

#include <algorithm>
#include <utility>

#include "core/base/printable.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxText = 400;
/// Of a text that names several ranks.
constexpr std::size_t kMaxPartsText = 4096;
/// A rank that has left this many control messages unread is not sent another question.
constexpr std::size_t kMaxUnread = 64;

void cut_texts(wire::RankState& state) {
  const auto cut = [](std::string& text, std::size_t most = kMaxText) { text.resize(cut_text(text, most).size()); };
  cut(state.parts, kMaxPartsText);
  for (auto* text : {&state.host, &state.program, &state.links, &state.cipher, &state.last.call, &state.last.group}) cut(*text);
  for (auto& operation : state.running)
    for (auto* text : {&operation.call, &operation.group}) cut(*text);
}

}  // namespace

Surveys::Id Surveys::ask(const std::vector<int>& ranks, Done done) {
  std::map<int, wire::StateQuestion> questions;
  for (const int rank : ranks) questions[rank] = {};
  return start(questions, std::move(done));
}

Surveys::Id Surveys::ask_members(const Pending& pending, Done done) {
  const GroupEngine& group = *pending.group;
  std::map<int, wire::StateQuestion> questions;
  for (int rank = 0; rank < group.members().size(); ++rank) {
    // A member that has left is not needed for the operation any more; otherwise the world would have failed.
    if (rank == group.options().rank || group.has_left(rank) ||
        (pending.is_message() && pending.peer != Pending::kAnyPeer && rank != pending.peer))
      continue;
    questions[group.members().world_rank(rank)] = {0, !pending.is_message(), group.members().group_id(rank), pending.stream};
  }
  return start(questions, std::move(done));
}

Surveys::Id Surveys::start(const std::map<int, wire::StateQuestion>& questions, Done done) {
  const Id id = ++last_id_;
  Open& open = open_[id];
  open.give_up_at = host_.loop().now() + kPatience;
  open.done = std::move(done);
  for (auto [rank, question] : questions) {
    open.survey.asked.push_back(rank);
    question.number = id;
    if (!host_.has_left_world(rank) && host_.session_with(rank).unsent_owned() < kMaxUnread) host_.send_control(rank, question);
  }
  // Nobody answers, and the world of one rank has no ticks.
  if (questions.empty()) host_.loop().defer(alive_.wrap([this, id] { conclude(id); }));
  return id;
}

void Surveys::on_state(int from, const wire::RankState& state) {
  const auto open = open_.find(state.number);
  if (open == open_.end()) return;
  Survey& survey = open->second.survey;
  if (std::find(survey.asked.begin(), survey.asked.end(), from) == survey.asked.end()) return;
  const auto [told, is_first] = survey.told.try_emplace(from, state);
  if (!is_first) return;
  cut_texts(told->second);
  if (survey.told.size() == survey.asked.size()) conclude(state.number);
}

void Surveys::on_tick(Instant now) {
  std::vector<Id> over;
  for (const auto& [id, open] : open_)
    if (now >= open.give_up_at || open.survey.told.size() == open.survey.asked.size()) over.push_back(id);
  for (const Id id : over) conclude(id);
}

void Surveys::conclude(Id id) {
  const auto node = open_.extract(id);
  // The end of one survey may have cancelled another one.
  if (node.empty()) return;
  node.mapped().done(node.mapped().survey);
}

}  // namespace ringlet
