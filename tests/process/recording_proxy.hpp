#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ringlet::test {

/// All bytes that the two ends of one connection have sent.
struct Conversation {
  std::string from_dialler, from_acceptor;
};

/// Returns the bytes of all conversations in both directions, one after the other.
std::string all_bytes(const std::vector<Conversation>& conversations);

/// A proxy between two processes of this machine. It passes on what comes to a port of its own, and keeps all bytes of both directions.
class RecordingProxy {
 public:
  RecordingProxy();
  RecordingProxy(const RecordingProxy&) = delete;
  RecordingProxy& operator=(const RecordingProxy&) = delete;
  ~RecordingProxy();

  std::uint16_t port() const { return port_; }
  /// Begins to pass on to this port of the loopback, once. Connections that came before have waited.
  void pass_on_to(std::uint16_t port);
  /// Waits until the first connection's dialler has sent this many bytes, and returns what was sent by then. Fails the test after a minute.
  Conversation wait_for_dialler(std::size_t bytes);
  /// Ends the proxy and returns all conversations, in the order in which the connections came.
  std::vector<Conversation> finish();

 private:
  struct Pair {
    int ends[2];
    std::size_t conversation;
    bool open[2] = {true, true};
  };
  void run(std::uint16_t port);
  bool accept_one(std::uint16_t port);
  void move(Pair& pair, int from);

  int listener_ = -1;
  int stop_[2] = {-1, -1};
  std::uint16_t port_ = 0;
  std::vector<Pair> pairs_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<Conversation> conversations_;  // under mutex_
  std::thread thread_;
};

/// Sends a dialler's recorded bytes to whoever listens at this port of the loopback: the first `hello` bytes at once, the rest when the
/// answer has as many. Then reads until the other side has closed, and returns the whole answer. Fails the test after a minute.
std::string replay(std::uint16_t port, const std::string& from_dialler, std::size_t hello);

}  // namespace ringlet::test
