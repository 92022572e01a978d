// libstele_redis.so: a module of Redis whose values are in a pool. Usage and options:
// docs/guide/redis.md.
#include <base/bytes.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "boundary.h"
#include "collections.h"
#include "eviction.h"
#include "newer_server.h"
#include "replies.h"
#include "script_rights.h"

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

std::vector<command> all_commands() {
  std::vector<command> all;
  for (const auto group :
       {string_commands, hash_commands, list_commands, set_commands, sorted_set_commands,
        sorted_set_algebra_commands, sort_commands, native_commands, generic_commands})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

struct bounded_command {
  command what;
  long long arity = 0;  // command_info's
};

constexpr std::size_t longest_name = 64;

// By the name that Redis has for the command.
std::unordered_map<std::string_view, bounded_command>& by_name() {
  static auto all = [] {
    std::unordered_map<std::string_view, bounded_command> made;
    for (const command& c : all_commands()) {
      const bool is_new = made.emplace(c.name, bounded_command{c}).second;
      STELE_ASSERT_ALWAYS(is_new && std::strlen(c.name) <= longest_name);
      STELE_ASSERT_ALWAYS(c.least >= 1 && (c.most == 0 || c.most >= c.least));
      STELE_ASSERT_ALWAYS((c.first_key == 0) == (c.key_step == 0) && c.first_key < c.least);
    }
    return made;
  }();
  return all;
}

// Redis checks the number of arguments before it queues a command and before it checks rights: that
// code reads arguments that may be missing.
void learn_arities(const call& c) {
  for (auto& [name, known] : by_name()) known.arity = command_info(c, known.what.name).arity();
}

std::string_view in_lower_case(std::string_view name, char (&to)[longest_name]) {
  if (name.size() > longest_name) return {};
  std::ranges::transform(name, to, [](unsigned char c) { return std::tolower(c); });
  return {to, name.size()};
}

// Redis debugs no script that a module calls, so EVAL is Redis' own from SCRIPT DEBUG on. The mode
// holds for all clients, also if Redis refuses this one, as the filter sees no client.
void note_debugging(server& in, api::filter_context* of) {
  if (api::CommandFilterArgsCount(of) != 3 ||
      !equal_ignoring_case(view(api::CommandFilterArgGet(of, 1)), "DEBUG"))
    return;
  const std::string_view mode = view(api::CommandFilterArgGet(of, 2));
  if (equal_ignoring_case(mode, "NO"))
    in.debugging = script_debugging::off;
  else if (equal_ignoring_case(mode, "YES") || equal_ignoring_case(mode, "SYNC"))
    in.debugging = script_debugging::on;
}

// SCAN compares the TYPE that a client gives with the name of the module type.
void name_type(api::filter_context* of) {
  constexpr std::pair<const char*, const char*> names[] = {{"string", "stele-str"},
                                                           {"hash", "stele-hsh"},
                                                           {"list", "stele-lst"},
                                                           {"set", "stele-set"},
                                                           {"zset", "stele-zst"}};
  const int count = api::CommandFilterArgsCount(of);
  for (int i = 2; i + 1 < count; ++i) {
    if (!equal_ignoring_case(view(api::CommandFilterArgGet(of, i)), "TYPE")) continue;
    for (const auto& [theirs, ours] : names)
      if (equal_ignoring_case(view(api::CommandFilterArgGet(of, i + 1)), theirs))
        api::CommandFilterArgReplace(of, i + 1, api::CreateString(nullptr, ours, 9));
    ++i;
  }
}

// Whether the command creates or changes users, or loads a module, which may do so.
bool may_change_rights(api::filter_context* of, std::string_view command) {
  if (command != "acl" && command != "module") return false;
  if (api::CommandFilterArgsCount(of) < 2) return false;
  const std::string_view what = view(api::CommandFilterArgGet(of, 1));
  constexpr const char* changing[] = {"SETUSER", "DELUSER", "LOAD", "LOADEX"};
  return std::ranges::any_of(changing, [&](const char* c) { return equal_ignoring_case(what, c); });
}

bool is_object_encoding(api::filter_context* of) {
  return api::CommandFilterArgsCount(of) == 3 &&
         equal_ignoring_case(view(api::CommandFilterArgGet(of, 1)), "ENCODING");
}

// The module's command for a given one; null: Redis executes its own.
const command* ours(const server& in, api::filter_context* of, std::string_view given) {
  if (in.leaves_scripts_to_redis() && given.starts_with("eval")) return nullptr;
  const auto found = by_name().find(given);
  if (found == by_name().end()) return nullptr;
  const command& what = found->second.what;
  // The other subcommands of OBJECT work on keys of any type.
  if (given == "object" && !is_object_encoding(of)) return nullptr;
  if (what.only_where_commits_wait && !in.keys->waits()) return nullptr;
  // A wrong number of arguments is left to Redis, whose error fits queues and scripts too.
  return takes(found->second.arity, api::CommandFilterArgsCount(of)) ? &what : nullptr;
}

// Renames a command of a client or a script to the module's.
void filter(api::filter_context* of) {
  server& in = this_server();
  if (in.bypass.take()) return;
  char lower[longest_name];
  const std::string_view given = in_lower_case(view(api::CommandFilterArgGet(of, 0)), lower);
  if (given == "script") note_debugging(in, of);
  if (may_change_rights(of, given)) in.rights.restrict();
  if (given == "replconf") in.loop.note_offset_due();  // a master asks how far this server has got
  if (given == "scan") name_type(of);
  const command* const what = ours(in, of, given);
  STELE_ASSERT(what == nullptr || !is_refused(in, given));
  if (what == nullptr && is_refused(in, given)) return refuse(of);
  // Redis would count a refused command as a write of the script.
  if (is_denied_in_script(in, of)) return deny(of);
  if (what == nullptr) return;
  const std::string name = prefix + std::string(what->name);
  api::CommandFilterArgReplace(of, 0, api::CreateString(nullptr, name.data(), name.size()));
}

// A user needs the right to Redis' own command too: SET for stele.set.
bool is_allowed(const call& c, const char* name) {
  if (all_may_all(c)) return true;
  const int flags = api::GetContextFlags(c.context);
  // Redis has started this script itself (SCRIPT DEBUG, another name of EVAL), so whose rights
  // count is not known. An old AOF has scripts too, and those have been allowed.
  if ((flags & api::in_script) != 0 && !c.server.script) return (flags & api::is_loading) != 0;
  const own_text own_name(name);
  std::vector<api::text*> arguments(c.arguments, c.arguments + c.count);
  arguments[0] = own_name.get();
  const calling_user user(c);
  const int destination = place_of_destination(c, name);
  return user.may_run(arguments.data(), c.count) &&
         (destination == 0 || user.may(c.text(destination), api::key_insert));
}

// Reports the places of the keys, when Redis asks for them.
int report_keys(const call& c, const char* name) {
  for_each_key(c, name, [&](int place) { api::KeyAtPos(c.context, place); });
  return api::ok;
}

// Skips a command of an AOF that is older than the pool. It succeeded once, so its keys were not of
// types that stay Redis' own: a value of such a type is a later one.
int pass_over(const call& c, const char* name) {
  for_each_key(c, name, [&](int place) {
    open_key key(c, c.text(place), api::for_reading | api::for_writing);
    if (key.is_foreign()) key.erase();
  });
  return api::ReplyWithNull(c.context);
}

int refuse_count(api::context* to, const char* name) {
  const std::string why = std::string("ERR wrong number of arguments for '") + name + "' command";
  return api::ReplyWithError(to, why.c_str());
}

// Repeats the command while it finds no room and the policy evicts keys, twice as many bytes each
// time, as the freed room may be fragmented.
int run_with_room(const call& c, const command& what, execution& current) {
  int done = what.run(c);
  if (!current.retry_requested()) [[likely]]
    return done;
  std::size_t bytes = std::size_t{16} << 10;
  for (int i = 0; i < c.count; ++i) bytes += 2 * c[i].size();
  for (; current.retry_requested(); bytes *= 2) {
    current.begin_retry();
    if (evict(c, bytes) != 0) current.allow_retry();
    must(c.server.keys->end_unit(true));
    STELE_ASSERT(!c.server.keys->in_unit() && c.server.keys->all_rest_on() == 0);
    done = what.run(c);
  }
  return done;
}

// Answers an error if memory runs out before the command has changed or answered anything; else the
// process ends.
int run_or_refuse(const call& c, const command& what) {
  const reply_counter replies;
  const std::uint64_t before = c.server.keys->changes();
  execution current(c.server.commands, execution::client::may_block,
                    execution::full_pool::may_retry);
  try {
    return run_with_room(c, what, current);
  } catch (const std::bad_alloc&) {
    if (current.has_side_effects() || c.server.keys->changes() != before || !replies.is_none())
      end_without_memory();
    current.end_retries();
    return answer_error(c, {errc::full, no_memory});
  }
}

// A child that debugs a script (SCRIPT DEBUG YES) shares the mapped pool: it cannot change that,
// and the server changes items while it reads.
constexpr const char* no_keys_in_child =
    "ERR a script that is debugged in a child of the server cannot use keys of the pool; "
    "use SCRIPT DEBUG SYNC";

int run(api::context* context, api::text** arguments, int count) {
  const call c{this_server(), context, arguments, count};
  char lower[longest_name];
  const auto found = by_name().find(in_lower_case(c[0].substr(std::strlen(prefix)), lower));
  const command& what = found->second.what;
  if (api::IsKeysPositionRequest(context) != 0) return report_keys(c, what.name);
  if (!takes(found->second.arity, count)) return refuse_count(context, what.name);
  if (c.server.keys->is_child()) return api::ReplyWithError(context, no_keys_in_child);
  if (!is_allowed(c, what.name))
    return api::ReplyWithError(context, no_permission(what.name).c_str());
  if (count < what.least || (what.most != 0 && count > what.most))
    return refuse_count(context, what.name);
  if (c.server.startup.ignores_files() && (api::GetContextFlags(context) & api::is_loading) != 0)
    return pass_over(c, what.name);
  enter(c);
  return run_or_refuse(c, what);
}

// --- events of Redis ---

// RESTORE-ASKING, for a slot that comes from a plain server, creates native values.
void import_foreign(const call& c) {
  for (const auto& [database, name] : c.server.load.take_foreign()) {
    if (api::SelectDb(c.context, database) != api::ok) continue;
    const own_text text(name);
    must(import_value(c, text.get()));
  }
}

// The name is copied: Redis may not allow its own string to be retained while the key is open.
int on_key_event(api::context* context, int, const char* name, api::text* key_name) {
  server& in = this_server();
  keys& all = *in.keys;
  const std::string_view event = name, text = view(key_name);
  if (event == "loaded" || event == "restore") in.load.unclaimed.claim();
  all.note_event(text, event == "expired" || event == "evicted");
  const own_text copy(text);
  const open_key key({in, context, nullptr, 0}, copy.get(), api::for_reading | api::without_touch);
  if (event == "restore" && key.is_foreign())
    in.load.note_foreign(api::GetSelectedDb(context), std::string(text));
  if (key.item() == nullptr || is_placeholder(key.item())) return api::ok;
  STELE_ASSERT(!in.startup.ignores_files() ||
               !in.load.is_file());  // such a load makes placeholders
  if (event == "rename_to" || event == "move_to")
    must(all.rename(key.item(), text, api::GetSelectedDb(context)));
  if (event == "loaded" && key.expiry() == 0) return api::ok;  // as the item was made
  must(all.set_expiry(key.item(), key.expiry()));
  return api::ok;
}

void on_flush(api::context*, api::event, std::uint64_t what, void* details) {
  server& in = this_server();
  if (what != api::flush_begins || in.startup.ignores_files()) return;
  const int database = static_cast<const api::flush_details*>(details)->database;
  for (int d = 0; d < static_cast<int>(stored_keys::databases); ++d)
    if (database == -1 || database == d) must(in.keys->flush(d, in.commands.is_idle()));
}

void on_swap(api::context*, api::event, std::uint64_t, void* details) {
  server& in = this_server();
  if (in.startup.ignores_files()) return;
  const auto& swapped = *static_cast<const api::swap_details*>(details);
  must(in.keys->swap(swapped.first, swapped.second));
}

// Makes items of the native values that were loaded.
void import_loaded(const call& c) {
  const std::uint64_t imported = must(import_all(c));
  if (imported != 0)
    api::Log(c.context, "notice", "stele: %llu keys that were loaded are in the pool now",
             static_cast<unsigned long long>(imported));
}

void on_loading(api::context* context, api::event, std::uint64_t what, void*) {
  server& in = this_server();
  if (what != api::loading_ended && what != api::loading_failed) {
    const bool in_exec = (api::GetContextFlags(context) & api::in_multi) != 0;
    in.startup.note_load();
    in.load.begin_file(in_exec);
    if (in.startup.is_open() && what == api::loading_rdb && !in_exec)
      must(in.keys->begin_reload());  // of DEBUG RELOAD
    return;
  }
  if (!in.load.end_file()) return;
  must(in.keys->end_unit(in.startup.is_open()));  // DEBUG LOADAOF answers next
  if (in.startup.is_open()) import_loaded({in, context, nullptr, 0});
  must(in.keys->end_reload());
}

void on_fork(api::context*, api::event, std::uint64_t what, void*) {
  if (what == api::child_born)
    this_server().keys->begin_child();
  else
    this_server().keys->end_child();
}
// A child reads home, which lacks ordered commits until a sync.
void before_fork() {
  keys* const all = this_server().keys.get();
  if (all == nullptr) return;
  must(all->end_unit(true));
  STELE_ASSERT(!all->in_unit() && all->all_rest_on() == 0);  // redis.md K1
}
void after_fork_in_child() {
  if (keys* const all = this_server().keys.get(); all != nullptr) all->enter_child();
}

// The file's replication offset may be behind the pool, so neither this server nor its replicas may
// continue from it: the next sync must be a full one.
void forget_position(const call& c) {
  const auto execute = [&](const char* command, auto... words) {
    const char* const formats[] = {"", "c", "cc"};
    api::reply* const reply = call_server(c, command, formats[sizeof...(words)], words...);
    if (reply != nullptr) api::FreeCallReply(reply);
  };
  execute("DEBUG", "CHANGE-REPL-ID");
  const std::string master = text_setting(c, "replicaof");
  const std::size_t gap = master.find(' ');
  if (gap == master.npos) return;
  execute("REPLICAOF", "NO", "ONE");
  execute("REPLICAOF", master.substr(0, gap).c_str(), master.substr(gap + 1).c_str());
}

// redis.md O3: items become keys.
void open_items(const call& c) {
  api::context* const context = c.context;
  keys& all = *c.server.keys;
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
      if (api::KeyType(key) != api::empty_key) api::DeleteKey(key);  // of a type of Redis' own
      api::ModuleTypeSetValue(key, c.server.type_of(kind_of(item)), item);
      if (expiry != 0) api::SetAbsExpire(key, expiry);
      api::CloseKey(key);
    });
  });
  must(done);
  if (expired.empty()) return;
  must(all.change(0, [&] {
    for (stored_item* item : expired) all.remove(item);
  }));
  must(all.end_unit(true));
  STELE_ASSERT_ALWAYS(all.all_rest_on() == 0);
}

