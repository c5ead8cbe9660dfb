#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace ringlet::test {

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
  /// Ends it. All that passed.
  std::string finish();

 private:
  struct Pair {
    int ends[2];
    bool open[2] = {true, true};
  };
  void run(std::uint16_t port);
  bool accept_one(std::uint16_t port);
  void move(Pair& pair, int from);

  int listener_ = -1;
  int stop_[2] = {-1, -1};
  std::uint16_t port_ = 0;
  std::vector<Pair> pairs_;
  std::string passed_;
  std::thread thread_;
};

}  // namespace ringlet::test
