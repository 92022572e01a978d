// Tokyo Cabinet's hash database on the workload `store`.
//
// Settings: on media "file" every change is in a transaction (tchdbtranbegin, tchdbtrancommit) with
// HDBOTSYNC, which syncs log and database in each. Elsewhere there are no transactions, because
// they sync the mapping in any case. A put is in the shared mapping when it returns and survives
// the process; a put during which the process dies may be there in part, and the report says so.
// Twice as many buckets as keys, 64-bit offsets (HDBTLARGE), the whole file mapped (tchdbsetxmsiz),
// as its documentation recommends. It keeps no order of keys, unlike its B+ tree database. Its lock
// admits one writer at a time.
#include <bench/rivals/store_rival.h>

#include <tchdb.h>
#include <mutex>

namespace stele::bench {
namespace {

using workloads::operation;

class tokyocabinet_engine final : public store_engine {
 public:
  static constexpr const char* name = "tokyocabinet";
  static std::string name_in_report(bool sync) {
    return sync ? "tokyocabinet" : "tokyocabinet, not atomic";
  }

  static result<std::unique_ptr<tokyocabinet_engine>> open(const store_settings& s) {
    auto e = std::unique_ptr<tokyocabinet_engine>(new tokyocabinet_engine(s));
    const auto mapped =
        static_cast<std::int64_t>(s.content_bytes() * 2 + s.keys * 32 + (std::size_t{64} << 20));
    const bool opened =
        tchdbsetmutex(e->db_) &&
        tchdbtune(e->db_, static_cast<std::int64_t>(2 * s.keys), -1, -1, HDBTLARGE) &&
        tchdbsetxmsiz(e->db_, mapped) &&
        tchdbopen(e->db_, s.path.c_str(),
                  HDBOWRITER | HDBOREADER | HDBOCREAT | HDBOTRUNC | (s.sync ? HDBOTSYNC : 0));
    if (!opened) return e->failed("opening");
    return e;
  }
  ~tokyocabinet_engine() override {
    tchdbdel(db_);  // closes
    std::error_code ignored;
    std::filesystem::remove(path_ + ".wal", ignored);
  }

  result<> apply(std::span<const operation> ops) override {
    if (!atomic_) return change(ops);
    const std::lock_guard hold(transactions_);  // tchdbtranbegin would wait by sleeping
    if (!tchdbtranbegin(db_)) return failed("beginning");
    if (auto done = change(ops); !done) {
      tchdbtranabort(db_);
      return done;
    }
    return tchdbtrancommit(db_) ? result<>{} : failed("committing");
  }
  // Outside transactions, which sync each page that they change.
  result<> fill(std::span<const operation> puts) override { return change(puts); }
  result<> filled() override {
    return !atomic_ || tchdbsync(db_) ? result<>{} : failed("syncing what fills it");
  }
  result<bool> get(std::uint64_t number, std::string& into) override {
    const workloads::store::key key(number);
    const std::string_view k = key;
    into.resize(value_bytes_);
    const int size = tchdbget3(db_, k.data(), static_cast<int>(k.size()), into.data(),
                               static_cast<int>(value_bytes_));
    if (size < 0 && tchdbecode(db_) != TCENOREC) return failed("reading");
    if (size >= 0) into.resize(static_cast<std::size_t>(size));
    return size >= 0;
  }
  std::optional<std::uint64_t> space_bytes() override { return tchdbfsiz(db_); }

 private:
  explicit tokyocabinet_engine(const store_settings& s)
      : path_(s.path), value_bytes_(s.value_bytes), atomic_(s.sync), db_(tchdbnew()) {}
  std::unexpected<error> failed(std::string_view what) const {
    return engine_failed(name, what, tchdberrmsg(tchdbecode(db_)));
  }
  result<> change(std::span<const operation> ops) {
    static thread_local std::string value;
    for (const operation& op : ops) {
      const workloads::store::key key(op.a);
      const std::string_view k = key;
      if (op.what == operation::kind::put) {
        const std::string_view v = workloads::store::value(op.b, value_bytes_, value);
        if (!tchdbput(db_, k.data(), static_cast<int>(k.size()), v.data(),
                      static_cast<int>(v.size())))
          return failed("writing");
      } else if (!tchdbout(db_, k.data(), static_cast<int>(k.size())) &&
                 tchdbecode(db_) != TCENOREC) {
        return failed("erasing");
      }
    }
    return {};
  }

  const std::string path_;
  const std::size_t value_bytes_;
  const bool atomic_;
  TCHDB* const db_;
  std::mutex transactions_;
};

}  // namespace

contender_result make_tokyocabinet(const task& t) {
  return make_store_rival<tokyocabinet_engine>(t);
}

}  // namespace stele::bench
