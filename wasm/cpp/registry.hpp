#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/engine/requests.hpp"
#include "core/engine/world.hpp"
#include "core/gradients/agreements.hpp"
#include "wasm/cpp/browser_loop.hpp"

namespace ringlet::browser {

class BrowserWorld;

/// A group that JavaScript has a handle of.
struct GroupEntry {
  BrowserWorld& world;
  GroupEngine& engine;
  std::shared_ptr<Agreements> agreements = std::make_shared<Agreements>();
};

/// Returns the module's only loop.
BrowserLoop& loop();

/// The objects that JavaScript has handles of. Handles are never reused.
class Registry {
 public:
  /// Makes a world, and returns its handle.
  int32_t add_world();
  int32_t add_group(BrowserWorld& world, GroupEngine& engine);
  /// Returns null if there is no such world.
  BrowserWorld* find_world(int32_t handle);
  GroupEntry* find_group(int32_t handle);
  void remove_group(int32_t handle);
  /// Removes the world and its groups.
  void remove_world(int32_t handle);

 private:
  int32_t last_handle_ = 0;
  std::unordered_map<int32_t, GroupEntry> groups_;
  std::unordered_map<int32_t, std::unique_ptr<BrowserWorld>> worlds_;
};
Registry& registry();

/// Stores the status for ringlet_error_text(), and returns the code that an export returns for it.
int32_t report(const Status& status);
/// The same for an export that returns a handle.
int32_t report_handle(const Status& status);
/// Returns the status that ringlet_error_text() and ringlet_error_rank() report.
const Status& last_failure();

/// Calls the host's `completed` for a ticket.
void tell_completed(int32_t ticket, const Status& status, int32_t value = 0);
Completion completion_of(int32_t ticket);

/// The arguments that every operation has.
struct OperationOptions {
  int32_t ticket = 0;
  int32_t group = 0;
  int32_t stream = 0;
  int32_t timeout_ms = 0;
};
/// Checks the options, and returns the group that they name.
Result<GroupEntry*> check(const OperationOptions& options);
Duration timeout_of(const OperationOptions& options, const GroupEntry& group);

/// Starts the collective that `make` returns for the group's WorldOptions, and returns the export's result.
template <class Make>
int32_t start(const OperationOptions& options, Make make) {
  const auto group = check(options);
  if (!group.ok()) return report(group.status());
  GroupEngine& engine = group.value()->engine;
  Result<CollectiveTask> task = make(engine.options());
  if (!task.ok()) return report(task.status());
  task.value().timeout = timeout_of(options, *group.value());
  task.value().completion = completion_of(options.ticket);
  engine.start(static_cast<std::uint16_t>(options.stream), std::move(task).value());
  return report({});
}

/// Copies the rows of all ranks into the form that requests take; empty for null.
std::vector<std::int64_t> counts_of(const uint32_t* counts, const WorldOptions& options);

}  // namespace ringlet::browser
