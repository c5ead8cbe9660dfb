#include "tools/command/service_advert.hpp"

// This file is for builds without a DNS-SD library. It advertises nothing.
namespace ringlet::command {

ServiceAdvert::ServiceAdvert(Service, std::function<void(const std::string&)>) {}
ServiceAdvert::~ServiceAdvert() = default;

}  // namespace ringlet::command
