// linkbench in SQL: tables of nodes, links and counts of links, as LinkBench has them.
//
// The rows at the start and the operations are those of lab/workloads/linkbench_kind.h, with this
// difference: as in LinkBench, lists of links grow, and an added link replaces no other. Links are
// in the order in which they were added, which is that of their row numbers. Reads of a list, and
// the links that are updated and deleted, are among the newest of the list, as many as the longest
// list has room for there.
#include <bench/sqlite/sql_workload.h>
#include <fmt/format.h>
#include <workloads/linkbench.h>
#include <workloads/store.h>

namespace stele::bench::sql {
namespace {

using kind = operation::kind;
using workloads::linkbench::change;
using workloads::linkbench::types;

constexpr std::int64_t newest_links =
    workloads::linkbench::room_at_start(workloads::linkbench::links_at_start);

constexpr const char* tables =
    "CREATE TABLE node(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE TABLE link(id1 INTEGER NOT NULL, type INTEGER NOT NULL, id2 INTEGER NOT NULL,"
    " version INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(id1, type, id2));"
    "CREATE INDEX link_by_age ON link(id1, type);"
    "CREATE TABLE link_count(id INTEGER, type INTEGER, count INTEGER NOT NULL,"
    " PRIMARY KEY(id, type)) WITHOUT ROWID";

class linkbench_session final : public session {
 public:
  linkbench_session(std::shared_ptr<connection> db, std::size_t value_size)
      : session(std::move(db)), value_size_(value_size) {}

 private:
  struct list {
    std::uint64_t id, type;
    explicit list(std::uint64_t number) : id(number / types), type(number % types) {}
  };

  bool is_one_statement(const operation& op) const override {
    return op.what == kind::put || workloads::only_reads(op);
  }

  result<> run(const operation& op) override {
    switch (op.what) {
      case kind::scan:
        return read_links(list(change(op).list));
      case kind::put:
        return update_node_.run(value(op.b), op.a);
      case kind::insert:
        return add_link(op);
      case kind::read_modify:
        return with_chosen_link(
            op, [&](std::int64_t row) { return update_link_.run(value(op.b), row); });
      case kind::erase:
        return with_chosen_link(op, [&](std::int64_t row) { return delete_link(op, row); });
      default:
        return read(op);
    }
  }

  static void use(const row_view& row) { workloads::do_not_optimize(row.bytes(0)); }
  result<> read(const operation& op) {
    if (op.b == 0) return read_node_.each_row(use, op.a);
    const list of(workloads::linkbench::counted_list(op));
    return count_.each_row(use, of.id, of.type);
  }
  result<> read_links(const list& of) {
    return read_links_.each_row(use, of.id, of.type, newest_links);
  }
  result<> add_link(const operation& op) {
    const change c(op);
    const list of(c.list);
    auto done = renew_link_.run(value(op.b), of.id, of.type, c.to);
    if (!done || db().changes() != 0) return done;
    done = add_link_.run(of.id, of.type, c.to, value(op.b));
    return done ? raise_count_.run(of.id, of.type) : done;
  }
  result<> delete_link(const operation& op, std::int64_t row) {
    const list of(change(op).list);
    auto done = delete_link_.run(row);
    return done ? lower_count_.run(of.id, of.type) : done;
  }
  // Calls then(row number) for the link that the operation chooses by position, if the list has
  // any.
  template <class Then>
  result<> with_chosen_link(const operation& op, Then&& then) {
    const change c(op);
    const list of(c.list);
    std::int64_t count = 0, chosen = 0;
    auto done =
        count_.each_row([&](const row_view& row) { count = row.number(0); }, of.id, of.type);
    if (!done || count == 0) return done;
    const auto position = static_cast<std::int64_t>(c.position) % std::min(count, newest_links);
    done = choose_link_.each_row([&](const row_view& row) { chosen = row.number(0); }, of.id,
                                 of.type, position);
    return done ? then(chosen) : done;
  }
  std::string_view value(std::uint64_t word) {
    return workloads::store::value(word, value_size_, buffer_);
  }