// redis.md O3, O4
void open_keys(const call& c) {
  startup& stage = c.server.startup;
  STELE_ASSERT(!c.server.keys->in_unit());  // a load has ended its own
  if (!stage.ignores_files()) {             // what was loaded is in the pool, and nothing else is
    import_loaded(c);
  } else {
    if (stage.has_ignored_files()) {
      if (const std::uint64_t dropped = drop_loaded(c); dropped != 0)
        api::Log(c.context, "notice",
                 "stele: %llu keys of the server's own files are left out: the pool is newer",
                 static_cast<unsigned long long>(dropped));
      forget_position(c);
    }
    open_items(c);
  }
  STELE_ASSERT_ALWAYS(!c.server.keys->in_unit());
  stage.open();
}

void on_loop(api::context* context, api::event, std::uint64_t what, void*) {
  server& in = this_server();
  if (what != api::before_sleep) return in.loop.begin_turn();
  in.loop.end_turn();
  const call c{in, context, nullptr, 0};
  if (!in.startup.is_open()) open_keys(c);
  // Answers of an EXEC, or of a Redis command that removed a value (MIGRATE), are sent next.
  // Expired keys have no answer.
  import_foreign(c);
  STELE_ASSERT(in.commands.is_idle() && !in.script);
  must(in.keys->end_unit(in.keys->owes_answers()));
  STELE_ASSERT(!in.keys->owes_answers());
  in.memory.turn(api::GetUsedMemoryRatio() != 0);
  in.count_memory();
  if (in.loop.take_offset_due()) {  // redis.md R2
    must(in.keys->sync());
    STELE_ASSERT(in.keys->all_rest_on() == 0);
  }
  in.waiting->begin_sync();
  (void)in.keys->sweep();
}

