#pragma once

#include <chrono>
#include <list>
#include <string>

#include "tests/transport/raw_socket.hpp"

namespace ringlet::test {

/// What one hostile client sends, and how the server should throw it out.
struct Blow {
  std::string what;
  std::string first;
  std::string after_upgrade{};  // sent after the answer 101
  std::string drip{};           // then one byte of this is sent now and then, for ever
  std::string answer{};         // what the client must hear begins with this
  std::string last{};           // and ends with this
};

/// Many clients at once that keep their connections until the server ends them.
class Assault {
 public:
  explicit Assault(std::uint16_t port) : port_(port) {}

  void begin(Blow blow);
  /// Waits a little for something to happen. Returns whether the server still holds any of the clients.
  bool goes_on();
  /// Returns how many of the clients the server holds.
  std::size_t held() const;
  /// Checks what each client heard, after the end.
  void check() const;

 private:
  struct Client {
    Blow blow;
    RawSocket socket;
    std::string heard{};
    bool upgraded = false;
    bool over = false;
    std::size_t dripped = 0;
  };
  static void say(Client& client, const std::string& text);
  static void hear(Client& client);
  void drip();

  const std::uint16_t port_;
  std::list<Client> clients_;
  std::chrono::steady_clock::time_point next_drip_{};
};

}  // namespace ringlet::test
