// Waiting clients, and the answer to a command.
#include "answers.h"

#include <cstdio>
#include <cstdlib>

#include "boundary.h"
#include "commands.h"
#include "eviction.h"

namespace stele::redis {

server& this_server() noexcept {
  static server one;
  return one;
}

namespace {

// Any thread. The server's log is where its operator looks; standard error may go elsewhere.
[[noreturn]] void end_server(const char* what, const error& why) {
  std::fprintf(stderr, "stele: %s: %s\n", what, why.message.c_str());
  api::Log(nullptr, "warning", "stele: %s: %s", what, why.message.c_str());
  std::_Exit(1);
}

}  // namespace

void must(const result<>& done) {
  if (!done) end_server("the pool cannot be changed any more, so the server ends", done.error());
}

void end_without_memory() noexcept {
  std::fputs("stele: the server has no memory to end what it has begun, so it ends\n", stderr);
  api::Log(nullptr, "warning",
           "stele: the server has no memory to end what it has begun, so it ends");
  std::_Exit(1);
}

void cannot_commit(const error& why) {
  end_server(
      "a transaction that clients have been answered for cannot be committed, so the server ends; "
      "after a restart nothing of it is there",
      why);
}

waiting_clients::~waiting_clients() {
  {
    const std::scoped_lock one(mutex_);
    stopping_ = true;
  }
  wanted_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void waiting_clients::add(api::blocked_client* client, std::uint64_t commit) {
  STELE_ASSERT(commit != 0 && commit <= keys_.newest_commit());  // redis.md C5
  coming_.push_back({client, commit});
  if (loop_.is_asleep()) begin_sync();  // the hook has run
}

void waiting_clients::begin_sync() {
  if (coming_.empty()) return;
  STELE_ASSERT(keys_.waits());
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  {
    const std::scoped_lock one(mutex_);
    clients_.insert(clients_.end(), coming_.begin(), coming_.end());
  }
  coming_.clear();
  wanted_.notify_one();
}

// The main thread executes commands meanwhile; a commit after the begin of a sync waits for the
// next.
void waiting_clients::run() {
  std::unique_lock hold(mutex_);
  for (;;) {
    wanted_.wait(hold, [&] { return stopping_ || !clients_.empty(); });
    if (clients_.empty()) return;
    hold.unlock();
    const std::uint64_t through = must(keys_.sync());
    STELE_ASSERT(through <= keys_.newest_commit());
    syncs_.fetch_add(1, std::memory_order_relaxed);
    hold.lock();
    STELE_ASSERT(!clients_.empty());  // only this thread takes from them
    for (; !clients_.empty() && clients_.front().commit <= through; clients_.pop_front())
      api::UnblockClient(clients_.front().client, nullptr);
  }
}

std::string line_of_client(const call& c) {
  const auto id = static_cast<long long>(api::GetClientId(c.context));
  api::reply* const reply = call_server(c, "CLIENT", "ccl", "LIST", "ID", id);
  if (reply == nullptr) return {};
  std::string line;
  if (api::CallReplyType(reply) == api::reply_string) line = text_of_reply(reply);
  api::FreeCallReply(reply);
  return line;
}

namespace {

// Whether the client's socket is full of earlier answers, so that Redis may send the next ones
// within this turn of the event loop.
bool has_unsent_answers(const call& c) {
  event_loop& loop = c.server.loop;
  const std::uint64_t id = api::GetClientId(c.context);
  if (loop.is_drained(id)) return false;
  const bool unsent = line_of_client(c).find(" events=r ") == std::string::npos;
  if (!unsent) loop.note_drained(id);
  return unsent;
}

}  // namespace

bool may_block(const call& c) {
  constexpr int not_to_block = api::in_multi | api::in_script | api::denies_blocking;
  return c.server.commands.may_block() && (api::GetContextFlags(c.context) & not_to_block) == 0;
}

void answer::end_unit() {
  server& in = call_.server;
  keys& all = *in.keys;
  const int flags = api::GetContextFlags(call_.context);
  // The module's command that runs the script ends the unit of a script, the hook that of an EXEC.
  // Until then the answer waits only for earlier commits.
  const bool goes_on =
      (flags & api::in_script) != 0 ||
      ((flags & api::in_multi) != 0 && !in.loop.is_asleep() && !has_unsent_answers(call_));
  if (goes_on) {
    if (!all.owes_answers()) rests_on_its_keys();
    return;
  }
  // A master does not wait for answers.
  const bool is_replicated = (flags & api::is_replicated) != 0;
  const bool now = !is_replicated && (!in.commands.may_block() ||
                                      (flags & (api::in_multi | api::denies_blocking)) != 0);
  const std::uint64_t before = all.newest_commit();
  must(all.end_unit(now));
  STELE_ASSERT(!all.in_unit() && !all.owes_answers());  // redis.md C4
  STELE_ASSERT(!now || all.all_rest_on() == 0);
  STELE_ASSERT(all.newest_commit() - before <= 1);  // a unit is one transaction
  in.count_memory();
  if (is_replicated || !all.waits()) return;
  if (all.newest_commit() == before)
    rests_on_its_keys();
  else if (!now)
    commit_ = all.newest_commit();
}

void answer::rests_on_its_keys() {
  const call& c = call_;
  if (c.server.keys->all_rest_on() == 0) return;
  const std::string name(c[0].substr(std::string_view(prefix).size()));
  if (equal_ignoring_case(name, "MOVE") || equal_ignoring_case(name, "COPY"))
    return rests_on_all();  // of another database too
  for_each_key(c, name.c_str(), [&](int place) {
    const open_key key(c, c.text(place), api::for_reading | api::without_touch);
    rests_on(key.item());
  });
}

void answer::rests_on_script() {
  STELE_ASSERT(call_.server.script && &call_.server.script->caller == &call_);
  const std::uint64_t newest = call_.server.script->newest_commit;
  STELE_ASSERT(newest <= call_.server.keys->newest_commit());
  commit_ = std::max(commit_, newest);
}

void answer::rests_on(const stored_item* item) {
  const std::uint64_t on =
      item != nullptr ? call_.server.keys->rests_on(item) : call_.server.keys->absence_rests_on();
  STELE_ASSERT(on <= call_.server.keys->newest_commit());
  commit_ = std::max(commit_, on);
}

void answer::rests_on_all() {
  commit_ = std::max(commit_, call_.server.keys->all_rest_on());
}

api::context* answer::to() {
  server& in = call_.server;
  if (commit_ == 0) return call_.context;
  STELE_ASSERT(call_.server.keys->waits() && commit_ <= call_.server.keys->newest_commit());
  if (later_ != nullptr) return later_;
  if (in.script && (api::GetContextFlags(call_.context) & api::in_script) != 0) {
    in.script->newest_commit = std::max(in.script->newest_commit, std::exchange(commit_, 0));
    return call_.context;
  }
  if (!may_block(call_)) {
    [[maybe_unused]] const std::uint64_t through = must(call_.server.keys->sync());
    STELE_ASSERT(through >= commit_);  // redis.md C6
    commit_ = 0;
    return call_.context;
  }
  client_ = api::BlockClient(call_.context, nullptr, nullptr, nullptr, 0);
  return later_ = api::GetThreadSafeContext(client_);
}

answer::~answer() {
  STELE_ASSERT((later_ == nullptr) == (client_ == nullptr) && (later_ == nullptr || commit_ != 0));
  if (later_ == nullptr) return;
  api::FreeThreadSafeContext(later_);
  call_.server.waiting->add(client_, commit_);
}

bool runs_again(const call& c, const error& why) {
  // Without the command a replica would differ from its master, and a server from its AOF.
  if ((api::GetContextFlags(c.context) & api::is_replicated) != 0) must(std::unexpected(why));
  execution* const current = c.server.commands.current();
  if (why.code != errc::full || current == nullptr || !current->may_retry()) return false;
  if (!may_evict(c)) return false;
  current->request_retry();
  return true;
}

int answer_error(const call& c, const error& why) {
  return runs_again(c, why) ? api::ok : reply_error(c.context, why);
}

int reply_error(api::context* to, const error& why) {
  const char* const kind = why.code == errc::full ? "OOM " : "MISCONF ";
  return api::ReplyWithError(to, (kind + why.message).c_str());
}

}  // namespace stele::redis
