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
  std::vector<std::pair<std::string, std::string>> facts{};  // the TXT record, visible to everyone; pairs that do not fit are left out
};

/// Advertises a service of type `_ringlet._tcp` by the system's DNS-SD responder (Bonjour, or Avahi with its compatible library) until it
/// is destroyed. If there is no responder, or it ends, it tries again every few seconds. Owned by one thread.
class ServiceAdvert {
 public:
  /// `on_told(name)` runs on a separate thread each time the responder has accepted the service. The responder adds a number to the name if
  /// another service has it.
  ServiceAdvert(Service service, std::function<void(const std::string& name)> on_told);
  /// Waits until the responder has withdrawn the service.
  ~ServiceAdvert();
  ServiceAdvert(const ServiceAdvert&) = delete;
  ServiceAdvert& operator=(const ServiceAdvert&) = delete;

 private:
  void run();
  void tell();
  bool stopping_within(int milliseconds);

  const Service service_;
  const std::function<void(const std::string&)> on_told_;
  std::mutex mutex_;  // protects stopping_
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ringlet::command
