// The tree of a sorted set.
#include "stored_scores.h"

#include "stored_check.h"

#include <algorithm>
#include <string>

namespace stele::redis {

// Orders of slots.

void slot_order::move(std::size_t from, std::size_t to) {
  const auto below = [](std::uint64_t all, std::size_t position) {
    return all & ((std::uint64_t{1} << 4 * position) - 1);
  };
  const std::uint64_t all = word_ >> 4, moved = slot(from);
  const std::uint64_t others = below(all, from) | all >> 4 * (from + 1) << 4 * from;
  const std::uint64_t ordered =
      below(others, to) | moved << 4 * to | others >> 4 * to << 4 * (to + 1);
  word_ = ordered << 4 | (word_ & 15);
}

bool slot_order::valid() const {
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < slots; ++i) seen |= std::uint64_t{1} << slot(i);
  return seen == (std::uint64_t{1} << slots) - 1;
}

namespace {

// How many of the numbers from `low` to before `high` are in the first part, where holds(number) is
// true, plus `low`.
template <class Holds>
std::size_t end_of_first(std::size_t low, std::size_t high, Holds&& holds) {
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (holds(middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

// Assertions.

std::uint64_t stored_scores::items_of(const node* n, std::uint64_t level) {
  if (level == 0) return leaf_of(n)->count();
  const inner* const in = inner_of(n);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < in->count(); ++i) sum += in->at(i).count;
  return sum;
}

bool stored_scores::is_at(std::uint64_t rank, const item* who) const {
  if (rank >= size_) return false;
  const leaf_place p = find_rank(rank);
  const entry e = p.at->at(p.position).load();
  return e.who == who && e.score == who->second;
}

bool stored_scores::ascends_at(std::uint64_t rank) const {
  std::optional<entry> before;
  for (std::uint64_t r = rank == 0 ? 0 : rank - 1; r < size_ && r <= rank + 1; ++r) {
    const leaf_place p = find_rank(r);
    const entry e = p.at->at(p.position).load();
    if (before && (before->score != e.score ? before->score > e.score
                                            : before->who->first.compare(e.who->first.str()) >= 0))
      return false;
    before = e;
  }
  return true;
}

bool stored_scores::counts_agree() const {
  constexpr std::size_t few_buckets = 256;
  if ((root_ == nullptr) != (size_ == 0)) return false;
  if (root_ == nullptr) return height_ == 0;
  return items_of(root_, height_) == size_ &&
         (members_.bucket_count() > few_buckets || members_.size() == size_);
}

// Lookup.

auto stored_scores::child_of(const inner* n, std::uint64_t rank) -> place {
  place p{0, rank};
  const slot_order o = n->order();
  STELE_ASSERT(o.count() != 0);
  for (;; ++p.position) {
    const std::uint64_t count = n->slots[o.slot(p.position)].count;
    STELE_ASSERT(count != 0);  // a node is freed when it is empty
    STELE_ASSERT(p.rank < count || p.position + 1 < o.count());
    if (p.rank < count || p.position + 1 == o.count()) return p;
    p.rank -= count;
  }
}

auto stored_scores::first_of(const node* n, std::uint64_t level) -> entry {
  for (; level != 0; --level) n = inner_of(n)->at(0).child;
  return leaf_of(n)->at(0).load();
}

// is_before(score, item) is true of the first items, and of no others.
template <class Before>
std::uint64_t stored_scores::count_before(Before&& is_before) const {
  const node* n = root_;
  if (n == nullptr) return 0;
  std::uint64_t rank = 0;
  const auto is_first = [&](const leaf_slot& s) { return is_before(s.score.load(), s.who); };
  for (std::uint64_t level = height_; level != 0; --level) {
    const inner* const in = inner_of(n);
    const slot_order o = in->order();
    const std::size_t child =
        end_of_first(1, o.count(),
                     [&](std::size_t i) { return is_first(in->slots[o.slot(i)].first); }) -
        1;
    for (std::size_t i = 0; i < child; ++i) rank += in->slots[o.slot(i)].count;
    n = in->slots[o.slot(child)].child;
    STELE_ASSERT(n != nullptr);
  }
  const leaf* const at = leaf_of(n);
  const slot_order o = at->order();
  STELE_ASSERT(o.count() != 0 && rank + o.count() <= size_);
  return rank +
         end_of_first(0, o.count(), [&](std::size_t i) { return is_first(at->slots[o.slot(i)]); });
}

std::uint64_t stored_scores::rank_of_key(double score, std::string_view member) const {
  return count_before([&](double other, const item* who) {
    return other != score ? other < score : who->first.compare(member) < 0;
  });
}

auto stored_scores::find_rank(std::uint64_t rank) const -> leaf_place {
  STELE_ASSERT(rank < size_ && root_ != nullptr);
  const node* n = root_;
  for (std::uint64_t level = height_; level != 0; --level) {
    const place p = child_of(inner_of(n), rank);
    n = inner_of(n)->at(p.position).child;
    rank = p.rank;
  }
  STELE_ASSERT(rank < leaf_of(n)->count());
  return {leaf_of(n), rank};
}

std::optional<double> stored_scores::find(std::string_view member) const {
  const auto found = members_.find(member);
  if (found == members_.end()) return std::nullopt;
  return found->second.load();
}

std::optional<std::uint64_t> stored_scores::rank_of(std::string_view member) const {
  const auto score = find(member);
  if (!score) return std::nullopt;
  return rank_of_key(*score, member);
}

std::uint64_t stored_scores::rank_of_score(double score, bool after) const {
  return count_before(
      [&](double other, const item*) { return after ? other <= score : other < score; });
}

std::uint64_t stored_scores::rank_of_member_bytes(std::string_view member, bool after) const {
  return count_before([&](double, const item* who) {
    const auto order = who->first.compare(member);
    return after ? order <= 0 : order < 0;
  });
}

// Inserting. An insertion returns an entry for the node that it has made to the right of the one
// that was full; without a child: it has made none.

template <class Node>
auto stored_scores::insert_entry(Node* n, std::size_t position, const entry& e) -> entry {
  slot_order o = n->order();
  STELE_ASSERT(position <= o.count() && e.count != 0);
  if (o.count() == slot_order::slots) return split(n, position, e);
  n->slots[o.insert(position)].store(e);
  n->set_order(o);
  return {};
}

template <class Node>
auto stored_scores::split(Node* n, std::size_t position, const entry& e) -> entry {
  constexpr std::size_t half = (slot_order::slots + 1) / 2;
  const std::size_t kept = position == slot_order::slots ? slot_order::slots : half;
  Node* const right = stele::make<Node>(slot_order());
  slot_order o = n->order(), right_order;
  STELE_ASSERT(o.count() == slot_order::slots && position <= slot_order::slots);
  for (std::size_t i = kept; i < slot_order::slots; ++i)
    right->slots[right_order.insert(i - kept)].store(n->slots[o.slot(i)].load());
  o.keep(kept);
  if (position > half)
    right->slots[right_order.insert(position - kept)].store(e);
  else
    n->slots[o.insert(position)].store(e);
  n->set_order(o);
  right->set_order(right_order);
  STELE_ASSERT(o.count() + right_order.count() == slot_order::slots + 1);
  STELE_ASSERT(o.count() >= right_order.count() && right_order.count() != 0);
  entry made = right->at(0).load();
  made.count = 0;
  for (std::size_t i = 0; i < right_order.count(); ++i) made.count += right->at(i).load().count;
  made.child = &right->head;
  return made;
}

// An item comes behind the one of the rank before, so it is never the first of any but the first
// child.
auto stored_scores::insert_below(node* n, std::uint64_t level, std::uint64_t rank, const entry& e)
    -> entry {
  if (level == 0) return insert_entry(leaf_of(n), rank, e);
  inner* const in = inner_of(n);
  STELE_ASSERT_WHOLE(rank <= items_of(n, level));
  const place p = child_of(in, rank == 0 ? 0 : rank - 1);
  inner_slot& s = in->at(p.position);
  const entry made = insert_below(s.child, level - 1, rank == 0 ? 0 : p.rank + 1, e);
  STELE_ASSERT(made.count <= s.count);  // what was split off leaves something
  STELE_ASSERT((made.child == nullptr) == (made.count == 0));
  s.count = s.count + 1 - made.count;
  STELE_ASSERT_WHOLE(items_of(s.child, level - 1) == s.count);
  STELE_ASSERT_WHOLE(made.child == nullptr || items_of(made.child, level - 1) == made.count);
  return made.child == nullptr ? entry{} : insert_entry(in, p.position + 1, made);
}

void stored_scores::insert_at(std::uint64_t rank, const entry& e) {
  STELE_ASSERT(rank <= size_ && e.who != nullptr && e.child == nullptr);
  STELE_ASSERT((root_ == nullptr) == (size_ == 0) && (root_ != nullptr || height_ == 0));
  if (root_ == nullptr) root_ = &stele::make<leaf>(slot_order())->head;
  const entry made = insert_below(root_, height_, rank, e);
  size_ += 1;
  if (made.child == nullptr) return;
  inner* const root = stele::make<inner>(slot_order());
  insert_entry(root, 0, {0, nullptr, size_ - made.count, root_});
  insert_entry(root, 1, made);
  root_ = &root->head;
  height_ += 1;
  STELE_ASSERT(root->count() == 2);
  STELE_ASSERT_WHOLE(items_of(root_, height_) == size_);
}

bool stored_scores::put(std::string_view member, double score) {
  STELE_ASSERT(score == score);  // never NaN
  if (score == 0) score = 0;     // without a sign
  auto at = members_.find_entry(member);
  if (!at.exists()) {
    insert_at(rank_of_key(score, member), {score, &at.insert(score), 1, nullptr});
    STELE_ASSERT_WHOLE(ascends_at(rank_of_key(score, member)));
    STELE_ASSERT_WHOLE(counts_agree());
    return true;
  }
  item& who = at.item();
  const double old = who.second;
  if (old == score) return false;
  const std::uint64_t from = rank_of_key(old, member), to = rank_of_key(score, member);
  STELE_ASSERT_WHOLE(is_at(from, &who));
  who.second = score;
  if (to == from || to == from + 1) {  // behind itself is where it is
    set_score_at(from, score);
  } else {
    erase_at(from);
    insert_at(to > from ? to - 1 : to, {score, &who, 1, nullptr});
  }
  STELE_ASSERT_WHOLE(is_at(rank_of_key(score, member), &who));
  STELE_ASSERT_WHOLE(ascends_at(rank_of_key(score, member)) && counts_agree());
  return false;
}

void stored_scores::set_score_at(std::uint64_t rank, double score) {
  STELE_ASSERT(rank < size_);
  node* n = root_;
  for (std::uint64_t level = height_; level != 0; --level) {
    const place p = child_of(inner_of(n), rank);
    inner_slot& s = inner_of(n)->at(p.position);
    if (p.rank == 0 && p.position != 0) s.first.score = score;
    n = s.child;
    rank = p.rank;
  }
  leaf_of(n)->at(rank).score = score;
}

// Erasing.

template <class Node>
bool stored_scores::join(Node* left, Node* right, const entry& right_entry) {
  slot_order o = left->order();
  const slot_order from = right->order();
  STELE_ASSERT(left != right && o.count() != 0 && from.count() != 0);
  if (o.count() + from.count() > most_joined) return false;
  for (std::size_t i = 0; i < from.count(); ++i) {
    entry e = right->slots[from.slot(i)].load();
    if (i == 0) {
      e.score = right_entry.score;
      e.who = right_entry.who;
    }
    left->slots[o.insert(o.count())].store(e);
  }
  left->set_order(o);
  stele::destroy(right);
  return true;
}

// The child at this position and the next one become one if they have few entries. `level`: theirs.
bool stored_scores::join_children(inner* n, std::uint64_t level, std::size_t position) {
  STELE_ASSERT(position + 1 < n->count());
  inner_slot& left = n->at(position);
  const entry right = n->at(position + 1).load();
  if (!(level == 0 ? join(leaf_of(left.child), leaf_of(right.child), right)
                   : join(inner_of(left.child), inner_of(right.child), right)))
    return false;
  left.count += right.count;
  STELE_ASSERT_WHOLE(items_of(left.child, level) == left.count);
  slot_order o = n->order();
  o.erase(position + 1);
  n->set_order(o);
  return true;
}

void stored_scores::erase_below(node* n, std::uint64_t level, std::uint64_t rank) {
  slot_order o(n->order);
  STELE_ASSERT_WHOLE(rank < items_of(n, level));
  if (level == 0) {
    o.erase(rank);
    n->order = o.word();
    return;
  }
  inner* const in = inner_of(n);
  const place p = child_of(in, rank);
  inner_slot& s = in->at(p.position);
  node* const child = s.child;
  erase_below(child, level - 1, p.rank);
  STELE_ASSERT(s.count != 0);
  s.count -= 1;
  STELE_ASSERT_WHOLE(items_of(child, level - 1) == s.count);
  if (s.count == 0) {
    STELE_ASSERT(slot_order(child->order).count() == 0);
    free_node(child, level - 1);
    o.erase(p.position);
    n->order = o.word();
    return;
  }
  if (p.rank == 0 && p.position != 0) s.first.store(first_of(child, level - 1));
  if (slot_order(child->order).count() > most_joined / 2) return;
  if (p.position + 1 < o.count() && join_children(in, level - 1, p.position)) return;
  if (p.position != 0) join_children(in, level - 1, p.position - 1);
}

void stored_scores::erase_at(std::uint64_t rank) {
  STELE_ASSERT(rank < size_);
  erase_below(root_, height_, rank);
  size_ -= 1;
  if (size_ == 0) return free_tree();
  while (height_ != 0 && inner_of(root_)->count() == 1) {
    node* const old = root_;
    root_ = inner_of(old)->at(0).child.load();
    free_node(old, height_);
    height_ -= 1;
  }
  STELE_ASSERT(root_ != nullptr);
  STELE_ASSERT_WHOLE(items_of(root_, height_) == size_);
}

bool stored_scores::erase(std::string_view member) {
  auto at = members_.find_entry(member);
  if (!at.exists()) return false;
  STELE_ASSERT_WHOLE(is_at(rank_of_key(at.item().second, member), &at.item()));
  erase_at(rank_of_key(at.item().second, member));
  at.erase();
  STELE_ASSERT_WHOLE(counts_agree());
  return true;
}

void stored_scores::erase_ranks(std::uint64_t first, std::uint64_t count) {
  if (first >= size_) return;
  count = std::min(count, size_ - first);
  if (count == size_) return clear();
  for (; count != 0; --count) {
    const leaf_place p = find_rank(first);
    const std::string member = p.at->at(p.position).who->first.str();
    erase_at(first);
    [[maybe_unused]] const std::size_t erased = members_.erase(member);
    STELE_ASSERT(erased == 1);
  }
  STELE_ASSERT_WHOLE(counts_agree());
}

void stored_scores::clear() {
  free_tree();
  members_.clear();
  STELE_ASSERT(counts_agree());
}

void stored_scores::free_node(node* n, std::uint64_t level) {
  STELE_ASSERT(n != nullptr);
  if (level == 0)
    stele::destroy(leaf_of(n));
  else
    stele::destroy(inner_of(n));
}

void stored_scores::free_below(node* n, std::uint64_t level) {
  for (std::size_t i = 0; level != 0 && i < inner_of(n)->count(); ++i)
    free_below(inner_of(n)->at(i).child, level - 1);
  free_node(n, level);
}

void stored_scores::free_tree() {
  STELE_ASSERT(root_ != nullptr || (height_ == 0 && size_ == 0));
  if (root_ == nullptr) return;
  free_below(root_, height_);
  root_ = nullptr;
  height_ = 0;
  size_ = 0;
}

// Inspection.

struct stored_scores::walk {
  std::uint64_t items = 0;
  double score = 0;  // of the last item
  std::string member;
};

result<> stored_scores::check_entry(const entry& e, walk& w) const {
  detail::validate_range(e.who, sizeof(item), alignof(item));
  const std::string member =
      reinterpret_cast<const basic_string<bounded_memory>&>(e.who->first).str();
  const auto found = members_.find(member);
  if (found == members_.end() || &*found != e.who || e.who->second != e.score)
    return detail::corrupt_error("sorted set: an entry of the tree is not its member's");
  if (w.items != 0 && !(w.score != e.score ? w.score < e.score : w.member < member))
    return detail::corrupt_error("sorted set: two entries are in the wrong order");
  w = {w.items + 1, e.score, member};
  return {};
}

result<> stored_scores::check_below(const node* n, std::uint64_t level, walk& w) const {
  detail::claim_block(n, level == 0 ? sizeof(leaf) : sizeof(inner));
  const slot_order o(n->order);
  if (!o.valid() || o.count() == 0)
    return detail::corrupt_error("sorted set: a node has no order of its slots");
  for (std::size_t i = 0; i < o.count(); ++i) {
    if (level == 0) {
      if (auto sound = check_entry(leaf_of(n)->at(i).load(), w); !sound) return sound;
      continue;
    }
    const entry e = inner_of(n)->at(i).load();
    const std::uint64_t before = w.items;
    if (auto sound = check_below(e.child, level - 1, w); !sound) return sound;
    const entry first = first_of(e.child, level - 1);
    if (w.items - before != e.count || (i != 0 && (first.who != e.who || first.score != e.score)))
      return detail::corrupt_error("sorted set: a node does not have what its parent says");
  }
  return {};
}

result<> stored_scores::check() const {
  return detail::check_bounded([&] { return check_in_walk(); });
}

result<> stored_scores::check_in_walk() const {
  if (auto sound = check_map<double>(members_); !sound) return sound;
  walk w;
  if (height_ > max_height)
    return detail::corrupt_error("sorted set: its tree is higher than any can be");
  if (root_ == nullptr && height_ != 0)
    return detail::corrupt_error("sorted set: its tree has levels and no node");
  if (root_ != nullptr) {
    if (auto sound = check_below(root_, height_, w); !sound) return sound;
  }
  if (w.items != size_ || members_.size() != size_)
    return detail::corrupt_error("sorted set: its size is not that of its tree and its members");
  return {};
}

}  // namespace stele::redis
