// stele kv get|put|del|scan|import|export|shorten|stats|stores|drop: works on key-value stores from
// the shell.
//
// Keys and values are text; with --hex hexadecimal digits. Import and export are JSON lines:
// {"key": K, "value": V}, each a string or, where it is not UTF-8, {"hex": DIGITS}; an item that
// expires has "expires_at_ms" too, since the begin of 1970.
#include <cli/command.h>
#include <cli/output.h>
#include <cli/pool_content.h>
#include <cli/reading.h>
#include <containers/kv_limits.h>
#include <fmt/format.h>
#include <stele/kv.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

using nlohmann::json;

constexpr std::size_t items_of_an_import = 1000, bytes_of_an_import = std::size_t{1} << 20;

struct options {
  std::string path, store, key, value, from, to, prefix, file = "-", json;
  std::size_t limit = 0;
  double ttl_seconds = 0;
  bool hex = false, reverse = false, create = false, keys_only = false;
};

template <class T>
T sure(result<T> outcome) {
  if (!outcome) fail(outcome.error());
  if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}
// Empty: not an even number of hexadecimal digits.
std::optional<std::string> from_hex(std::string_view hex) {
  const auto digit = [](char c) {
    const auto at = std::string_view("0123456789abcdef")
                        .find(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
  };
  std::string bytes;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) return std::nullopt;
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return bytes;
}
std::string argument(const options& o, const std::string& text) {
  if (!o.hex) return text;
  if (auto bytes = from_hex(text)) return *bytes;
  fail(fmt::format("'{}' is not hexadecimal: write two digits 0-9, a-f for each byte", text));
}
std::string shown(const options& o, std::string_view bytes) {
  return o.hex ? to_hex(bytes) : std::string(bytes);
}

std::optional<std::string> bytes_of(const json& line, const char* name) {
  const auto member = line.find(name);
  if (member == line.end()) return std::nullopt;
  if (member->is_string()) return member->get<std::string>();
  if (!member->is_object() || member->size() != 1 || !member->contains("hex") ||
      !(*member)["hex"].is_string())
    return std::nullopt;
  return from_hex((*member)["hex"].get<std::string>());
}

// Empty: none, or none that a clock can show.
std::optional<kv_time> expiry_of(const json& line) {
  const auto member = line.find("expires_at_ms");
  if (member == line.end() || !member->is_number_unsigned()) return std::nullopt;
  const auto of = member->get<std::uint64_t>();
  if (of > static_cast<std::uint64_t>(detail::milliseconds_of(kv_time::max()))) return std::nullopt;
  return detail::kv_time_of_expiry(of);
}
struct imported {
  std::string key, value;
  std::optional<kv_time> expires;
};

// The pool, and the store that --store names.
struct opened {
  kv pool;
  std::optional<kv> named;
  kv& store() { return named ? *named : pool; }
};
enum class access { writes, only_reads };
kv open_pool(const options& o, access how) {
  if (how == access::writes) return sure(kv::open(o.path));
  auto opened = kv::open(o.path);
  if (opened || (opened.error().code != errc::read_only && opened.error().code != errc::permission))
    return sure(std::move(opened));
  return sure(kv::from_handle(
      sure(detail::pool_handle::from_runtime(open_for_reading(o.path), kv::root_size()))));
}
opened open(const options& o, access how) {
  opened s{open_pool(o, how), std::nullopt};
  if (!o.store.empty()) {
    auto named =
        s.pool.open_store(o.store, o.create ? kv::if_missing::create : kv::if_missing::refuse);
    if (!named && named.error().code == errc::not_found)
      fail(
          fmt::format("{} has no store '{}'; `stele kv stores {}` lists them, and put and import "
                      "make one with --create",
                      o.path, o.store, o.path));
    s.named.emplace(sure(std::move(named)));
  }
  return s;
}
void close(opened& s) {
  s.named.reset();
  sure(s.pool.close());
}

void get(const options& o) {
  auto s = open(o, access::only_reads);
  const auto value = sure(s.store().get(argument(o, o.key)));
  close(s);
  if (!value) fail(fmt::format("{}: there is no key '{}'", o.path, o.key));
  if (!o.json.empty())
    return write_json(o.json, json_of_item(argument(o, o.key), *value, {}), o.path);
  fmt::print("{}\n", shown(o, *value));
}

