#include "transport/uv/uv_loop.hpp"

#include "transport/uv/loop_state.hpp"

namespace ringlet {

UvLoop::UvLoop() : state_(std::make_unique<uv::LoopState>()) {}
UvLoop::~UvLoop() = default;

Instant UvLoop::now() const { return state_->now(); }
void UvLoop::defer(Task task) { state_->defer(std::move(task)); }
TimerId UvLoop::after(Duration delay, Task task) { return state_->after(delay, std::move(task)); }
void UvLoop::cancel(TimerId id) { state_->cancel(id); }
void UvLoop::post(Task task) { state_->post(std::move(task)); }
void UvLoop::wake() { state_->wake(); }
bool UvLoop::poll() { return state_->poll(); }
void UvLoop::wait() { state_->wait(); }
uv_loop_s* UvLoop::uv() noexcept { return state_->uv(); }
bool UvLoop::flush() { return state_->flush(); }

}  // namespace ringlet
