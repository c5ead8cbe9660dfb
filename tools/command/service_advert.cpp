#include "tools/command/service_advert.hpp"

#include <arpa/inet.h>
#include <dns_sd.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

namespace ringlet::command {

namespace {

constexpr char kType[] = "_ringlet._tcp";
constexpr std::size_t kMaxNameBytes = 63, kMaxFactBytes = 255, kMaxTextBytes = 1300;  // RFC 6763, sections 4.1.1, 6.1 and 6.2
constexpr int kBetweenTries = 5'000, kBetweenPollsMs = 200;                           // in milliseconds

/// Returns the TXT record: each pair is preceded by its length in one byte.
std::string text_record(const Service& service) {
  std::string record;
  for (const auto& [key, value] : service.facts) {
    const std::string pair = key + "=" + value;
    if (pair.size() > kMaxFactBytes || record.size() + pair.size() + 1 > kMaxTextBytes) continue;
    record += static_cast<char>(pair.size());
    record += pair;
  }
  return record;
}

/// Cuts the name only between characters of UTF-8.
std::string shortened(const std::string& name) {
  std::size_t size = std::min(name.size(), kMaxNameBytes);
  while (size < name.size() && size > 0 && (static_cast<unsigned char>(name[size]) & 0xc0) == 0x80) --size;
  return name.substr(0, size);
}

struct Registration {
  const std::function<void(const std::string&)>& on_told;
  bool failed = false;
};

void DNSSD_API on_reply(DNSServiceRef, DNSServiceFlags, DNSServiceErrorType error, const char* name, const char*, const char*,
                        void* context) {
  auto& registration = *static_cast<Registration*>(context);
  if (error == kDNSServiceErr_NoError)
    registration.on_told(name);
  else
    registration.failed = true;
}

}  // namespace

ServiceAdvert::ServiceAdvert(Service service, std::function<void(const std::string&)> on_told)
    : service_(std::move(service)), on_told_(std::move(on_told)) {
  // Otherwise Avahi's library warns on stderr that it is only compatible with Apple's.
  ::setenv("AVAHI_COMPAT_NOWARN", "1", 0);
  // A responder may answer slowly, and no other work should wait for it.
  thread_ = std::thread([this] { run(); });
}

ServiceAdvert::~ServiceAdvert() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

bool ServiceAdvert::stopping_within(int milliseconds) {
  std::unique_lock lock(mutex_);
  return stop_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return stopping_; });
}

void ServiceAdvert::run() {
  do tell();
  while (!stopping_within(kBetweenTries));
}

void ServiceAdvert::tell() {
  const std::string text = text_record(service_);
  Registration registration{on_told_};
  DNSServiceRef reference{};
  const auto error =
      DNSServiceRegister(&reference, 0, 0, shortened(service_.name).c_str(), kType, nullptr, nullptr, htons(service_.port),
                         static_cast<std::uint16_t>(text.size()), text.empty() ? nullptr : text.data(), on_reply, &registration);
  if (error != kDNSServiceErr_NoError) return;
  const std::unique_ptr<std::remove_pointer_t<DNSServiceRef>, decltype(&DNSServiceRefDeallocate)> ends(reference, DNSServiceRefDeallocate);
  while (!registration.failed && !stopping_within(0)) {
    pollfd watched{DNSServiceRefSockFD(reference), POLLIN, 0};
    if (::poll(&watched, 1, kBetweenPollsMs) > 0 && DNSServiceProcessResult(reference) != kDNSServiceErr_NoError) return;
  }
}

}  // namespace ringlet::command
