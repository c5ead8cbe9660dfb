#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ringlet/dtype.hpp>
#include <string_view>
#include <utility>

#include "core/base/enumerators.hpp"

// All collectives, and the forms in which callers call them. Plans, requests, records and the calls of C and JavaScript are derived from
// these rows, or fail to compile if they lack one.
namespace ringlet {

/// The kinds of collectives. The numbers are part of the wire format: append only.
enum class CollectiveKind : std::uint8_t {
  all_reduce = 0,
  reduce_scatter = 1,
  all_gather = 2,
  broadcast = 3,
  barrier = 4,
  reduce = 5,
  gather = 6,
  scatter = 7,
  all_to_all = 8,
};

/// How a collective moves its bytes. The numbers are part of the wire format: append only.
enum class Algorithm : std::uint8_t {
  exchange = 0,  // every rank sends everything to every other: one step
  direct = 1,    // to the owner of each part and back, or between the root and each rank: two steps or one
  ring = 2,      // along the ring (broadcast, reduce: a chain), pipelined
  doubling = 3,  // step s exchanges all that was gathered so far with rank ^ 2^s (core/plan/gathering.hpp)
  hub = 4,       // as direct, but native ranks own all parts: nothing passes between two guests
  machines = 5,  // ranks of one machine first reduce or share among themselves; each byte passes the network once for the machine
};

struct AlgorithmFacts {
  Algorithm algorithm;
  std::string_view name;
};
inline constexpr std::array kAlgorithms{AlgorithmFacts{Algorithm::exchange, "exchange"}, AlgorithmFacts{Algorithm::direct, "direct"},
                                        AlgorithmFacts{Algorithm::ring, "ring"},         AlgorithmFacts{Algorithm::doubling, "doubling"},
                                        AlgorithmFacts{Algorithm::hub, "hub"},           AlgorithmFacts{Algorithm::machines, "machines"}};
inline constexpr std::size_t kAlgorithmCount = kAlgorithms.size();

class AlgorithmSet {
 public:
  constexpr AlgorithmSet(std::initializer_list<Algorithm> algorithms) {
    for (const Algorithm each : algorithms) bits_ |= 1U << static_cast<unsigned>(each);
  }
  constexpr bool has(Algorithm algorithm) const { return (bits_ >> static_cast<unsigned>(algorithm) & 1U) != 0; }

 private:
  unsigned bits_ = 0;
};

/// Whether input and output of a collective may share memory.
enum class InPlace : std::uint8_t {
  never,
  whole,     // the output may be the input
  own_part,  // the smaller of the two may be this rank's part of the other
};

struct CollectiveFacts {
  CollectiveKind kind;
  InPlace in_place;
  AlgorithmSet algorithms;
};

/// The rows are in the order of the kinds' numbers.
inline constexpr std::array kCollectives{
    CollectiveFacts{CollectiveKind::all_reduce,
                    InPlace::whole,
                    {Algorithm::exchange, Algorithm::doubling, Algorithm::direct, Algorithm::ring, Algorithm::hub, Algorithm::machines}},
    CollectiveFacts{CollectiveKind::reduce_scatter, InPlace::never, {Algorithm::direct, Algorithm::ring, Algorithm::machines}},
    CollectiveFacts{CollectiveKind::all_gather, InPlace::own_part, {Algorithm::direct, Algorithm::ring, Algorithm::machines}},
    CollectiveFacts{CollectiveKind::broadcast, InPlace::whole, {Algorithm::direct, Algorithm::ring, Algorithm::hub, Algorithm::machines}},
    CollectiveFacts{CollectiveKind::barrier, InPlace::whole, {Algorithm::exchange, Algorithm::doubling, Algorithm::hub}},
    CollectiveFacts{CollectiveKind::reduce, InPlace::whole, {Algorithm::direct, Algorithm::ring, Algorithm::hub, Algorithm::machines}},
    CollectiveFacts{CollectiveKind::gather, InPlace::own_part, {Algorithm::direct}},
    CollectiveFacts{CollectiveKind::scatter, InPlace::own_part, {Algorithm::direct}},
    CollectiveFacts{CollectiveKind::all_to_all, InPlace::never, {Algorithm::direct}},
};
inline constexpr std::size_t kCollectiveKindCount = kCollectives.size();

/// The form in which a caller calls a collective: a kind, its mean, or the `_v` form of either, whose parts have sizes of their own.
enum class CollectiveForm : std::uint8_t {
  all_reduce,
  all_mean,
  reduce_scatter,
  reduce_scatter_v,
  mean_scatter,
  mean_scatter_v,
  all_gather,
  all_gather_v,
  broadcast,
  barrier,
  reduce,
  reduce_mean,
  gather,
  gather_v,
  scatter,
  scatter_v,
  all_to_all,
  all_to_all_v,
};

/// The arguments of a call, besides stream and timeout.
enum class Argument : std::uint8_t {
  op,           // how elements are reduced
  input,        // read
  output,       // written
  root_input,   // read on the root, ignored elsewhere
  root_output,  // written on the root, ignored elsewhere
  values,       // read, written, or both
  counts,       // rows of each rank's part, the same on all ranks
  send_counts,  // rows that go to each rank
  receive_counts,
  root,
};

class ArgumentList {
 public:
  static constexpr std::size_t kMax = 5;
  constexpr ArgumentList(std::initializer_list<Argument> arguments) {
    for (const Argument each : arguments) all_[count_++] = each;
  }
  constexpr const Argument* begin() const { return all_.data(); }
  constexpr const Argument* end() const { return all_.data() + count_; }
  constexpr bool has(Argument argument) const {
    for (const Argument each : *this)
      if (each == argument) return true;
    return false;
  }

