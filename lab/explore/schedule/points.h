// What the interposed functions tell the scheduler. Of threads that are not scheduled they say
// nothing.
#pragma once

#include <explore/schedule/scheduler.h>

#include <pthread.h>

#include <cstdint>

namespace stele::schedule {

// Is the calling thread scheduled?
bool scheduled() noexcept;

// Just before an operation of this kind.
void point(granularity g) noexcept;
// Just after a load of this value, or an exchange that changed nothing: who looks again and again
// is waiting, and others go on.
void note_load(const volatile void* address, std::uint64_t value) noexcept;
// Just after a change: who has been looking there may look again.
void note_change(const volatile void* address) noexcept;

// What a thread waits for, with no end of its own (0) or until a time.
enum class wait : std::uint8_t { none, mutex, condition, futex, join, sleep };
// False: its time has come.
bool wait_for(wait what, const volatile void* on, std::uint64_t until_ns) noexcept;
// At most `max_count` of those who wait for it go on, lowest numbers first. How many.
unsigned wake(wait what, const volatile void* on, unsigned max_count) noexcept;
// Others go on, if there are any who can.
void yield() noexcept;

std::uint64_t now_ns() noexcept;

// Creation and end of threads. `real` makes the thread; what it runs calls thread_started(), and
// thread_ended() last.
int create(const std::function<int(unsigned number)>& real) noexcept;
void thread_started(unsigned number) noexcept;
void thread_ended() noexcept;
void set_thread_id(unsigned number, pthread_t id) noexcept;
void join(pthread_t id) noexcept;

}  // namespace stele::schedule