// A replica tells its master its offset once a second, so what it counts must be durable.
void on_cron(api::context* context, api::event, std::uint64_t, void*) {
  if ((api::GetContextFlags(context) & api::is_replica) != 0) this_server().loop.note_offset_due();
}

// SHUTDOWN NOSAVE may interrupt a script: its unit is rolled back.
void on_shutdown(api::context* context, api::event, std::uint64_t, void*) {
  keys& all = *this_server().keys;
  if ((api::GetContextFlags(context) & (api::in_multi | api::in_script)) != 0) all.cancel_unit();
  must(all.end_unit(false));
  must(all.sync());
  STELE_ASSERT_ALWAYS(!all.in_unit() && all.all_rest_on() == 0);
}

void inform(api::info* to, int for_crash_report) {
  const server& in = this_server();
  if (for_crash_report != 0 || in.keys == nullptr) return;
  auto& pool = in.keys->content();
  const auto space = pool.space();
  api::InfoAddSection(to, "pool");
  api::InfoAddFieldCString(to, "path", in.path.c_str());
  api::InfoAddFieldCString(to, "durable_types", "string,hash,list,set,zset");
  api::InfoAddFieldCString(to, "mechanism", pool.mechanism().c_str());
  api::InfoAddFieldCString(to, "durability", name_of(pool.durability_in_force()));
  api::InfoAddFieldULongLong(to, "durable_keys", in.keys->count());
  api::InfoAddFieldULongLong(to, "size_bytes", space.size_bytes);
  api::InfoAddFieldULongLong(to, "used_bytes", space.used_bytes);
  api::InfoAddFieldULongLong(to, "free_bytes", space.free_bytes);
  api::InfoAddFieldULongLong(to, "commits", in.keys->newest_commit());
  api::InfoAddFieldULongLong(to, "syncs", in.waiting->syncs());
  api::InfoAddFieldULongLong(to, "evicted_keys", in.evicted);
  api::InfoAddFieldULongLong(to, "takes_changes", in.keys->is_poisoned() ? 0 : 1);
}

