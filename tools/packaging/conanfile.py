"""The Conan recipe: `conan create tools/packaging --build=missing` packs the libraries of this tree (docs/guide/install.md)."""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Stele(ConanFile):
    name = "stele"
    version = "0.1.0"
    license = "BSD-3-Clause"
    description = "Durable transactional memory: data structures in a pool file, changed in ACID transactions"
    topics = ("persistent-memory", "transactions", "storage")
    settings = "os", "arch", "compiler", "build_type"

    def export_sources(self):
        tree = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "docs/CHANGELOG.md", "include/*", "src/*", "tools/packaging/*"):
            copy(self, pattern, tree, self.export_sources_folder)

    def requirements(self):
        self.requires("fmt/[>=9 <12]")

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("Stele runs on Linux on x86-64")
        check_min_cppstd(self, 23)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(STELE_LAB=False, STELE_TESTS=False, STELE_PYTHON=False)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # the installed stele-config.cmake is used: stele::stele, stele::c
        self.cpp_info.builddirs = ["lib/cmake/stele"]
        self.cpp_info.libs = [":libstele.a"]
        self.cpp_info.system_libs = ["pthread"]
