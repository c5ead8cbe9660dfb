#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/engine/requests.hpp"
#include "tests/core/sim_trainer.hpp"

// How a simulated trainer trains where its state is sharded: as ElasticFullyShard does it.
namespace ringlet::test {

namespace {

constexpr Duration kTransferTimeout = Duration::seconds(100);

}  // namespace

/// Starts `transfers_`, and `beside` them a collective, and goes on when all have ended.
void SimTrainer::start_transfers(std::optional<Result<CollectiveTask>> beside, Next next) {
  struct UnderWay {
    std::size_t count;
    Status failure{};
  };
  const auto go_on = [this, next] { loop_.after(pause(), guard_.wrap([this, next] { (this->*next)(); })); };
  const auto all = std::make_shared<UnderWay>(UnderWay{transfers_.size() + (beside ? 1 : 0)});
  if (all->count == 0) return go_on();
  const auto completion = [this, all, go_on](const Status& status) {
    --pending_;
    if (all->failure.ok()) all->failure = status;
    if (--all->count > 0) return;
    all->failure.ok() ? go_on() : on_failure(all->failure);
  };
  GroupEngine& group = world_->group();
  pending_ += static_cast<int>(all->count);
  for (RowTransfer& transfer : transfers_) {
    const TensorView values(transfer.values);
    auto task = transfer.sends ? make_send(values, transfer.peer, group.options()) : make_receive(values, transfer.peer, group.options());
    task.value().timeout = kTransferTimeout;
    task.value().completion = completion;
    transfer.sends ? group.send(0, std::move(task).value()) : group.receive(0, std::move(task).value());
  }
  if (!beside) return;
  beside->value().timeout = kTransferTimeout;
  beside->value().completion = completion;
  group.start(0, std::move(*beside).value());
}

// --- where a world begins ---

int SimTrainer::machine() {
  const std::vector<int>& members = own_members();
  const auto is_here = [this](int process) { return process / town_.ranks_per_machine == process_ / town_.ranks_per_machine; };
  return static_cast<int>(std::find_if(members.begin(), members.end(), is_here) - members.begin());
}

void SimTrainer::tell_rows() {
  if (!rows_) rows_ = std::make_unique<SimRows>(world_->options().size, rank(), false, broken_);
  own_text_ = rows_->standing(machine(), process_ % 3 == 1 ? 2 : 1);
  own_length_ = static_cast<std::int64_t>(own_text_.size());
  gather(DType::i64, own_length_, lengths_, &SimTrainer::on_row_lengths);
}

void SimTrainer::on_row_lengths() {
  const auto most = static_cast<std::size_t>(*std::max_element(lengths_.begin(), lengths_.end()));
  own_text_.resize(most);
  told_texts_.assign(most * lengths_.size(), '\0');
  start(
      make_all_gather({own_text_.data(), DType::u8, most}, {told_texts_.data(), DType::u8, told_texts_.size()}, world_->group().options()),
      &SimTrainer::on_rows_told);
}

void SimTrainer::on_rows_told() {
  const SimRows before = *rows_;
  std::vector<std::string> told;
  for (std::size_t i = 0; i < lengths_.size(); ++i)
    told.push_back(told_texts_.substr(i * own_text_.size(), static_cast<std::size_t>(lengths_[i])));
  if (!rows_->enter(told, rank()).empty()) return lose_rows(before);
  if (!rows_->are_coming()) return have_rows();
  transfers_ = rows_->moves_to_first(rows_->is_fresh() ? SimRows::Contents::both : SimRows::Contents::parameters);
  start_transfers(std::nullopt, rows_->is_fresh() ? &SimTrainer::on_fresh_rows : &SimTrainer::on_first_rows);
}

/// All ranks have their new rows, or all keep the old ones.
void SimTrainer::on_fresh_rows() {
  rows_->finish(transfers_);
  votes_->call(true);
  voting_ = Vote::on_rows;
  answer_ = {1, 0};
  const TensorView all{answer_.data(), DType::i32, 1};
  start(make_all_reduce(ReduceOp::min, all, all, 1, world_->group().options()), &SimTrainer::on_rows_agreed);
}

void SimTrainer::on_rows_agreed() {
  votes_->set_result(answer_[0] != 0);
  voting_ = Vote::none;
  rows_->take();
  have_rows();
}

void SimTrainer::on_first_rows() {
  rows_->finish(transfers_);
  have_rows();
}

void SimTrainer::have_rows() {
  if (is_settled_ && rows_->step() != step_) wrong_ = "I5: the rows are of another step than was committed last";
  step_ = next_step_ = rows_->step();
  have_state();
}

/// All holders of some rows have gone.
void SimTrainer::lose_rows(const SimRows& before) {
  if (town_.on_rows_lost) town_.on_rows_lost(process_, before);
  if (is(BrokenTrainer::goes_on_without_lost_rows)) {
    rows_->load(rows_->step(), {});
    return tell_rows();
  }
  // All ranks load the same checkpoint.
  saved_ = town_.checkpoints.empty() ? -1 : static_cast<std::int64_t>(town_.checkpoints.rbegin()->first);
  const TensorView chosen{&saved_, DType::i64, 1};
  start(make_broadcast(chosen, 0, world_->group().options()), &SimTrainer::go_back);
}

void SimTrainer::go_back() {
  if (saved_ < 0) {
    has_lost_rows_ = waits_ = true;
    door_->knocks().shut();
    return loop_.defer(guard_.wrap([this] { town_.leave(std::move(epochs_)); }));
  }
  rollbacks_.emplace(epoch_, rows_->step());
  step_ = next_step_ = static_cast<std::uint64_t>(saved_);
  is_settled_ = true;
  rows_->load(step_, town_.checkpoints.at(step_));
  tell_rows();
}

// --- steps ---

void SimTrainer::on_rows_gathered() {
  state_ = rows_->join(gathered_);
  // While momenta are on their way nobody has all of them.
  if (rank() == 0 && town_.saves_every > 0 && step_ % town_.saves_every == 0 && !rows_->are_coming())
    town_.checkpoints.emplace(step_, state_);
  compute_gradient();
  average_of_ = epoch_;
  transfers_ = rows_->moves_of_step();
  start_transfers(averaging(), &SimTrainer::on_averaged);
}

void SimTrainer::on_averaged() {
  rows_->finish(transfers_);
  transfers_ = rows_->gradients_to_second(sum_);
  start_transfers(std::nullopt, &SimTrainer::on_gradients_at_second);
}

void SimTrainer::on_gradients_at_second() {
  rows_->finish_gradients(transfers_);
  if (is(BrokenTrainer::takes_rows_without_vote)) rows_->take();
  vote();
}

void SimTrainer::commit_rows() {
  if (!is(BrokenTrainer::takes_rows_without_vote)) rows_->take();
  rows_->update();
  rows_log_.push_back({average_of_, step_, average_, rows_->copies()});
}

}  // namespace ringlet::test
