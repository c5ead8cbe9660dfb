#include "native/elastic/told_rows.hpp"

#include <nlohmann/json.hpp>
#include <ringlet/error.hpp>

namespace ringlet::native {

std::string ToldRows::text() const {
  auto moves = nlohmann::json::array();
  for (const RowMove& move : missing) moves.push_back({move.tensor, move.rows.begin, move.rows.end, move.source, move.target});
  return nlohmann::json{generation,      step, rank, is_whole, is_fresh, weight, machine, spread.weights(), spread.machines(),
                        spread.copies(), moves}
      .dump();
}

ToldRows ToldRows::parse(const std::string& text, std::size_t tensors) {
  const auto json = nlohmann::json::parse(text);
  auto weights = json.at(7).get<std::vector<double>>();
  auto machines = json.at(8).get<std::vector<int>>();
  const int rank = json.at(2).get<int>();
  bool fits = weights.size() == machines.size() && rank >= 0 && static_cast<std::size_t>(rank) < weights.size();
  std::vector<RowMove> missing;
  for (const auto& move : json.at(10)) {
    missing.push_back({move.at(0).get<std::size_t>(),
                       {move.at(1).get<std::int64_t>(), move.at(2).get<std::int64_t>()},
                       move.at(3).get<int>(),
                       0,
                       move.at(4).get<int>(),
                       1});
    fits = fits && missing.back().tensor < tensors;
  }
  if (!fits) throw MismatchError({Errc::mismatch, "what a rank says of its rows does not fit together: it runs another build"});
  return {json.at(0).get<std::int64_t>(),
          json.at(1).get<std::uint64_t>(),
          rank,
          json.at(3).get<bool>(),
          json.at(4).get<bool>(),
          json.at(5).get<double>(),
          json.at(6).get<int>(),
          RowSpread(std::move(weights), std::move(machines), json.at(9).get<int>()),
          std::move(missing)};
}

}  // namespace ringlet::native
