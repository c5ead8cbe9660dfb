#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ringlet::test {

/// All that the two ends of one connection have said.
struct Conversation {
  std::string from_dialler, from_acceptor;
};

/// Both directions of all of them, one behind the other.
std::string all_bytes(const std::vector<Conversation>& conversations);

/// Stands between two processes of this machine: passes on what it gets at a port of its own, and keeps all of it, both ways.
class RecordingProxy {
 public:
  RecordingProxy();
  RecordingProxy(const RecordingProxy&) = delete;
  RecordingProxy& operator=(const RecordingProxy&) = delete;
  ~RecordingProxy();

  std::uint16_t port() const { return port_; }
  /// Begins to pass on, to this port of the loopback. Once; who came before has waited.
  void pass_on_to(std::uint16_t port);
  /// Waits until the first connection's dialler has said so much; fails the test after a minute. What was said by then.
  Conversation wait_for_dialler(std::size_t bytes);
  /// Ends it. All that passed, in the order in which they came.
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

/// Says to who listens at this port of the loopback what a dialler has said, the second half of it once the answer is as long as `hello`
/// bytes, and reads until the other side has closed. All that it was answered; fails the test after a minute.
std::string replay(std::uint16_t port, const std::string& from_dialler, std::size_t hello);

}  // namespace ringlet::test
