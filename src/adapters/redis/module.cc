// libstele_redis.so: a module of Redis whose strings and hashes are in a pool. Usage and options:
// docs/guide/redis.md.
#include <base/bytes.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "commands.h"

namespace stele::redis {

const char* api::fetch(context* of) {
  using get = int (*)(const char*, void*);
  const auto from = *reinterpret_cast<get*>(of);
#define STELE_REDIS_FETCH(answer, name, parameters) \
  if (from("RedisModule_" #name, reinterpret_cast<void*>(&name)) != ok) return #name;
  STELE_REDIS_FUNCTIONS(STELE_REDIS_FETCH)
#undef STELE_REDIS_FETCH
  return nullptr;
}

namespace {

const std::string prefix = "stele.";

std::span<const command> all_commands(std::size_t group) {
  return group == 0 ? string_commands() : group == 1 ? hash_commands() : generic_commands();
}
constexpr std::size_t groups = 3;

// By Redis' name.
const std::unordered_map<std::string_view, const command*>& by_name() {
  static const auto all = [] {
    std::unordered_map<std::string_view, const command*> made;
    for (std::size_t g = 0; g < groups; ++g)
      for (const command& c : all_commands(g)) made.emplace(c.name, &c);
    return made;
  }();
  return all;
}

constexpr std::size_t longest_name = 16;

std::string_view in_lower_case(std::string_view name, char (&to)[longest_name]) {
  if (name.size() > longest_name) return {};
  std::ranges::transform(name, to, [](unsigned char c) { return std::tolower(c); });
  return {to, name.size()};
}

// SCRIPT DEBUG is of a connection, and Redis debugs no script that a module calls.
void note_debugging(api::filter_context* of) {
  if (api::CommandFilterArgsCount(of) == 3 &&
      equal_ignoring_case(view(api::CommandFilterArgGet(of, 1)), "DEBUG"))
    here().debugs_scripts = !equal_ignoring_case(view(api::CommandFilterArgGet(of, 2)), "NO");
}

// A command of a client gets the name of ours.
void filter(api::filter_context* of) {
  if (std::exchange(here().calls_redis, false)) return;
  char lower[longest_name];
  const std::string_view given = in_lower_case(view(api::CommandFilterArgGet(of, 0)), lower);
  if (given == "script") note_debugging(of);
  if (here().debugs_scripts && given.starts_with("eval")) return;
  const auto found = by_name().find(given);
  if (found == by_name().end()) return;
  const std::string name = prefix + found->second->name;
  api::CommandFilterArgReplace(of, 0, api::CreateString(nullptr, name.data(), name.size()));
}

// Rights go by Redis' own command too: who may not run SET may not run what it becomes here.
bool is_allowed(const call& c, const char* name) {
  const bool in_script = (api::GetContextFlags(c.context) & api::in_script) != 0;
  api::text* const user_name = in_script ? here().script_user : caller_of(c);
  if (user_name == nullptr) return true;
  const own_text own_name(name);
  std::vector<api::text*> arguments(c.arguments, c.arguments + c.count);
  arguments[0] = own_name.get();
  bool allowed = true;
  if (api::user* const user = api::GetModuleUserFromUserName(user_name)) {
    allowed = api::ACLCheckCommandPermissions(user, arguments.data(), c.count) == api::ok;
    api::FreeModuleUser(user);
  }
  if (!in_script) api::FreeString(nullptr, user_name);
  return allowed;
}

int run(api::context* context, api::text** arguments, int count) {
  const call c{context, arguments, count};
  char lower[longest_name];
  const auto found = by_name().find(in_lower_case(c[0].substr(prefix.size()), lower));
  const command& what = *found->second;
  if (!is_allowed(c, what.name)) {
    const std::string why = std::string("NOPERM this user has no permissions to run the '") +
                            what.name + "' command or to access one of its keys";
    return api::ReplyWithError(context, why.c_str());
  }
  if (count < what.least || (what.most != 0 && count > what.most)) {
    const std::string why =
        std::string("ERR wrong number of arguments for '") + what.name + "' command";
    return api::ReplyWithError(context, why.c_str());
  }
  enter(c);
  return what.run(c);
}

// --- what Redis tells ---

// The server may not let its own text be kept, as long as the key is open.
int on_key_event(api::context* context, int, const char* name, api::text* key_name) {
  const std::string_view event = name, text = view(key_name);
  const own_text copy(text);
  const open_key key({context, nullptr, 0}, copy.get(), api::for_reading | api::without_touch);
  if (key.item() == nullptr || is_placeholder(key.item())) return api::ok;
  if (event == "rename_to" || event == "move_to")
    must(here().keys->rename(key.item(), text, api::GetSelectedDb(context)));
  must(here().keys->set_expiry(key.item(), key.expiry()));
  return api::ok;
}

void on_flush(api::context*, api::event, std::uint64_t what, void* details) {
  if (what != api::flush_begins || !here().is_open) return;
  const int database = static_cast<const api::flush_details*>(details)->database;
  for (int d = 0; d < static_cast<int>(stored_keys::databases); ++d)
    if (database == -1 || database == d) must(here().keys->flush(d));
}

void on_swap(api::context*, api::event, std::uint64_t, void* details) {
  const auto& swapped = *static_cast<const api::swap_details*>(details);
  must(here().keys->swap(swapped.first, swapped.second));
}

void on_loading(api::context*, api::event, std::uint64_t what, void*) {
  here().is_loading = what != api::loading_ended && what != api::loading_failed;
  if (!here().is_loading) must(here().keys->end_unit(false));
}

void on_fork(api::context*, api::event, std::uint64_t what, void*) {
  if (what == api::child_born)
    here().keys->begin_child();
  else
    here().keys->end_child();
}
// A child reads home, where ordered commits are not yet.
void before_fork() {
  if (here().keys == nullptr) return;
  must(here().keys->end_unit(true));
}

// Keys of the server's own files that the pool does not have any more.
void remove_placeholders(api::context* context) {
  for (const auto& [database, name] : std::exchange(here().placeholders, {})) {
    if (api::SelectDb(context, database) != api::ok) continue;
    const own_text text(name);
    open_key key({context, nullptr, 0}, text.get(), api::for_reading | api::for_writing);
    if (is_placeholder(key.item())) key.erase();
  }
}

// Steps O3: items become keys.
void open_keys(api::context* context) {
  keys& all = *here().keys;
  const long long now = api::Milliseconds();
  std::vector<stored_item*> expired;
  const auto done = all.content().read([&](const stored_keys& root) {
    int database = -1;
    std::uint64_t keyspace = stored_keys::no_keyspace;
    all.for_each([&](stored_item* item) {
      if (item->keyspace != keyspace)
        keyspace = item->keyspace, database = root.database_of(keyspace);
      if (database < 0) return all.note_garbage();
      const std::int64_t expiry = item->expiry;
      if (expiry != 0 && expiry <= now) return expired.push_back(item);
      if (api::SelectDb(context, database) != api::ok) return;  // fewer databases than before
      const own_text text(item->key.str());
      api::key* const key = api::OpenKey(context, text.get(), api::for_reading | api::for_writing);
      if (api::KeyType(key) != api::empty_key) api::DeleteKey(key);
      api::ModuleTypeSetValue(
          key, kind_of(item) == item_kind::string ? here().text_type : here().hash_type, item);
      if (expiry != 0) api::SetAbsExpire(key, expiry);
      api::CloseKey(key);
    });
  });
  must(done);
  remove_placeholders(context);
  if (!expired.empty()) {
    must(all.change(0, [&] {
      for (stored_item* item : expired) all.remove(item);
    }));
    must(all.end_unit(true));
  }
  here().is_open = true;
  here().loads_nothing = false;
}

void on_loop(api::context* context, api::event, std::uint64_t what, void*) {
  here().asleep = what == api::before_sleep;
  here().has_read_all = -1;
  if (!here().asleep) return;
  if (!here().is_open) open_keys(context);
  // The answers of an EXEC are about to be sent. What Redis has removed by itself has no answer.
  must(here().keys->end_unit(here().keys->in_unit()));
  here().waiting->begin_sync();
  (void)here().keys->sweep();
}

void on_shutdown(api::context*, api::event, std::uint64_t, void*) {
  must(here().keys->end_unit(true));
}

void inform(api::info* to, int for_crash_report) {
  if (for_crash_report != 0 || here().keys == nullptr) return;
  auto& pool = here().keys->content();
  const auto space = pool.space();
  api::InfoAddSection(to, "pool");
  api::InfoAddFieldCString(to, "path", here().path.c_str());
  api::InfoAddFieldCString(to, "durable_types", "string,hash");
  api::InfoAddFieldCString(to, "mechanism", pool.mechanism().c_str());
  api::InfoAddFieldCString(to, "durability", pool.durability_in_force().c_str());
  api::InfoAddFieldULongLong(to, "durable_keys", here().keys->count());
  api::InfoAddFieldULongLong(to, "size_bytes", space.size_bytes);
  api::InfoAddFieldULongLong(to, "used_bytes", space.used_bytes);
  api::InfoAddFieldULongLong(to, "free_bytes", space.free_bytes);
  api::InfoAddFieldULongLong(to, "commits", here().keys->newest_commit());
  api::InfoAddFieldULongLong(to, "syncs", here().waiting->syncs());
  api::InfoAddFieldULongLong(to, "takes_changes", here().keys->is_poisoned() ? 0 : 1);
}

// --- loading ---

struct options {
  std::string path;
  pool_options pool;
};

// The arguments of loadmodule, by pairs. The sentence of what is wrong with them.
std::optional<std::string> read_arguments(const call& c, options& o) {
  o.pool.create_size = std::size_t{64} << 20;
  o.pool.max_size = std::size_t{1} << 40;
  o.pool.layout = layout_name;
  o.pool.policy = concurrency::external;
  for (int i = 0; i < c.count; i += 2) {
    const std::string name(c[i]);
    if (i + 1 == c.count) return "the argument " + name + " has no value";
    const std::string value(c[i + 1]);
    if (name == "path") {
      o.path = value;
    } else if (name == "mechanism") {
      o.pool.mechanism = value;
    } else if (name == "media") {
      o.pool.media = value;
    } else if (name == "size" || name == "max_size") {
      const auto bytes = base::bytes_of(value);
      if (!bytes)
        return name + " " + value +
               " is no size; give bytes, or a number with K, M, G or T, as 64M";
      (name == "size" ? o.pool.create_size : o.pool.max_size) = *bytes;
    } else {
      return "there is no argument " + name +
             "; there are path, size, max_size, mechanism and media";
    }
  }
  if (o.path.empty()) return "an argument is missing: path POOL";
  if (o.pool.mechanism.starts_with("archapt") || o.pool.max_size < o.pool.create_size)
    o.pool.max_size = 0;
  return std::nullopt;
}

int refuse(api::context* of, const std::string& why) {
  api::Log(of, "warning", "stele: %s", why.c_str());
  return api::failed;
}

bool register_all(api::context* of) {
  for (std::size_t g = 0; g < groups; ++g)
    for (const command& c : all_commands(g))
      if (api::CreateCommand(of, (prefix + c.name).c_str(), run, c.flags, c.first_key, c.last_key,
                             c.key_step) != api::ok)
        return false;
  constexpr int classes =
      api::event_generic | api::event_expired | api::event_evicted | api::event_loaded;
  return register_types(of) && api::RegisterCommandFilter(of, filter, 0) != nullptr &&
         api::SubscribeToKeyspaceEvents(of, classes, on_key_event) == api::ok &&
         api::SubscribeToServerEvent(of, api::flush_event, on_flush) == api::ok &&
         api::SubscribeToServerEvent(of, api::swap_event, on_swap) == api::ok &&
         api::SubscribeToServerEvent(of, api::loading_event, on_loading) == api::ok &&
         api::SubscribeToServerEvent(of, api::fork_event, on_fork) == api::ok &&
         api::SubscribeToServerEvent(of, api::loop_event, on_loop) == api::ok &&
         api::SubscribeToServerEvent(of, api::shutdown_event, on_shutdown) == api::ok &&
         api::RegisterInfoFunc(of, inform) == api::ok;
}

std::size_t databases_of_server(api::context* of) {
  std::size_t databases = 0;
  api::reply* const told = api::Call(of, "CONFIG", "cc", "GET", "databases");
  if (told == nullptr) return 0;
  if (api::CallReplyType(told) == api::reply_array && api::CallReplyLength(told) == 2) {
    std::size_t size = 0;
    const char* const text = api::CallReplyStringPtr(api::CallReplyArrayElement(told, 1), &size);
    databases = base::bytes_of({text, size}).value_or(0);
  }
  api::FreeCallReply(told);
  return databases;
}

int load(api::context* of, api::text** arguments, int count) {
  if (const char* const missing = api::fetch(of))
    return std::fprintf(stderr, "stele: this server is too old: it has no %s of Redis 7.0\n",
                        missing),
           api::failed;
  api::SetModuleAttribs(of, "stele", 1, api::interface_version);
  options o;
  if (const auto wrong = read_arguments({of, arguments, count}, o)) return refuse(of, *wrong);
  if (databases_of_server(of) > stored_keys::databases)
    return refuse(
        of, "a pool has at most 64 databases; start the server with `databases 64`, or fewer");
  auto opened = keys::open(o.path, o.pool);
  if (!opened) return refuse(of, opened.error().message);
  here().path = o.path;
  here().keys = std::move(*opened);
  here().waiting = std::make_unique<waiting_clients>(*here().keys);
  here().loads_nothing = here().keys->count() != 0;
  if (!register_all(of))
    return refuse(of, "the server does not take the module's commands or types");
  ::pthread_atfork(before_fork, nullptr, nullptr);
  api::Log(of, "notice",
           "stele: strings and hashes are in %s: %llu keys, mechanism %s, durability %s",
           o.path.c_str(), static_cast<unsigned long long>(here().keys->count()),
           here().keys->content().mechanism().c_str(),
           here().keys->content().durability_in_force().c_str());
  return api::ok;
}

}  // namespace

}  // namespace stele::redis

extern "C" [[gnu::visibility("default")]] int RedisModule_OnLoad(RedisModuleCtx* of,
                                                                 void** arguments, int count) {
  return stele::redis::load(of, reinterpret_cast<stele::redis::api::text**>(arguments), count);
}