 private:
  std::array<Argument, kMax> all_{};
  std::size_t count_ = 0;
};

struct CollectiveFormFacts {
  CollectiveForm form;
  std::string_view name;
  CollectiveKind kind;
  ArgumentList arguments;
  std::string_view text;  // description for the C header
};

/// The rows are in the order of the forms; the first form of each kind has the kind's own name. Code that runs must not index this array,
/// because programs would then contain the texts.
inline constexpr std::array kCollectiveForms{
    CollectiveFormFacts{
        CollectiveForm::all_reduce,
        "all_reduce",
        CollectiveKind::all_reduce,
        {Argument::op, Argument::input, Argument::output},
        "Reduces over all ranks; every rank ends with the same bits. `output` has the dtype and element count of `input`, and "
        "is the same memory or does not overlap it."},
    CollectiveFormFacts{CollectiveForm::all_mean,
                        "all_mean",
                        CollectiveKind::all_reduce,
                        {Argument::input, Argument::output},
                        "As all_reduce: the mean over all ranks. Floating dtypes only."},
    CollectiveFormFacts{
        CollectiveForm::reduce_scatter,
        "reduce_scatter",
        CollectiveKind::reduce_scatter,
        {Argument::op, Argument::input, Argument::output},
        "Rank r gets the r-th part of axis 0 of the reduced input; where the rows do not divide by the ranks the first ranks "
        "get one more. `output` must not overlap `input`."},
    CollectiveFormFacts{CollectiveForm::reduce_scatter_v,
                        "reduce_scatter_v",
                        CollectiveKind::reduce_scatter,
                        {Argument::op, Argument::input, Argument::output, Argument::counts},
                        "The same with counts[r] rows for rank r."},
    CollectiveFormFacts{CollectiveForm::mean_scatter,
                        "mean_scatter",
                        CollectiveKind::reduce_scatter,
                        {Argument::input, Argument::output},
                        "As reduce_scatter: the mean over all ranks. Floating dtypes only."},
    CollectiveFormFacts{CollectiveForm::mean_scatter_v,
                        "mean_scatter_v",
                        CollectiveKind::reduce_scatter,
                        {Argument::input, Argument::output, Argument::counts},
                        "The same with counts[r] rows for rank r."},
    CollectiveFormFacts{CollectiveForm::all_gather,
                        "all_gather",
                        CollectiveKind::all_gather,
                        {Argument::input, Argument::output},
                        "Concatenates every rank's `input` along axis 0, in rank order. Same shape on all ranks."},
    CollectiveFormFacts{CollectiveForm::all_gather_v,
                        "all_gather_v",
                        CollectiveKind::all_gather,
                        {Argument::input, Argument::output, Argument::counts},
                        "The same with counts[r] rows of rank r. In place: `input` is this rank's part of `output`."},
    CollectiveFormFacts{CollectiveForm::broadcast,
                        "broadcast",
                        CollectiveKind::broadcast,
                        {Argument::values, Argument::root},
                        "Copies `values` of rank `root` to every rank."},
    CollectiveFormFacts{CollectiveForm::barrier, "barrier", CollectiveKind::barrier, {}, "Ends once every rank has called it."},
    CollectiveFormFacts{CollectiveForm::reduce,
                        "reduce",
                        CollectiveKind::reduce,
                        {Argument::op, Argument::input, Argument::root_output, Argument::root},
                        "Reduces over all ranks into `output` of rank `root`. Elsewhere `output` is not looked at and may be NULL."},
    CollectiveFormFacts{CollectiveForm::reduce_mean,
                        "reduce_mean",
                        CollectiveKind::reduce,
                        {Argument::input, Argument::root_output, Argument::root},
                        "As reduce: the mean over all ranks. Floating dtypes only."},
    CollectiveFormFacts{CollectiveForm::gather,
                        "gather",
                        CollectiveKind::gather,
                        {Argument::input, Argument::root_output, Argument::root},
                        "Rank `root` gets every rank's `input`, concatenated along axis 0. Elsewhere `output` is not looked at and may be "
                        "NULL."},
    CollectiveFormFacts{CollectiveForm::gather_v,
                        "gather_v",
                        CollectiveKind::gather,
                        {Argument::input, Argument::root_output, Argument::counts, Argument::root},
                        "The same with counts[r] rows of rank r."},
    CollectiveFormFacts{
        CollectiveForm::scatter,
        "scatter",
        CollectiveKind::scatter,
        {Argument::root_input, Argument::output, Argument::root},
        "Rank r gets the r-th part along axis 0 of `input` of rank `root`; the rows must divide by the ranks. Elsewhere than "
        "on the root `input` is not looked at and may be NULL."},
    CollectiveFormFacts{CollectiveForm::scatter_v,
                        "scatter_v",
                        CollectiveKind::scatter,
                        {Argument::root_input, Argument::output, Argument::counts, Argument::root},
                        "The same with counts[r] rows for rank r."},
    CollectiveFormFacts{CollectiveForm::all_to_all,
                        "all_to_all",
                        CollectiveKind::all_to_all,
                        {Argument::input, Argument::output},
                        "The r-th part along axis 0 of `input` goes to rank r; the r-th part of `output` comes from rank r. The rows must "
                        "divide by the ranks. `output` must not overlap `input`."},
    CollectiveFormFacts{
        CollectiveForm::all_to_all_v,
        "all_to_all_v",
        CollectiveKind::all_to_all,
        {Argument::input, Argument::output, Argument::send_counts, Argument::receive_counts},
        "The same with send_counts[r] rows to rank r and receive_counts[r] from it; these are each rank's own, one per rank "
        "of the group."},
};
inline constexpr std::size_t kCollectiveFormCount = kCollectiveForms.size();

/// Properties of a kind that are derived from its forms.
struct CollectiveTraits {
  std::string_view name{};
  bool reduces = false;
  bool has_root = false;
  bool has_counts = false;       // takes the rows of every rank's part
  bool has_pair_counts = false;  // takes the rows that each pair of ranks agrees about
};

namespace detail {

static_assert(in_order(kAlgorithms, &AlgorithmFacts::algorithm) && !is_enumerator<static_cast<Algorithm>(kAlgorithmCount)>);
static_assert(in_order(kCollectives, &CollectiveFacts::kind) && !is_enumerator<static_cast<CollectiveKind>(kCollectiveKindCount)>);
static_assert(in_order(kCollectiveForms, &CollectiveFormFacts::form) && !is_enumerator<static_cast<CollectiveForm>(kCollectiveFormCount)>);

constexpr std::array<CollectiveTraits, kCollectiveKindCount> make_traits() {
  std::array<CollectiveTraits, kCollectiveKindCount> all{};
  for (const CollectiveFormFacts& form : kCollectiveForms) {
    CollectiveTraits& traits = all[static_cast<std::size_t>(form.kind)];
    if (traits.name.empty()) traits.name = form.name;
    traits.reduces |= form.arguments.has(Argument::op);
    traits.has_root |= form.arguments.has(Argument::root);
    traits.has_counts |= form.arguments.has(Argument::counts);
    traits.has_pair_counts |= form.arguments.has(Argument::send_counts);
  }
  return all;
}
inline constexpr std::array<CollectiveTraits, kCollectiveKindCount> kCollectiveTraits = make_traits();

constexpr bool every_kind_has_a_form() {
  for (const CollectiveTraits& traits : kCollectiveTraits)
    if (traits.name.empty()) return false;
  return true;
}
static_assert(every_kind_has_a_form());

constexpr auto make_argument_lists() {
  return [&]<std::size_t... form>(std::index_sequence<form...>) {
    return std::array{kCollectiveForms[form].arguments...};
  }(std::make_index_sequence<kCollectiveFormCount>());
}
inline constexpr std::array<ArgumentList, kCollectiveFormCount> kArgumentLists = make_argument_lists();

}  // namespace detail

// These functions need a valid value.

constexpr const CollectiveFacts& facts_of(CollectiveKind kind) noexcept { return kCollectives[static_cast<std::size_t>(kind)]; }
constexpr const CollectiveTraits& traits_of(CollectiveKind kind) noexcept {
  return detail::kCollectiveTraits[static_cast<std::size_t>(kind)];
}
constexpr const ArgumentList& arguments_of(CollectiveForm form) noexcept { return detail::kArgumentLists[static_cast<std::size_t>(form)]; }

constexpr std::string_view name_of(CollectiveKind kind) noexcept { return traits_of(kind).name; }
constexpr std::string_view name_of(Algorithm algorithm) noexcept { return kAlgorithms[static_cast<std::size_t>(algorithm)].name; }
constexpr bool reduces(CollectiveKind kind) noexcept { return traits_of(kind).reduces; }

constexpr bool is_valid(CollectiveKind value) noexcept { return static_cast<std::size_t>(value) < kCollectiveKindCount; }
constexpr bool is_valid(Algorithm value) noexcept { return static_cast<std::size_t>(value) < kAlgorithmCount; }
constexpr bool is_valid(CollectiveForm value) noexcept { return static_cast<std::size_t>(value) < kCollectiveFormCount; }

}  // namespace ringlet
