#pragma once

#include <cstdint>

namespace ringlet::test {

/// What a trainer does wrong on purpose, to show that the checks notice it.
enum class BrokenTrainer : std::uint8_t {
  none,
  applies_without_vote,
  believes_own_vote,  // where a rank was lost in the vote
  ignores_results_of_others,
  keeps_old_shares,  // of the batch, after a loss
  draws_new_batch,   // when it does a step again
  weighs_evenly,     // whatever the number of samples
  skips_lost_step,
  undoes_step,         // after a loss
  goes_on_alone,       // where the others have gone on without it
  hears_too_early,     // takes what belongs to the epoch before
  takes_buffers_back,  // while an operation uses them
  silence_is_proof,
  forks,  // against the policy
  looks_for_no_proof,
  leads_impatiently,  // goes on without those whose reports are under way
  divides_its_own_way,
  takes_shares_in_other_order,
  switches_without_agree,    // once it has heard that all are ready
  switches_when_forming,     // before those who join have met all
  computes_unfilled,         // what it has where it joins
  takes_wrong_blocks,        // of the state that it is given
  gives_unfilled,            // what it has where its givers were lost
  takes_from_those_behind,   // the state of those with the fewest steps
  uses_ticket_again,         // where that has led nowhere
  leaves_where_one_is_lost,  // before all are in
  // Of guests, which say that they have more steps than all others.
  guests_boast,
  believes_guests,
  keeps_guests,  // where it begins to take in others
  // Of rows of sharded state.
  holds_both_on_one_machine,  // both copies of a row
  keeps_one_copy,
  forgets_second_holders,     // when it updates
  counts_slice_as_all,        // of the rows that come to second holders
  counts_missing_rows,        // as if second holders had them
  asks_first_holders_alone,   // where rows move
  takes_rows_without_vote,    // once they have come
  goes_on_without_lost_rows,  // as if nothing was lost
  // Of memory.
  keeps_old_groups,
  stays_in_world_before,  // when all are in the next one
  keeps_old_buffers,
};

}  // namespace ringlet::test
