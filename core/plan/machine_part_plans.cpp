#include <algorithm>

#include "core/plan/plans.hpp"

namespace ringlet {

namespace {

/// Says which rank of each machine leads a rank's part: by it the part comes in or, in a reduction, the machine's sum goes out. It visits
/// parts and ranks in the order of one rank's plan.
class PartLeads {
 public:
  explicit PartLeads(const PlanWriter& plan)
      : call_(plan.call()),
        topology_(plan.topology()),
        size_(plan.size()),
        own_machine_(topology_.machine_of(plan.rank())),
        ranks_(topology_.ranks_on(own_machine_)) {}

  int own_machine() const { return own_machine_; }
  const std::vector<int>& ranks() const { return ranks_; }
  int other_machines() const { return topology_.machines() - 1; }
  /// How many machines further another one is in the order of for_others().
  int steps_to(int machine) const { return (machine - own_machine_ + topology_.machines()) % topology_.machines(); }

  /// Whether the only part is the whole buffer, which is the root's.
  bool is_whole() const { return call_.kind == CollectiveKind::reduce; }
  bool has_part(int owner) const { return !is_whole() || owner == call_.root; }
  /// Whether a rank has the part of `owner` from the start (has_part_before).
  bool has_already(int rank, int owner) const { return has_part_before(call_) && rank == (owner + 1) % size_; }

  /// The lead of a part on a machine: its owner, or a rank that has it already. Else the ranks of the machine take the parts of all others
  /// in turns.
  int lead(int machine, int owner) const {
    if (topology_.machine_of(owner) == machine) return owner;
    const int next = (owner + 1) % size_;
    if (has_already(next, owner) && topology_.machine_of(next) == machine) return next;
    const std::vector<int>& ranks = topology_.ranks_on(machine);
    const auto lower = static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), owner) - ranks.begin());
    return ranks[(static_cast<std::size_t>(owner) - lower) % ranks.size()];
  }
  int lead_here(int owner) const { return lead(own_machine_, owner); }
  /// The lead of a part on the machine of `rank`.
  int lead_beside(int rank, int owner) const { return lead(topology_.machine_of(rank), owner); }

  /// Visits the ranks of all other machines, from the next machine on, so that the machines do not all send to one first.
  template <class Visit>
  void for_others(Visit visit) const {
    for (int step = 1; step <= other_machines(); ++step)
      for (const int rank : topology_.ranks_on((own_machine_ + step) % topology_.machines())) visit(rank);
  }
  /// Visits the owners of the parts that a rank of this machine leads, itself as the last.
  template <class Visit>
  void for_led(int rank, Visit visit) const {
    for_others([&](int owner) {
      if (has_part(owner) && lead_here(owner) == rank) visit(owner);
    });
    if (has_part(rank)) visit(rank);
  }
  bool leads_any(int rank) const {
    bool any = false;
    for_led(rank, [&](int) { any = true; });
    return any;
  }

 private:
  const Call& call_;
  const Topology& topology_;
  const int size_;
  const int own_machine_;
  const std::vector<int>& ranks_;  // of this machine
};

/// Writes one rank's plan of a reduce-scatter or a reduce. The lead of a part adds it up over the ranks of its machine and sends the sum to
/// the owner, which adds the machines' sums. Receives are numbered in this order: the sums, one from each other machine, then what comes
/// from each rank of this machine. Of the parts that a rank leads its own one is the last.
class PartsReduction {
 public:
  explicit PartsReduction(PlanWriter& plan) : plan_(plan), leads_(plan), owns_(leads_.has_part(plan.rank())) {}

  void write() {
    if (owns_) sums_ = plan_.take_scratch(static_cast<std::size_t>(leads_.other_machines()) * result().bytes);
    std::size_t bytes = 0;
    for_each_led([&](int owner, int, std::size_t) {
      bytes += contributions_bytes(owner);
      ++led_;
    });
    contributions_ = plan_.take_scratch(bytes);
    leads_.for_others([&](int rank) { write_with_other(rank); });
    for (const int rank : leads_.ranks())
      if (rank != plan_.rank()) write_with_rank(rank);
    if (has_contributions()) write_partial_combines();
    if (owns_) write_combine();
  }

 private:
  Region part(int owner) const { return leads_.is_whole() ? plan_.whole(Buffer::input) : plan_.part(Buffer::input, owner); }
  Region result() const { return {Buffer::output, 0, part(plan_.rank()).bytes}; }
  int others_here() const { return static_cast<int>(leads_.ranks().size()) - 1; }
  bool has_contributions() const { return others_here() > 0; }
  std::size_t contributions_bytes(int owner) const { return static_cast<std::size_t>(others_here()) * part(owner).bytes; }

  /// Visits the owners of the parts that this rank leads, each with the number of parts before it and where its contributions begin.
  template <class Visit>
  void for_each_led(Visit visit) const {
    int before = 0;
    std::size_t begin = contributions_.offset_bytes;
    leads_.for_led(plan_.rank(), [&](int owner) {
      visit(owner, before++, begin);
      begin += contributions_bytes(owner);
    });
  }

