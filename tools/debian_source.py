"""Debian's source packages, fetched with a package list of their own: the machine's stays as it is."""

import os

ARCHIVES = {"debian": "bookworm", "debian-security": "bookworm-security"}


def commands(package, folder):
    """The commands that fetch the source package into a folder, to be run there; makes what they need."""
    apt = os.path.join(folder, "apt")
    os.makedirs(f"{apt}/lists/partial", exist_ok=True)
    os.makedirs(f"{apt}/cache", exist_ok=True)
    with open(f"{apt}/sources.list", "w") as out:
        for archive, suite in ARCHIVES.items():
            out.write("deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
                      f"http://deb.debian.org/{archive} {suite} main\n")
    options = [part for option in (f"Dir::Etc::SourceList={apt}/sources.list", "Dir::Etc::SourceParts=/dev/null",
                                   f"Dir::State::Lists={apt}/lists", f"Dir::Cache={apt}/cache",
                                   "APT::Sandbox::User=root") for part in ("-o", option)]
    return [["apt-get", *options, "update"], ["apt-get", *options, "source", package]]
