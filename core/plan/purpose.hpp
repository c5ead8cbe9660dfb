#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/plan/collective_table.hpp"

namespace ringlet {

/// What a collective serves. All ranks have to call it for the same. The numbers are part of the wire format: append only.
enum class Purpose : std::uint8_t {
  program = 0,    // the program's own call
  gradients = 1,  // an average of several tensors, or a part of it
  weights = 2,    // the sum of the ranks' weights, which comes before such averages
  tree = 3,       // the ranks compare their trees of tensors, where one of them is new
  shards = 4,
  split = 5,
  agreement = 6,
  growth = 7,  // processes that knock are taken in
  state = 8,   // of a training, for ranks that lack it
};

struct PurposeFacts {
  Purpose purpose;
  std::string_view text;  // behind "for"
};
inline constexpr std::array kPurposes{PurposeFacts{Purpose::program, ""},
                                      PurposeFacts{Purpose::gradients, "an average"},
                                      PurposeFacts{Purpose::weights, "the weights of an average"},
                                      PurposeFacts{Purpose::tree, "a comparison of trees"},
                                      PurposeFacts{Purpose::shards, "shards"},
                                      PurposeFacts{Purpose::split, "split()"},
                                      PurposeFacts{Purpose::agreement, "agree()"},
                                      PurposeFacts{Purpose::growth, "admitting others"},
                                      PurposeFacts{Purpose::state, "the state of a training"}};
static_assert(detail::in_order(kPurposes, &PurposeFacts::purpose) && !is_enumerator<static_cast<Purpose>(kPurposes.size())>);

constexpr bool is_valid(Purpose value) noexcept { return static_cast<std::size_t>(value) < kPurposes.size(); }
constexpr std::string_view text_of(Purpose purpose) noexcept { return kPurposes[static_cast<std::size_t>(purpose)].text; }

}  // namespace ringlet
