// The VFS "stele" of SQLite.
#pragma once

namespace stele::sqlite {

// Makes the VFS "stele" known to the program's SQLite. Returns SQLite's code.
int register_vfs(bool make_default);

}  // namespace stele::sqlite