// --- loading ---

constexpr const char* in_memory = "memory";  // in the place of a media: no file stays

struct options {
  std::string path;
  pool_options pool;
};

// Reads the arguments of loadmodule, which are pairs. Returns a sentence if one is wrong.
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
      o.pool.engine.mechanism = value;
    } else if (name == "media") {
      o.pool.engine.media = value;
    } else if (name == "verify") {
      const auto verify = verification_of(value);
      if (!verify) return "verify " + value + " is not known; give auto, always or never";
      o.pool.engine.verify = *verify;
    } else if (name == "size" || name == "max_size") {
      const auto bytes = base::bytes_of(value);
      if (!bytes)
        return name + " " + value +
               " is no size; give bytes, or a number with K, M, G or T, as 64M";
      (name == "size" ? o.pool.create_size : o.pool.max_size) = *bytes;
    } else {
      return "there is no argument " + name +
             "; there are path, size, max_size, mechanism, media and verify";
    }
  }
  if (o.path.empty() == (o.pool.engine.media != in_memory))
    return o.path.empty() ? "an argument is missing: path POOL; or give media memory, for values "
                            "that end with the server"
                          : "media memory has no path: its values end with the server";
  if (o.pool.engine.mechanism.starts_with("archapt") || o.pool.max_size < o.pool.create_size)
    o.pool.max_size = 0;
  return std::nullopt;
}