std::chrono::milliseconds lifetime_of(const options& o) {
  if (!(o.ttl_seconds <= 1e11)) fail("--ttl is a number of seconds, up to 100,000,000,000");
  return std::chrono::milliseconds(static_cast<std::int64_t>(o.ttl_seconds * 1000));
}

void put(const options& o) {
  const auto lifetime = lifetime_of(o);
  auto s = open(o, access::writes);
  const std::string key = argument(o, o.key), value = argument(o, o.value);
  if (o.ttl_seconds != 0)
    sure(s.store().put_for(key, value, lifetime));
  else
    sure(s.store().put(key, value));
  close(s);
}

void del(const options& o) {
  auto s = open(o, access::writes);
  const bool there = sure(s.store().erase(argument(o, o.key)));
  close(s);
  if (!there) fail(fmt::format("{}: there is no key '{}'", o.path, o.key));
}

// Calls f(key, value) on the items that the options choose, in their order. An interrupt ends it.
template <class F>
void for_each(const options& o, kv& store, F&& f) {
  if (!o.prefix.empty() && (!o.from.empty() || !o.to.empty()))
    fail("give --prefix, or --from and --to");
  auto c = o.prefix.empty() ? store.walk(argument(o, o.from), argument(o, o.to))
                            : store.walk_prefix(argument(o, o.prefix));
  for (std::size_t n = 0; o.limit == 0 || n < o.limit; ++n) {
    if (interrupted() || !sure(o.reverse ? c.prev() : c.next())) return;
    f(c.key(), c.value());
  }
}

void scan(const options& o) {
  auto s = open(o, access::only_reads);
  json items = json::array();
  for_each(o, s.store(), [&](const std::string& key, const std::string& value) {
    if (!o.json.empty())
      items.push_back(json_of_item(key, value, {}));
    else if (o.keys_only)
      fmt::print("{}\n", shown(o, key));
    else
      fmt::print("{}\t{}\n", shown(o, key), shown(o, value));
  });
  close(s);
  if (!o.json.empty()) write_json(o.json, items, o.path);
}

void export_lines(const options& o) {
  auto s = open(o, access::only_reads);
  output out(o.file, o.path);
  std::size_t items = 0;
  const bool some_expire = sure(s.store().statistics()).expiring_items != 0,
             watched = o.file != "-" && isatty(STDERR_FILENO) != 0;
  for_each(o, s.store(), [&](const std::string& key, const std::string& value) {
    std::optional<kv_time> expires;
    if (some_expire)
      expires = sure(s.store().read([&](const kv::view& v) { return v.expiry(key); }));
    out.write(json_of_item(key, value, expires).dump() + '\n');
    if (++items % items_of_an_import == 0 && watched)
      print_error("\r\033[Kexported {} items", items);
  });
  if (watched) print_error("\r\033[K");
  close(s);
  if (interrupted()) fail(fmt::format("interrupted after {} items", items));
  out.keep(when_kept::durable);
  if (o.file != "-") print_error("{} items\n", items);
}

// Puts the lines in transactions of up to items_of_an_import items. An error or an interrupt leaves
// those before it.
void import_lines(const options& o) {
  auto s = open(o, access::writes);
  std::ifstream file;
  if (o.file != "-") file.open(o.file);
  std::istream& in = o.file == "-" ? std::cin : file;
  if (!in) fail(fmt::format("cannot read {}", o.file));
  std::vector<imported> batch;
  std::size_t number = 0, bytes = 0, done = 0;
  const bool watched = isatty(STDERR_FILENO) != 0;
  const auto write = [&] {
    const auto put_all = [&](kv::changes& c) {
      for (const imported& i : batch)
        i.expires ? c.put_until(i.key, i.value, *i.expires) : c.put(i.key, i.value);
    };
    if (auto written = s.store().update(put_all, durability::ordered); !written)
      fail(fmt::format("{}; the items of the first {} lines are in the store",
                       written.error().message, done));
    done = number, bytes = 0;
    batch.clear();
    if (watched) print_error("\r\033[Kimported {} lines", done);
  };
  const auto refuse = [&](const std::string& why) {
    fail(fmt::format("{}, line {}: {}; the items of the first {} lines are in the store", o.file,
                     number, why, done));
  };
  for (std::string line; !interrupted() && std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    const json item = json::parse(line, nullptr, false);
    if (!item.is_object()) refuse(R"(not a JSON object such as {"key": "a", "value": "b"})");
    const auto key = bytes_of(item, "key"), value = bytes_of(item, "value");
    if (!key || !value)
      refuse(R"(its "key" and "value" have to be strings, or {"hex": DIGITS} each)");
    if (key->empty() || key->size() > kv::max_key_bytes)
      refuse(fmt::format("a key of {} bytes: it may have 1 to {}", key->size(), kv::max_key_bytes));
    const auto expires = expiry_of(item);
    if (item.contains("expires_at_ms") && !expires)
      refuse(R"(its "expires_at_ms" has to be a number of milliseconds since the begin of 1970)");
    batch.push_back({*key, *value, expires});
    bytes += key->size() + value->size();
    if (batch.size() >= items_of_an_import || bytes >= bytes_of_an_import) write();
  }
  write();
  sure(s.pool.sync());
  close(s);
  if (watched) print_error("\n");
  if (interrupted())
    fail(fmt::format("interrupted: the items of the first {} lines are in the store", done));
}

