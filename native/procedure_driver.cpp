#include "native/procedure_driver.hpp"

#include <new>
#include <utility>

#include "native/shared_group.hpp"
#include "simd/kernels.hpp"

namespace ringlet::native {

namespace {

/// The program's thread may round, or flush small numbers, in its own way, but all ranks have to get the same bits.
Procedure::Action next_of(Procedure& procedure) {
  const simd::FloatEnvironment environment;
  return procedure.next();
}

}  // namespace

ProcedureDriver::ProcedureDriver(std::vector<Group> groups, Stream stream) : groups_(std::move(groups)), call_{.stream = stream} {}

void ProcedureDriver::drive(Procedure& procedure) {
  try {
    for (;;) {
      Procedure::Action action = next_of(procedure);
      if (auto* run = std::get_if<Procedure::Run>(&action)) {
        groups_[run->group].shared().run(call_, std::move(run->task));
      } else if (auto* start = std::get_if<Procedure::Start>(&action)) {
        under_way_.push_back(groups_[start->group].shared().start(call_, std::move(start->task)));
      } else if (auto* sending = std::get_if<Procedure::Send>(&action)) {
        under_way_.push_back(groups_[sending->group].shared().start_send(call_, std::move(sending->task), {}));
      } else if (auto* receiving = std::get_if<Procedure::Receive>(&action)) {
        under_way_.push_back(groups_[receiving->group].shared().start_receive(call_, std::move(receiving->task), {}));
      } else if (std::holds_alternative<Procedure::WaitForOldest>(action)) {
        Work oldest = std::move(under_way_.front());
        under_way_.pop_front();
        oldest.wait();
      } else {
        const Status& status = std::get_if<Procedure::Done>(&action)->status;
        if (status.code() == Errc::protocol_error) groups_.front().shared().fail_for_violation(status);
        return throw_if_failed(status);
      }
    }
  } catch (const std::bad_alloc&) {
    // The other ranks would wait for what this one does not call any more.
    groups_.front().shared().fail_world("memory ran out");
    give_up(procedure);
    throw;
  } catch (...) {
    give_up(procedure);
    throw;
  }
}

void ProcedureDriver::give_up(Procedure& procedure) {
  under_way_.clear();  // waits for them
  procedure.abandon();
}

}  // namespace ringlet::native
