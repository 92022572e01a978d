// What the interposed functions report to the scheduler. They report nothing for threads that are
// not scheduled.
#pragma once

#include <explore/schedule/scheduler.h>

#include <pthread.h>

#include <cstdint>

namespace stele::schedule {

// Whether the calling thread is scheduled.
bool scheduled() noexcept;

// Called just before an operation of this kind.
void point(granularity g) noexcept;
// Called just after a load of this value, or an exchange that changed nothing. A thread that loads
// the same value again and again is waiting; then other threads run.
void note_load(const volatile void* address, std::uint64_t value) noexcept;
// Called just after a change: threads that spin on this address may run again.
void note_change(const volatile void* address) noexcept;

// What a thread waits for. `until_ns`: the time when the wait ends; 0: without timeout.
enum class wait : std::uint8_t { none, mutex, condition, futex, join, sleep };
// Returns false when the wait timed out.
bool wait_for(wait what, const volatile void* on, std::uint64_t until_ns) noexcept;
// Wakes at most `max_count` threads that wait for it, lowest numbers first. Returns how many.
unsigned wake(wait what, const volatile void* on, unsigned max_count) noexcept;
// Lets other threads run, if any can.
void yield() noexcept;

std::uint64_t now_ns() noexcept;

// Creation and end of threads. `real` makes the thread, which calls thread_started() first and
// thread_ended() last.
int create(const std::function<int(unsigned number)>& real) noexcept;
void thread_started(unsigned number) noexcept;
void thread_ended() noexcept;
void set_thread_id(unsigned number, pthread_t id) noexcept;
void join(pthread_t id) noexcept;

}  // namespace stele::schedule