// Puts again the items of `keys` that would live longer than `lifetime`. Returns how many.
std::size_t shorten_lifetimes(kv& store, const std::vector<std::string>& keys,
                              std::chrono::milliseconds lifetime) {
  const auto longest = detail::kv_time_of_expiry(sure(detail::expiry_after(lifetime)));
  return sure(store.update([&](kv::changes& c) {
    std::size_t count = 0;
    for (const std::string& key : keys) {
      const auto expires = c.expiry(key);
      const auto value = expires && *expires > longest ? c.get(key) : std::nullopt;
      if (value) c.put_until(key, *value, longest), ++count;
    }
    return count;
  }));
}

// For a store that was changed while the clock was ahead.
void shorten(const options& o) {
  const auto lifetime = lifetime_of(o);
  auto s = open(o, access::writes);
  std::vector<std::string> keys;
  std::size_t bytes = 0, count = 0;
  const auto change = [&] {
    count += shorten_lifetimes(s.store(), keys, lifetime);
    keys.clear(), bytes = 0;
  };
  for_each(o, s.store(), [&](const std::string& key, const std::string& value) {
    keys.push_back(key);
    bytes += key.size() + value.size();
    if (keys.size() >= items_of_an_import || bytes >= bytes_of_an_import) change();
  });
  change();
  close(s);
  fmt::print("{} items expire earlier now\n", count);
}

json json_of(const kv_statistics& s) {
  return {{"items", s.items},
          {"key_bytes", s.key_bytes},
          {"value_bytes", s.value_bytes},
          {"item_space", s.item_space},
          {"hash_buckets", s.hash_buckets},
          {"hash_space", s.hash_space},
          {"tree_nodes", s.tree_nodes},
          {"tree_space", s.tree_space},
          {"expiring_items", s.expiring_items},
          {"expired_items", s.expired_items},
          {"clock_behind_ms", s.clock_behind.count()}};
}

// The unnamed store has the name "" here, as in JSON.
void stats(const options& o) {
  auto s = open(o, access::only_reads);
  std::vector<std::pair<std::string, kv_statistics>> all;
  if (s.named || o.store.empty()) all.emplace_back(o.store, sure(s.store().statistics()));
  if (o.store.empty())
    for (const std::string& name : sure(s.pool.stores()))
      all.emplace_back(name, sure(sure(s.pool.open_store(name)).statistics()));
  close(s);
  json stores = json::array();
  for (const auto& [name, of] : all) {
    stores.push_back(json_of(of));
    stores.back()["store"] = name;
  }
  if (!o.json.empty()) return write_json(o.json, {{"stores", stores}});
  for (const auto& [name, of] : all) {
    fmt::print("{}\n", name.empty() ? "the store without a name" : "store " + name);
    fmt::print("  items      {} ({} expire, {} have expired)\n", of.items, of.expiring_items,
               of.expired_items);
    fmt::print("  bytes      {} of keys, {} of values, in {}\n", of.key_bytes, of.value_bytes,
               of.item_space);
    fmt::print("  indexes    {} buckets in {} bytes, {} nodes in {} bytes\n", of.hash_buckets,
               of.hash_space, of.tree_nodes, of.tree_space);
    if (of.clock_behind.count() != 0)
      fmt::print("  clock      {} ms behind the time that items expire by\n",
                 of.clock_behind.count());
  }
}

