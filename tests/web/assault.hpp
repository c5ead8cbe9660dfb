#pragma once

#include <chrono>
#include <list>
#include <string>

#include "tests/transport/raw_socket.hpp"

namespace ringlet::test {

/// What one hostile client does, and how it should be thrown out.
struct Blow {
  std::string what;
  std::string first;
  std::string after_upgrade{};  // once it was told 101
  std::string drip{};           // then one byte of this now and then, for ever
  std::string answer{};         // how what it hears begins
  std::string last{};           // and ends
};

/// Many clients at once that keep their connections until the server ends them.
class Assault {
 public:
  explicit Assault(std::uint16_t port) : port_(port) {}

  void begin(Blow blow);
  /// Waits a little for something to happen; true while the server holds any of them.
  bool goes_on();
  /// Those that it holds.
  std::size_t held() const;
  /// After the end: checks what each heard.
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
