-- SQLite's cksumvfs above the VFS of a pool: pages with checksums are written, read and checked; a page that was
-- changed below it is found, and so is the first page, with the counter of changes. Run by SQLite's shell, in which
-- vfs=stele is the default; `.check` ends it with an error.
.load ./cksumvfs
.open checked.db
.filectrl reserve_bytes 8
vacuum;
create table t(a integer primary key, b);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
insert into t select i, printf('%.100c', 'x') from n;
begin;
delete from t where a % 3 = 0;
rollback;
.testcase written
pragma checksum_verification;
select count(*), sum(length(b)) from t;
select count(*) from sqlite_dbpage where not verify_checksum(data);
pragma integrity_check;
.check "1*2000|200000*0*ok*"

.open file:checked.db?vfs=stele
update sqlite_dbpage
  set data = (select cast(substr(data, 1, 2000) || x'2a' || substr(data, 2002) as blob) from sqlite_dbpage where pgno = 9)
  where pgno = 9;

.open checked.db
pragma checksum_verification = off;
.testcase found
select pgno from sqlite_dbpage where not verify_checksum(data);
.check "1*9*"