void stores(const options& o) {
  auto s = open(o, access::only_reads);
  const auto names = sure(s.pool.stores());
  close(s);
  if (!o.json.empty()) {
    json all = json::array();
    for (const std::string& name : names) all.push_back(text_or_hex(name));
    return write_json(o.json, all);
  }
  for (const std::string& name : names) fmt::print("{}\n", name);
}

void drop(const options& o) {
  auto s = open(o, access::writes);
  sure(s.pool.drop_store(o.key));
  close(s);
}

CLI::App* add(CLI::App& group, const char* name, const char* what,
              const std::shared_ptr<options>& o) {
  CLI::App* command = group.add_subcommand(name, what);
  command->add_option("path", o->path, "the pool file")->required();
  return command;
}
void add_store(CLI::App* command, const std::shared_ptr<options>& o) {
  command->add_option("--store", o->store, "the named store; else the one without a name");
  command->add_flag("--hex", o->hex, "keys and values are hexadecimal digits");
}
void add_json(CLI::App* command, const std::shared_ptr<options>& o) {
  command->add_option("--json", o->json, "write JSON to FILE; - is standard output");
}
void add_range(CLI::App* command, const std::shared_ptr<options>& o) {
  command->add_option("--from", o->from, "the least key");
  command->add_option("--to", o->to, "the key before which to end");
  command->add_option("--prefix", o->prefix, "only keys that begin so");
  command->add_option("--limit", o->limit, "the most items; 0: all");
  command->add_flag("--reverse", o->reverse, "from the greatest key to the least");
}

}  // namespace

void add_kv(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* group = app.add_subcommand("kv", "read and change key-value stores");
  group->require_subcommand(1);
  const auto with_key = [&](CLI::App* command) {
    add_store(command, o);
    command->add_option("key", o->key, "the key")->required();
    return command;
  };
  CLI::App* got = with_key(add(*group, "get", "prints the value of a key", o));
  add_json(got, o);
  got->callback([o] { get(*o); });
  CLI::App* made = with_key(add(*group, "put", "inserts or overwrites an item", o));
  made->add_option("value", o->value, "its value")->required();
  made->add_option("--ttl", o->ttl_seconds, "seconds after which the item expires");
  made->add_flag("--create", o->create, "make the named store if it is not there");
  made->callback([o] { put(*o); });
  with_key(add(*group, "del", "erases an item", o))->callback([o] { del(*o); });
  CLI::App* scanned =
      add(*group, "scan", "prints items in key order, a tab between key and value", o);
  add_store(scanned, o), add_range(scanned, o), add_json(scanned, o);
  scanned->add_flag("--keys", o->keys_only, "only the keys");
  scanned->callback([o] { scan(*o); });
  CLI::App* written = add(*group, "export", "writes items as JSON lines", o);
  add_store(written, o), add_range(written, o);
  written->add_option("file", o->file, "the file to write; - is standard output");
  written->callback([o] { export_lines(*o); });
  CLI::App* read = add(*group, "import", "puts the items of JSON lines", o);
  add_store(read, o);
  read->add_option("file", o->file, "the file to read; - is standard input");
  read->add_flag("--create", o->create, "make the named store if it is not there");
  read->callback([o] { import_lines(*o); });
  CLI::App* shortened =
      add(*group, "shorten", "makes items expire after --ttl seconds that would expire later", o);
  add_store(shortened, o), add_range(shortened, o);
  shortened->add_option("--ttl", o->ttl_seconds, "the longest lifetime, in seconds")->required();
  shortened->callback([o] { shorten(*o); });
  CLI::App* counted = add(*group, "stats", "items, bytes and space of each store", o);
  add_store(counted, o), add_json(counted, o);
  counted->callback([o] { stats(*o); });
  CLI::App* listed = add(*group, "stores", "lists the named stores", o);
  add_json(listed, o);
  listed->callback([o] { stores(*o); });
  CLI::App* dropped = add(*group, "drop", "drops a named store with all its items", o);
  dropped->add_option("name", o->key, "the store")->required();
  dropped->callback([o] { drop(*o); });
}

}  // namespace stele::cli
