#include "tools/command/service_advert.hpp"

// Where the build has found no DNS-SD library: nobody is told.
namespace ringlet::command {

ServiceAdvert::ServiceAdvert(Service, std::function<void(const std::string&)>) {}
ServiceAdvert::~ServiceAdvert() = default;

}  // namespace ringlet::command
