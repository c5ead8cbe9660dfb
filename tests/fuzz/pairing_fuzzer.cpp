#include <array>
#include <cstdlib>

#include "tools/pairing/newcomer_session.hpp"
#include "tools/pairing/pairing_desk.hpp"

using namespace ringlet;
using namespace ringlet::pairing;

namespace {

constexpr std::string_view kGreeting{"RNGP\x02", 5};

ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Checks that a message is unchanged after encoding and decoding it once more.
void check_codec(const std::string& bytes) {
  const auto message = decode(bytes);
  if (!message) return;
  const std::string again = encode(*message);
  if (again.size() > kMaxMessageBytes || decode(again) != message) std::abort();
}

/// A host and a newcomer that both talk with someone who does not know the code; neither may believe it.
class Pair {
 public:
  void host_hears(std::size_t visitor, const std::string& bytes) {
    auto& id = visitors_[visitor % visitors_.size()];
    if (!id || !desk_.has(*id)) id = desk_.admit("10.0.0." + std::to_string(visitor % visitors_.size()), now_);
    if (!id) return;
    if (greeted_[visitor % visitors_.size()] != *id) desk_.receive(*id, std::as_bytes(std::span(kGreeting)), now_);
    greeted_[visitor % visitors_.size()] = *id;
    desk_.receive(*id, bytes_of(bytes), now_);
    if (desk_.take_outgoing(*id).size() > 2 * kMaxMessageBytes) std::abort();
  }
  void newcomer_hears(const std::string& bytes) {
    newcomer_.receive(bytes_of(bytes));
    if (newcomer_.take_outgoing().size() > 2 * kMaxMessageBytes) std::abort();
  }
  void pass(Duration time) {
    now_ = now_ + time;
    desk_.advance(now_);
  }
  void check() const {
    const auto state = desk_.state();
    if (state == PairingDesk::State::hands_out || state == PairingDesk::State::paired || state == PairingDesk::State::unconfirmed)
      std::abort();
    if (desk_.wrong_codes() > 3 || desk_.codes() > 3) std::abort();
    if (newcomer_.stage() == NewcomerSession::Stage::delivered || !newcomer_.token().empty()) std::abort();
  }

 private:
  Instant now_{Duration::seconds(1).nanoseconds};
  const Secret typed_{"48217305"};
  // The code of this desk is another than the newcomer's, so that neither side sends what could be reflected into a proof.
  PairingDesk desk_{{.group = "home", .name = "attic", .machine_key = std::string(kMachineKeyBytes, 'h')},
                    Secret("2k4x-the-token-of-the-group"),
                    fill_random,
                    now_};
  NewcomerSession newcomer_{"home", {"cellar", std::string(kMachineKeyBytes, 'n')}, typed_};
  std::array<std::optional<PairingDesk::Id>, 3> visitors_;
  std::array<PairingDesk::Id, 3> greeted_{};
};

}  // namespace

// The input is pieces. Each follows two bytes of length and one that says who receives it, and whether the greeting comes before it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Pair pair;
  bool greeted = false;
  // Each conversation costs two exponentiations, and more conversations find nothing new.
  for (int pieces = 0; size >= 3 && pieces < 8; ++pieces) {
    const std::size_t length = std::min<std::size_t>(size - 3, data[0] | data[1] << 8);
    const unsigned who = data[2];
    const std::string piece(reinterpret_cast<const char*>(data + 3), length);
    data += 3 + length;
    size -= 3 + length;
    check_codec(piece);
    // Most pieces become whole messages, since the fuzzer would take long to guess their lengths.
    std::string said = piece;
    if ((who & 8) == 0 && piece.size() <= kMaxMessageBytes)
      said = std::string{static_cast<char>(piece.size() & 0xff), static_cast<char>(piece.size() >> 8)} + piece;
    if ((who & 3) == 3) {
      pair.newcomer_hears(greeted || (who & 4) != 0 ? said : std::string(kGreeting) + said);
      greeted = true;
    } else {
      pair.host_hears(who & 3, said);
    }
    if ((who & 16) != 0) pair.pass(Duration::milliseconds(1'500));
    pair.check();
  }
  return 0;
}
