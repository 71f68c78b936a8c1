# In a checkout: spack repo add packaging/spack && spack install tutti
import pathlib

from spack.package import *

try:  # Spack 1.0 and later
    from spack_repo.builtin.build_systems.meson import MesonPackage
except ImportError:
    pass


class Tutti(MesonPackage):
    """Trains neural networks on clusters of CPUs with synchronous SGD: the same bits for any
    number of nodes and threads and any plan."""

    homepage = "https://arxiv.org/abs/1602.06709"

    license("Apache-2.0")

    # What is committed in the checkout that this recipe is part of.
    git = pathlib.Path(__file__).resolve().parents[4].as_uri()

    version("main", branch="main")

    variant("mpi", default=True, description="More than one rank")
    variant("simgrid", default=False, description="tutti simulate")
    variant("lmdb", default=False, description="Caffe's databases")
    variant("watch", default=True, description="tutti watch")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("hwloc")
    depends_on("jansson")
    depends_on("openssl")
    depends_on("zlib-api")
    depends_on("mpi", when="+mpi")
    depends_on("simgrid+smpi", when="+simgrid")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("lmdb", when="+lmdb")
    depends_on("libmicrohttpd", when="+watch")

    def setup_build_environment(self, env):
        if self.spec.satisfies("+mpi"):
            env.set("MPICC", self.spec["mpi"].mpicc)

    def meson_args(self):
        spec = self.spec
        return [
            "-Dwerror=false",
            "-Dtests=disabled",
            "-Donednn=disabled",
            "-Dmpi=" + ("auto" if spec.satisfies("+mpi") else "none"),
            *(f"-D{option}=" + ("enabled" if spec.satisfies(f"+{variant}") else "disabled")
              for option, variant in (("simgrid", "simgrid"), ("lmdb", "lmdb"), ("microhttpd", "watch"))),
        ]
