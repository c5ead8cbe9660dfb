#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/ports/link.hpp"
#include "wasm/cpp/browser_loop.hpp"

namespace ringlet::browser {

/// The bytes of payload that have passed over all links of a world.
struct Traffic {
  double sent = 0;
  double received = 0;
};

/// One WebSocket: a byte stream in binary messages whose boundaries mean nothing. It dials first and then serves a link.
class BrowserSocket final : public Flushed, public std::enable_shared_from_this<BrowserSocket> {
 public:
  /// Runs once, from the loop: with ok when the socket is open, else with the reason why it is not.
  using Opened = std::function<void(const Status&)>;

  /// Dials `url`; `name` is for people.
  static std::shared_ptr<BrowserSocket> dial(BrowserLoop& loop, std::shared_ptr<Traffic> traffic, const std::string& url, std::string name,
                                             Opened on_opened);
  /// Closes the host's socket, too.
  ~BrowserSocket();
  BrowserSocket(const BrowserSocket&) = delete;
  BrowserSocket& operator=(const BrowserSocket&) = delete;

  /// These do the same as the functions of Link.
  void start(LinkUser& user);
  void wake();
  void finish_sending();
  /// Closes the socket. The user is not called any more.
  void abandon();
  const std::string& name() const { return name_; }

  // The host calls these for its events, with the number that it knows the socket by. Unknown numbers are ignored.
  static void on_opened(int32_t id);
  static void on_message(int32_t id, std::size_t bytes);
  static void on_closed(int32_t id, bool clean, int code, const char* reason);

 private:
  BrowserSocket(BrowserLoop& loop, std::shared_ptr<Traffic> traffic, std::string name, Opened on_opened);
  static std::shared_ptr<BrowserSocket> find(int32_t id);

  void flush() override;
  void send_all();
  void send_parts(std::span<const ConstBytes> parts);
  void stall();
  void deliver();
  bool receive_once();
  void tell_end();
  void close();

  BrowserLoop& loop_;
  const std::shared_ptr<Traffic> traffic_;
  const std::string name_;
  const int32_t id_;
  Opened on_opened_;          // null once the dial has ended
  LinkUser* user_ = nullptr;  // null before start() and after the last call
  bool open_ = false;
  bool ended_ = false;        // the host's socket has closed
  bool end_told_ = false;     // the present user was told of the end
  Status failure_;            // not ok if the connection broke
  std::size_t waiting_ = 0;   // received bytes that the host still holds
  bool woken_again_ = false;  // wake() was called since to_send() was last called
  bool finish_requested_ = false;
  bool send_ended_ = false;
  TimerId stall_timer_ = 0;  // set while the host holds too many unsent bytes
};

}  // namespace ringlet::browser
