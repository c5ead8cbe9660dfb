#include "wasm/cpp/registry.hpp"

#include <utility>

#include "wasm/cpp/browser_world.hpp"
#include "wasm/cpp/imports.hpp"

namespace ringlet::browser {

namespace {

Status& failure() {
  static Status last;
  return last;
}

}  // namespace

BrowserLoop& loop() {
  static BrowserLoop one;
  return one;
}

Registry& registry() {
  static Registry one;
  return one;
}

int32_t Registry::add_world() {
  ++last_handle_;
  worlds_.emplace(last_handle_, std::make_unique<BrowserWorld>(last_handle_));
  return last_handle_;
}

int32_t Registry::add_group(BrowserWorld& world, GroupEngine& engine) {
  groups_.emplace(++last_handle_, GroupEntry{world, engine});
  return last_handle_;
}

BrowserWorld* Registry::find_world(int32_t handle) {
  const auto found = worlds_.find(handle);
  return found == worlds_.end() ? nullptr : found->second.get();
}

GroupEntry* Registry::find_group(int32_t handle) {
  const auto found = groups_.find(handle);
  return found == groups_.end() ? nullptr : &found->second;
}

void Registry::remove_group(int32_t handle) { groups_.erase(handle); }

void Registry::remove_world(int32_t handle) {
  const auto found = worlds_.find(handle);
  if (found == worlds_.end()) return;
  std::erase_if(groups_, [&](const auto& entry) { return &entry.second.world == found->second.get(); });
  worlds_.erase(found);
}

int32_t report(const Status& status) {
  failure() = status;
  return static_cast<int32_t>(status.code());
}

int32_t report_handle(const Status& status) { return -report(status); }

const Status& last_failure() { return failure(); }

void tell_completed(int32_t ticket, const Status& status, int32_t value) {
  ringlet_tell_completed(ticket, static_cast<int32_t>(status.code()), status.rank(), value, status.text().c_str());
}

Completion completion_of(int32_t ticket) {
  return [ticket](const Status& status) { tell_completed(ticket, status); };
}

Result<GroupEntry*> check(const OperationOptions& options) {
  GroupEntry* group = registry().find_group(options.group);
  if (group == nullptr) return Status{Errc::invalid_argument, "this group has been left, or its world has ended"};
  if (options.stream < 0 || options.stream >= GroupEngine::kMaxStreams)
    return Status{Errc::invalid_argument, "stream " + std::to_string(options.stream) + " does not exist; streams are numbered 0 to " +
                                              std::to_string(GroupEngine::kMaxStreams - 1)};
  if (options.timeout_ms < 0)
    return Status{Errc::invalid_argument, "a timeout of " + std::to_string(options.timeout_ms) + " ms; it must be positive"};
  return group;
}

Duration timeout_of(const OperationOptions& options, const GroupEntry& group) {
  return options.timeout_ms > 0 ? Duration::milliseconds(options.timeout_ms) : group.engine.options().operation_timeout;
}

std::vector<std::int64_t> counts_of(const uint32_t* counts, const WorldOptions& options) {
  if (counts == nullptr) return {};
  return {counts, counts + options.size};
}

}  // namespace ringlet::browser