  const std::size_t value_size_;
  std::string buffer_;
  statement read_node_{db(), "SELECT data, version FROM node WHERE id = ?"},
      update_node_{db(), "UPDATE node SET version = version + 1, data = ? WHERE id = ?"},
      count_{db(), "SELECT count FROM link_count WHERE id = ? AND type = ?"},
      raise_count_{db(),
                   "INSERT INTO link_count VALUES(?, ?, 1) "
                   "ON CONFLICT(id, type) DO UPDATE SET count = count + 1"},
      lower_count_{db(), "UPDATE link_count SET count = count - 1 WHERE id = ? AND type = ?"},
      read_links_{db(),
                  "SELECT data, id2, version FROM link "
                  "WHERE id1 = ? AND type = ? ORDER BY rowid DESC LIMIT ?"},
      choose_link_{db(),
                   "SELECT rowid FROM link "
                   "WHERE id1 = ? AND type = ? ORDER BY rowid DESC LIMIT 1 OFFSET ?"},
      add_link_{db(), "INSERT INTO link VALUES(?, ?, ?, 0, ?)"},
      renew_link_{db(),
                  "UPDATE link SET version = version + 1, data = ? "
                  "WHERE id1 = ? AND type = ? AND id2 = ?"},
      update_link_{db(), "UPDATE link SET version = version + 1, data = ? WHERE rowid = ?"},
      delete_link_{db(), "DELETE FROM link WHERE rowid = ?"};
};

class linkbench final : public sql_workload {
 public:
  explicit linkbench(const workloads::parameters& p) : keys_(p), ids_(p) {}

  result<> fill(connection& db) override {
    auto done = db.run(tables);
    if (done) done = fill_nodes(db);
    if (done) done = fill_links(db);
    if (done)
      done =
          db.run("INSERT INTO link_count SELECT id1, type, count(*) FROM link GROUP BY id1, type");
    return done;
  }
  std::unique_ptr<session> make_session(std::shared_ptr<connection> db) override {
    return std::make_unique<linkbench_session>(std::move(db), value_size());
  }

 private:
  std::size_t value_size() const { return keys_.params().value_size; }

  result<> fill_nodes(connection& db) const {
    statement insert(db, "INSERT INTO node VALUES(?, 0, ?)");
    std::string buffer;
    return in_large_transactions(db, ids_.nodes(), value_size(), [&](std::uint64_t id) {
      return insert.run(id, workloads::store::value(keys_.word_at_start(id), value_size(), buffer));
    });
  }
  result<> fill_links(connection& db) const {
    statement insert(db, "INSERT OR IGNORE INTO link VALUES(?, ?, ?, 0, ?)");
    std::vector<std::uint8_t> lengths(ids_.nodes() * types);
    std::string buffer;
    return in_large_transactions(db, keys_.size(), value_size(), [&](std::uint64_t i) -> result<> {
      const auto l = ids_.at_start(keys_, i);
      if (!l || lengths[l->list] == workloads::linkbench::links_at_start) return {};
      auto done = insert.run(l->list / types, l->list % types, l->to,
                             workloads::store::value(l->word, value_size(), buffer));
      lengths[l->list] = static_cast<std::uint8_t>(lengths[l->list] + db.changes());
      return done;
    });
  }

  std::vector<invariant> invariants() const override {
    return {
        {fmt::format("SELECT n FROM (SELECT count(*) AS n FROM node) WHERE n <> {}", ids_.nodes()),
         "there are more or fewer nodes than at the start; their number"},
        {"SELECT id FROM link_count AS c WHERE count <> "
         "(SELECT count(*) FROM link WHERE id1 = c.id AND type = c.type)",
         "a count differs from the number of links; the id of its node"},
        {"SELECT id1 FROM link WHERE (id1, type) NOT IN (SELECT id, type FROM link_count)",
         "a link is not counted; the id of its node"},
        {fmt::format("SELECT id FROM node WHERE length(data) <> {0} "
                     "UNION ALL SELECT id1 FROM link WHERE length(data) <> {0}",
                     value_size()),
         "a payload is not as long as all values are; the id of its node"}};
  }

  const workloads::key_space keys_;
  const workloads::linkbench::id_choice ids_;
};

}  // namespace

std::unique_ptr<sql_workload> make_linkbench(const workloads::parameters& p) {
  return std::make_unique<linkbench>(p);
}

}  // namespace stele::bench::sql
