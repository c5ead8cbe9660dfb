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

/// A group as JavaScript knows it.
struct GroupEntry {
  BrowserWorld& world;
  GroupEngine& engine;
  std::shared_ptr<Agreements> agreements = std::make_shared<Agreements>();
};

/// The module's one loop.
BrowserLoop& loop();

/// What JavaScript holds handles of. A handle is not used again.
class Registry {
 public:
  /// Makes a world, and returns its handle.
  int32_t add_world();
  int32_t add_group(BrowserWorld& world, GroupEngine& engine);
  /// Null where there is none.
  BrowserWorld* find_world(int32_t handle);
  GroupEntry* find_group(int32_t handle);
  void remove_group(int32_t handle);
  /// With its groups.
  void remove_world(int32_t handle);

 private:
  int32_t last_handle_ = 0;
  std::unordered_map<int32_t, GroupEntry> groups_;
  std::unordered_map<int32_t, std::unique_ptr<BrowserWorld>> worlds_;
};
Registry& registry();

/// What an export returns for a status, which ringlet_error_text() then tells.
int32_t report(const Status& status);
/// Of an export that returns a handle.
int32_t report_handle(const Status& status);
/// The text that ringlet_error_text() gives and the rank of ringlet_error_rank().
const Status& last_failure();

/// Tells the host that a ticket has completed.
void tell_completed(int32_t ticket, const Status& status, int32_t value = 0);
Completion completion_of(int32_t ticket);

/// Of every operation.
struct OperationOptions {
  int32_t ticket = 0;
  int32_t group = 0;
  int32_t stream = 0;
  int32_t timeout_ms = 0;
};
/// The group, or what is wrong with the options.
Result<GroupEntry*> check(const OperationOptions& options);
Duration timeout_of(const OperationOptions& options, const GroupEntry& group);

/// Starts the collective that `make`, given the group's WorldOptions, returns; the export's result.
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

/// Rows of all ranks as requests take them; empty for null.
std::vector<std::int64_t> counts_of(const uint32_t* counts, const WorldOptions& options);

}  // namespace ringlet::browser
