#include <algorithm>

#include "core/plan/part_layout.hpp"
#include "core/plan/plans.hpp"

namespace ringlet {

namespace {

/// Says how the buffer of an all-reduce is divided. Each machine has as many lead ranks as there are slices, its first ones: lead number i
/// adds up slice i of its machine's ranks, and the leads with one number exchange their sums over the network. A slice has a part for each
/// machine, whose lead owns it, or a single one that all of these leads compute.
class Slices {
 public:
  explicit Slices(const PlanWriter& plan) : plan_(plan), topology_(plan.topology()) {
    const MachineLimits& limits = topology_.machine_limits();
    const std::size_t bytes = plan.call().bytes();
    std::size_t fewest = topology_.ranks_on(0).size();
    for (int machine = 1; machine < topology_.machines(); ++machine) fewest = std::min(fewest, topology_.ranks_on(machine).size());
    count_ = static_cast<int>(std::clamp<std::size_t>(bytes / std::max<std::size_t>(limits.slice_bytes, 1), 1, fewest));
    const auto machines = static_cast<double>(topology_.machines());
    const double excess = static_cast<double>(bytes) * (machines - 1) * (machines - 2) / machines;
    is_exchanged_ = bytes <= limits.exchange_bytes && excess <= static_cast<double>(limits.excess_bytes);
    is_chained_ = bytes > limits.chain_bytes;
  }

  int count() const { return count_; }
  /// Whether machines send each other whole slices, so that every lead computes its whole slice.
  bool is_exchanged() const { return is_exchanged_; }
  /// Whether the ranks of a machine add along a chain; else each lead gets all contributions and adds them in rank order.
  bool is_chained() const { return is_chained_; }
  int parts() const { return is_exchanged_ ? 1 : topology_.machines(); }
  Region part(Buffer buffer, int slice, int part) const {
    const ElementRange all = part_of(plan_.call().elements(), count_, slice);
    const ElementRange range = part_of(all.count(), parts(), part);
    const std::size_t width = plan_.call().element_bytes();
    return {buffer, (all.begin + range.begin) * width, range.count() * width};
  }
  /// The part that stands at `place` in the order in which a machine moves parts: its own one is the last.
  int part_at(int machine, int place) const { return (machine + 1 + place) % parts(); }
  int place_of(int machine, int part) const { return is_exchanged_ ? 0 : (part + 2 * parts() - machine - 1) % parts(); }

 private:
  const PlanWriter& plan_;
  const Topology& topology_;
  int count_ = 1;
  bool is_exchanged_ = false, is_chained_ = false;
};

/// Writes one rank's plan. Receives are numbered in this order: from the leads of other machines, then from the ranks of this one. Each of
/// these sends its contributions, or what comes along the chain, then the results of its slice.
class MachinesReduction {
 public:
  explicit MachinesReduction(PlanWriter& plan)
      : plan_(plan),
        topology_(plan.topology()),
        slices_(plan),
        machine_(topology_.machine_of(plan.rank())),
        ranks_(topology_.ranks_on(machine_)),
        own_(static_cast<int>(std::find(ranks_.begin(), ranks_.end(), plan.rank()) - ranks_.begin())) {}

  void write() {
    take_scratch();
    for (int machine = 0; machine < topology_.machines() && leads(own_); ++machine)
      if (machine != machine_) write_with_machine(machine);
    for (int other = 0; other < on_machine(); ++other)
      if (other != own_) write_with_rank(other);
    if (leads(own_)) write_combines();
  }

 private:
  int on_machine() const { return static_cast<int>(ranks_.size()); }
  bool leads(int index) const { return index < slices_.count(); }
  int wrapped(int index) const { return (index % on_machine() + on_machine()) % on_machine(); }

  // --- numbers of receives ---

  int receives_per_machine() const { return slices_.is_exchanged() ? 1 : 2; }
  /// The place of another machine among the others.
  int place_of_machine(int machine) const { return machine < machine_ ? machine : machine - 1; }
  int first_from_machine(int machine) const { return place_of_machine(machine) * receives_per_machine(); }
  /// The slices that one rank of this machine passes to another to be added.
  int slices_between(int from, int to) const {
    if (!slices_.is_chained()) return leads(to) ? 1 : 0;
    if (to != wrapped(from + 1)) return 0;
    return slices_.count() - (leads(from) ? 1 : 0);
  }
  int receives_from(int other) const { return (slices_between(other, own_) + (leads(other) ? 1 : 0)) * slices_.parts(); }
  /// The first receive from a rank of this machine; that of the number of ranks is the number of all receives.
  int first_from(int other) const {
    int number = leads(own_) ? (topology_.machines() - 1) * receives_per_machine() : 0;
    for (int before = 0; before < other; ++before) number += before == own_ ? 0 : receives_from(before);
    return number;
  }
  int all_receives() const { return first_from(on_machine()); }
  /// The combine that adds up the part of the own slice that this machine owns comes behind those of the machine's own sums.
  int last_combine() const { return all_receives() + (adds_contributions() ? slices_.parts() : 0); }
  bool adds_contributions() const { return on_machine() > 1 && !slices_.is_chained(); }

