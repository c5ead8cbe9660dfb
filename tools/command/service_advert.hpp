#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ringlet::command {

struct Service {
  std::string name;
  std::uint16_t port = 0;
  std::vector<std::pair<std::string, std::string>> facts{};  // the TXT record, for everyone to see; pairs that do not fit are left out
};

/// Makes the system's DNS-SD responder (Bonjour; Avahi, by its compatible library) tell the network of a service of type `_ringlet._tcp`,
/// as long as it lives. Where there is no responder, or it ends, it is tried again every few seconds. Owned by one thread.
class ServiceAdvert {
 public:
  /// `on_told(name)` runs on a thread of its own whenever the responder has taken the service, under a name that may have got a number
  /// where another has it.
  ServiceAdvert(Service service, std::function<void(const std::string& name)> on_told);
  /// Waits until the responder has been told.
  ~ServiceAdvert();
  ServiceAdvert(const ServiceAdvert&) = delete;
  ServiceAdvert& operator=(const ServiceAdvert&) = delete;

 private:
  void run();
  void tell();
  bool stopping_within(int milliseconds);

  const Service service_;
  const std::function<void(const std::string&)> on_told_;
  std::mutex mutex_;  // guards stopping_
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ringlet::command