// A pool whose file has no name: the kernel frees it when the process ends.
result<std::unique_ptr<keys>> open_in_memory(pool_options o) {
  o.engine.media = "process";
  std::string folder = "/dev/shm/stele-redis-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) folder = "/tmp/stele-redis-XXXXXX";
  if (!folder.ends_with("XXXXXX") || ::mkdtemp(folder.data()) != nullptr) {
    const std::string path = folder + "/pool";
    auto opened = keys::open(path, o, cannot_commit);
    if (opened)
      (*opened)->remove_name();
    else
      ::unlink(path.c_str());
    ::rmdir(folder.c_str());
    return opened;
  }
  return std::unexpected(
      error{errc::io, "neither in /dev/shm nor in /tmp can a folder be made for values in memory"});
}

int refuse(api::context* of, const std::string& why) {
  api::Log(of, "warning", "stele: %s", why.c_str());
  return api::failed;
}

bool register_all(const call& c) {
  api::context* const of = c.context;
  const auto is_known = [](std::string_view name) { return by_name().contains(name); };
  if (!compare_commands(c, is_known)) return false;
  static const std::string error_of_options =
      std::string(syntax_error) + hint_of_newer_option(c.server);
  syntax_error = error_of_options.c_str();
  for (const command& one : all_commands())
    if (api::CreateCommand(of, (prefix + std::string(one.name)).c_str(), bounded<run>, one.flags,
                           one.first_key, one.last_key, one.key_step) != api::ok)
      return false;
  constexpr int classes =
      api::event_generic | api::event_expired | api::event_evicted | api::event_loaded;
  return create_denying_command(of) && register_types(of) &&
         api::RegisterCommandFilter(of, bounded<filter>, 0) != nullptr &&
         api::SubscribeToKeyspaceEvents(of, classes, bounded<on_key_event>) == api::ok &&
         api::SubscribeToServerEvent(of, api::flush_event, bounded<on_flush>) == api::ok &&
         api::SubscribeToServerEvent(of, api::swap_event, bounded<on_swap>) == api::ok &&
         api::SubscribeToServerEvent(of, api::loading_event, bounded<on_loading>) == api::ok &&
         api::SubscribeToServerEvent(of, api::fork_event, bounded<on_fork>) == api::ok &&
         api::SubscribeToServerEvent(of, api::loop_event, bounded<on_loop>) == api::ok &&
         api::SubscribeToServerEvent(of, api::cron_event, bounded<on_cron>) == api::ok &&
         api::SubscribeToServerEvent(of, api::shutdown_event, bounded<on_shutdown>) == api::ok &&
         api::RegisterInfoFunc(of, bounded<inform>) == api::ok;
}