  ProgressIndex sum_has_come(int machine) const { return leads_.steps_to(machine) - 1; }
  int received_sums() const { return owns_ ? leads_.other_machines() : 0; }
  ProgressIndex contribution_has_come(int slot, int before) const { return received_sums() + slot * led_ + before; }
  ProgressIndex sum_is_done(int before) const { return has_contributions() ? received_sums() + others_here() * led_ + before : kAtOnce; }

  Region sum_from(int machine) const {
    const std::size_t bytes = result().bytes;
    return {Buffer::scratch, sums_.offset_bytes + static_cast<std::size_t>(leads_.steps_to(machine) - 1) * bytes, bytes};
  }
  /// This machine's sum of a part. The own part's is where the result goes; another one takes the place of the first contribution.
  Region sum_here(int owner, std::size_t begin) const {
    if (!has_contributions()) return part(owner);
    return owner == plan_.rank() ? result() : Region{Buffer::scratch, begin, part(owner).bytes};
  }
  Region contribution(int owner, std::size_t begin, int slot) const {
    const std::size_t bytes = part(owner).bytes;
    return {Buffer::scratch, begin + static_cast<std::size_t>(slot) * bytes, bytes};
  }
  /// The place of a rank of this machine among the others there.
  int slot_of(int rank) const {
    const auto index = static_cast<int>(std::find(leads_.ranks().begin(), leads_.ranks().end(), rank) - leads_.ranks().begin());
    return rank < plan_.rank() ? index : index - 1;
  }

  void write_with_other(int rank) {
    const bool sends = leads_.has_part(rank) && leads_.lead_here(rank) == plan_.rank();
    const bool receives = owns_ && leads_.lead_beside(rank, plan_.rank()) == rank;
    if (!sends && !receives) return;
    plan_.with(rank);
    for_each_led([&](int owner, int before, std::size_t begin) {
      if (owner == rank) plan_.send(sum_here(owner, begin), sum_is_done(before));
    });
    if (receives) plan_.receive(sum_from(plan_.topology().machine_of(rank)));
  }

  void write_with_rank(int rank) {
    const bool sends = leads_.leads_any(rank);
    if (!sends && led_ == 0) return;
    plan_.with(rank);
    leads_.for_led(rank, [&](int owner) { plan_.send(part(owner)); });
    for_each_led([&](int owner, int, std::size_t begin) { plan_.receive(contribution(owner, begin, slot_of(rank))); });
  }

  void write_partial_combines() {
    for_each_led([&](int owner, int before, std::size_t begin) {
      plan_.combine_partially(sum_here(owner, begin));
      for (const int rank : leads_.ranks()) {
        if (rank == plan_.rank())
          plan_.add_operand(part(owner), kAtOnce);
        else
          plan_.add_operand(contribution(owner, begin, slot_of(rank)), contribution_has_come(slot_of(rank), before));
      }
    });
  }

  void write_combine() {
    plan_.combine(result(), false);
    for (int machine = 0; machine < plan_.topology().machines(); ++machine) {
      if (machine == leads_.own_machine())
        plan_.add_operand(sum_here(plan_.rank(), 0), sum_is_done(led_ - 1));
      else
        plan_.add_operand(sum_from(machine), sum_has_come(machine));
    }
  }

  PlanWriter& plan_;
  const PartLeads leads_;
  const bool owns_;
  int led_ = 0;  // parts that this rank leads
  Region sums_{}, contributions_{};
};

}  // namespace

// Each rank sends its part to the lead of that part on each other machine. Leads pass parts on to the ranks of their machines.
void plan_machines_all_gather(PlanWriter& plan) {
  const PartLeads leads(plan);
  const int own = plan.rank();
  const Region own_part = plan.own_part(Buffer::input);
  leads.for_others([&](int rank) {
    const bool sends = leads.lead_beside(rank, own) == rank && !leads.has_already(rank, own);
    const bool receives = leads.lead_here(rank) == own && !leads.has_already(own, rank);
    if (!sends && !receives) return;
    plan.with(rank);
    if (sends) plan.send(own_part);
    if (receives) plan.receive(plan.part(Buffer::output, rank));
  });
  for (const int rank : leads.ranks()) {
    if (rank == own) continue;
    plan.with(rank);
    if (!leads.has_already(rank, own)) plan.send(own_part);
    ProgressIndex next = 0;
    leads.for_led(own, [&](int owner) {
      if (owner != own) plan.send(plan.part(Buffer::output, owner), leads.has_already(own, owner) ? kAtOnce : next++);
    });
    if (!leads.has_already(own, rank)) plan.receive(plan.part(Buffer::output, rank));
    leads.for_led(rank, [&](int owner) {
      if (owner != rank) plan.receive(plan.part(Buffer::output, owner));
    });
  }
}

void plan_machines_reduce_parts(PlanWriter& plan) { PartsReduction(plan).write(); }

}  // namespace ringlet
