// LMDB on the workload `store`.
//
// Settings: on media "file" its default, which writes pages and syncs the data, then the meta page,
// in every transaction. Elsewhere MDB_NOSYNC with MDB_WRITEMAP, its fastest: stores go to the
// shared mapping, which survives the process. The map is large enough never to grow. MDB_NORDAHEAD,
// as its documentation recommends for random reads. Read transactions are kept and renewed
// (MDB_NOTLS). LMDB returns values without a copy; the copy that a get makes here is the caller's.
// One writer at a time, with concurrent readers.
#include <bench/rivals/store_rival.h>

#include <lmdb.h>

namespace stele::bench {
namespace {

using workloads::operation;

MDB_val val(std::string_view s) {
  return {s.size(), const_cast<char*>(s.data())};
}
std::unexpected<error> failed(std::string_view what, int status);

class lmdb_engine final : public store_engine {
 public:
  static constexpr const char* name = "lmdb";

  static result<std::unique_ptr<lmdb_engine>> open(const store_settings& s) {
    auto e = std::unique_ptr<lmdb_engine>(new lmdb_engine(s));
    const unsigned flags =
        MDB_NOSUBDIR | MDB_NORDAHEAD | MDB_NOTLS | (s.sync ? 0u : MDB_NOSYNC | MDB_WRITEMAP);
    if (int status = mdb_env_create(&e->env_); status != 0)
      return failed("making the environment", status);
    mdb_env_set_mapsize(e->env_, s.content_bytes() * 4 +
                                     s.keys * 4096 * (s.value_bytes > 2000 ? 2 : 0) +
                                     (std::size_t{256} << 20));
    mdb_env_set_maxreaders(e->env_, 4096);
    if (int status = mdb_env_open(e->env_, s.path.c_str(), flags, 0600); status != 0)
      return failed("opening", status);
    MDB_txn* txn = nullptr;
    int status = mdb_txn_begin(e->env_, nullptr, 0, &txn);
    if (status == 0) status = mdb_dbi_open(txn, nullptr, 0, &e->dbi_);
    if (status == 0) status = mdb_txn_commit(txn);
    if (status != 0) return failed("opening its table", status);
    return e;
  }
  ~lmdb_engine() override {
    for (MDB_txn* reader : readers_) mdb_txn_abort(reader);
    if (env_ != nullptr) mdb_env_close(env_);
    std::error_code ignored;
    std::filesystem::remove(path_ + "-lock", ignored);
  }

  result<> apply(std::span<const operation> ops) override {
    static thread_local std::string value;
    MDB_txn* txn = nullptr;
    int status = mdb_txn_begin(env_, nullptr, 0, &txn);
    if (status != 0) return failed("beginning", status);
    for (const operation& op : ops) {
      const workloads::store::key bytes(op.a);
      MDB_val key = val(bytes);
      MDB_val data =
          val(op.what == operation::kind::put ? workloads::store::value(op.b, value_bytes_, value)
                                              : std::string_view());
      status = op.what == operation::kind::put ? mdb_put(txn, dbi_, &key, &data, 0)
                                               : mdb_del(txn, dbi_, &key, nullptr);
      if (status != 0 && status != MDB_NOTFOUND) {
        mdb_txn_abort(txn);
        return failed("writing", status);
      }
    }
    status = mdb_txn_commit(txn);
    return status == 0 ? result<>{} : failed("committing", status);
  }
  result<bool> get(std::uint64_t number, std::string& into) override {
    auto txn = reader();
    if (!txn) return std::unexpected(std::move(txn.error()));
    const workloads::store::key bytes(number);
    MDB_val key = val(bytes), data;
    const int status = mdb_get(*txn, dbi_, &key, &data);
    if (status == 0) into.assign(static_cast<const char*>(data.mv_data), data.mv_size);
    mdb_txn_reset(*txn);
    if (status != 0 && status != MDB_NOTFOUND) return failed("reading", status);
    return status == 0;
  }
  std::optional<std::uint64_t> space_bytes() override {
    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(env_, &info);
    mdb_env_stat(env_, &stat);
    return (info.me_last_pgno + 1) * stat.ms_psize;
  }

 private:
  explicit lmdb_engine(const store_settings& s) : path_(s.path), value_bytes_(s.value_bytes) {}

  // This thread's read transaction, at the newest state; the engine's destructor ends it.
  result<MDB_txn*> reader() {
    static thread_local std::uint64_t of = 0;
    static thread_local MDB_txn* mine = nullptr;
    int status = 0;
    if (of == id_) {
      status = mdb_txn_renew(mine);
    } else {
      status = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &mine);
      of = status == 0 ? id_ : 0;
      const std::lock_guard hold(mutex_);
      if (status == 0) readers_.push_back(mine);
    }
    if (status != 0) return failed("beginning to read", status);
    return mine;
  }

  static inline std::atomic<std::uint64_t> next_id_{1};
  const std::uint64_t id_ = next_id_++;
  const std::string path_;
  const std::size_t value_bytes_;
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  std::mutex mutex_;
  std::vector<MDB_txn*> readers_;
};

std::unexpected<error> failed(std::string_view what, int status) {
  return engine_failed(lmdb_engine::name, what, mdb_strerror(status));
}

}  // namespace

contender_result make_lmdb(const task& t) {
  return make_store_rival<lmdb_engine>(t);
}

}  // namespace stele::bench