  // --- regions ---

  void take_scratch() {
    if (!leads(own_)) return;
    const int own_part = slices_.is_exchanged() ? 0 : machine_;
    const std::size_t bytes = slices_.part(Buffer::input, own_, own_part).bytes;
    from_machines_ = plan_.take_scratch(static_cast<std::size_t>(topology_.machines() - 1) * bytes);
    // A result must not take the place of a sum that other machines have still to be sent.
    if (slices_.is_exchanged() && on_machine() > 1) sum_ = plan_.take_scratch(bytes);
    if (!adds_contributions()) return;
    std::size_t slice = 0;
    for (int part = 0; part < slices_.parts(); ++part) slice += slices_.part(Buffer::input, own_, part).bytes;
    contributions_ = plan_.take_scratch(static_cast<std::size_t>(on_machine() - 1) * slice);
  }
  Region from_machine(int machine) const {
    const std::size_t bytes = from_machines_.bytes / static_cast<std::size_t>(topology_.machines() - 1);
    return {Buffer::scratch, from_machines_.offset_bytes + static_cast<std::size_t>(place_of_machine(machine)) * bytes, bytes};
  }
  Region contribution(int other, int part) const {
    const std::size_t of_rank = contributions_.bytes / static_cast<std::size_t>(on_machine() - 1);
    const std::size_t begin = slices_.part(Buffer::input, own_, 0).offset_bytes;
    const Region within = slices_.part(Buffer::input, own_, part);
    const auto slot = static_cast<std::size_t>(other < own_ ? other : other - 1);
    return {Buffer::scratch, contributions_.offset_bytes + slot * of_rank + within.offset_bytes - begin, within.bytes};
  }
  /// The machine's sum of a part of the own slice.
  Region sum(int part) const {
    if (on_machine() == 1) return slices_.part(Buffer::input, own_, part);
    return slices_.is_exchanged() ? sum_ : slices_.part(Buffer::output, own_, part);
  }
  ProgressIndex sum_is_done(int part) const {
    const int place = slices_.place_of(machine_, part);
    if (on_machine() == 1) return kAtOnce;
    if (!slices_.is_chained()) return all_receives() + place;
    // The own slice comes last along the chain.
    const int before = wrapped(own_ - 1);
    return first_from(before) + (slices_between(before, own_) - 1) * slices_.parts() + place;
  }
  /// What has to be done before the result of a part of the own slice may leave.
  ProgressIndex result_is_here(int part) const {
    return slices_.is_exchanged() || part == machine_ ? last_combine() : first_from_machine(part) + 1;
  }
  int result_at(int place) const { return slices_.is_exchanged() ? 0 : (machine_ + place) % slices_.parts(); }

  // --- steps ---

  void write_with_machine(int machine) {
    plan_.with(topology_.ranks_on(machine)[static_cast<std::size_t>(own_)]);
    const int part = slices_.is_exchanged() ? 0 : machine;
    plan_.send(sum(part), sum_is_done(part));
    plan_.receive(from_machine(machine));
    if (slices_.is_exchanged()) return;
    plan_.send(slices_.part(Buffer::output, own_, machine_), last_combine());
    plan_.receive(slices_.part(Buffer::output, own_, machine));
  }

  void write_with_rank(int other) {
    plan_.with(ranks_[static_cast<std::size_t>(other)]);
    if (slices_.is_chained()) {
      if (other == wrapped(own_ + 1)) send_along_chain();
      if (other == wrapped(own_ - 1)) receive_along_chain();
    } else {
      for (int place = 0; place < slices_.parts(); ++place) {
        const int part = slices_.part_at(machine_, place);
        if (leads(other)) plan_.send(slices_.part(Buffer::input, other, part));
        if (leads(own_)) plan_.receive(contribution(other, part));
      }
    }
    for (int place = 0; place < slices_.parts(); ++place) {
      const int part = result_at(place);
      if (leads(own_)) plan_.send(slices_.part(Buffer::output, own_, part), result_is_here(part));
      if (leads(other)) plan_.receive(slices_.part(Buffer::output, other, part));
    }
  }