int load(api::context* of, api::text** arguments, int count) {
  if (const char* const missing = api::fetch(of))
    return std::fprintf(stderr, "stele: this server is too old: it has no %s of Redis 7.0\n",
                        missing),
           api::failed;
  api::SetModuleAttribs(of, "stele", 1, api::interface_version);
  api::SetModuleOptions(of, api::handles_io_errors | api::no_implicit_signal);
  server& in = this_server();
  const call c{in, of, arguments, count};
  if (in.keys != nullptr) return refuse(of, "the module is loaded already; a server has one pool");
  options o;
  if (const auto wrong = read_arguments(c, o)) return refuse(of, *wrong);
  if (base::bytes_of(text_setting(c, "databases")).value_or(0) > stored_keys::databases)
    return refuse(
        of, "a pool has at most 64 databases; start the server with `databases 64`, or fewer");
  // First, as what the module registers with the server would outlive a refusal.
  if (const int why = ::pthread_atfork(bounded<before_fork>, nullptr, bounded<after_fork_in_child>);
      why != 0)
    return refuse(of, std::string("pthread_atfork fails (") + std::strerror(why) +
                          "), without which a child would save a part of the commits; free memory "
                          "and load the module again");
  auto opened = o.path.empty() ? open_in_memory(o.pool) : keys::open(o.path, o.pool, cannot_commit);
  if (!opened) return refuse(of, opened.error().message);
  STELE_ASSERT_ALWAYS(*opened != nullptr && in.waiting == nullptr && !in.startup.is_open());
  in.path = o.path.empty() ? in_memory : o.path;
  in.keys = std::move(*opened);
  in.waiting = std::make_unique<waiting_clients>(*in.keys, in.loop);
  in.startup.begin(in.keys->was_used());
  learn_arities(c);
  if (!register_all(c))
    return refuse(of, "the server does not take the module's commands or types");
  api::Log(of, "notice",
           "stele: strings, hashes, lists, sets and sorted sets are in %s: %llu keys, mechanism "
           "%s, durability %s",
           in.path.c_str(), static_cast<unsigned long long>(in.keys->count()),
           in.keys->content().mechanism().c_str(),
           name_of(in.keys->content().durability_in_force()));
  return api::ok;
}

}  // namespace

}  // namespace stele::redis

extern "C" [[gnu::visibility("default")]] int RedisModule_OnLoad(RedisModuleCtx* of,
                                                                 void** arguments, int count) {
  return stele::redis::bounded<stele::redis::load>(
      of, reinterpret_cast<stele::redis::api::text**>(arguments), count);
}