  /// Slice i goes from the rank behind lead i around to it. Each rank begins with the slice of the lead before it, as in a ring.
  void send_along_chain() {
    ProgressIndex received = first_from(wrapped(own_ - 1));
    for (int step = 0; step < on_machine() - 1; ++step) {
      const int slice = wrapped(own_ - 1 - step);
      if (!leads(slice)) continue;
      for (int place = 0; place < slices_.parts(); ++place) {
        const int part = slices_.part_at(machine_, place);
        step == 0 ? plan_.send(slices_.part(Buffer::input, slice, part))
                  : plan_.send(slices_.part(Buffer::output, slice, part), received++);
      }
    }
  }

  void receive_along_chain() {
    for (int step = 0; step < on_machine() - 1; ++step) {
      const int slice = wrapped(own_ - 2 - step);
      if (!leads(slice)) continue;
      for (int place = 0; place < slices_.parts(); ++place) {
        const int part = slices_.part_at(machine_, place);
        const Region into = slice == own_ ? sum(part) : slices_.part(Buffer::output, slice, part);
        plan_.receive_to_reduce(into, slices_.part(Buffer::input, slice, part), false);
      }
    }
  }

  void write_combines() {
    for (int place = 0; place < slices_.parts() && adds_contributions(); ++place) {
      const int part = slices_.part_at(machine_, place);
      plan_.combine_partially(sum(part));
      for (int rank = 0; rank < on_machine(); ++rank) {
        if (rank == own_)
          plan_.add_operand(slices_.part(Buffer::input, own_, part), kAtOnce);
        else
          plan_.add_operand(contribution(rank, part), first_from(rank) + place);
      }
    }
    const int own_part = slices_.is_exchanged() ? 0 : machine_;
    // In place, a rank that is alone on its machine sends its sum from where the result goes.
    plan_.combine(slices_.part(Buffer::output, own_, own_part), slices_.is_exchanged() && on_machine() == 1 && plan_.in_place());
    for (int machine = 0; machine < topology_.machines(); ++machine) {
      if (machine == machine_)
        plan_.add_operand(sum(own_part), sum_is_done(own_part));
      else
        plan_.add_operand(from_machine(machine), first_from_machine(machine));
    }
  }

  PlanWriter& plan_;
  const Topology& topology_;
  const Slices slices_;
  const int machine_;
  const std::vector<int>& ranks_;  // of this machine
  const int own_;                  // this rank's index among them
  Region from_machines_{}, contributions_{}, sum_{};
};

/// The rank that speaks to the network in a broadcast.
int lead_of_broadcast(const PlanWriter& plan, int machine) {
  const int root = plan.call().root;
  return machine == plan.topology().machine_of(root) ? root : plan.topology().ranks_on(machine).front();
}

}  // namespace

void plan_machines_all_reduce(PlanWriter& plan) { MachinesReduction(plan).write(); }

// The root sends to a lead rank of each machine, or large buffers to the next machine's, which passes them on. Leads send to the ranks of
// their machines.
void plan_machines_broadcast(PlanWriter& plan) {
  const Topology& topology = plan.topology();
  const int machines = topology.machines();
  const int own = topology.machine_of(plan.rank());
  const int first = topology.machine_of(plan.call().root);
  const bool is_chained = plan.call().bytes() > topology.machine_limits().chain_bytes;
  const auto before = [&](int machine) { return is_chained ? (machine + machines - 1) % machines : first; };
  const int lead = lead_of_broadcast(plan, own);
  const ProgressIndex here = plan.is_root() ? kAtOnce : 0;
  const Region values = plan.whole(plan.is_root() ? Buffer::input : Buffer::output);
  if (!plan.is_root()) {
    plan.with(plan.rank() == lead ? lead_of_broadcast(plan, before(own)) : lead);
    plan.receive(values);
  }
  if (plan.rank() != lead) return;
  for (int machine = 0; machine < machines; ++machine) {
    if (machine == first || machine == own || before(machine) != own) continue;
    plan.with(lead_of_broadcast(plan, machine));
    plan.send(values, here);
  }
  for (const int rank : topology.ranks_on(own)) {
    if (rank == lead) continue;
    plan.with(rank);
    plan.send(values, here);
  }
}

}  // namespace ringlet
