"""How a net should be split over a cluster, and how fast that will be."""
import ctypes
import json
from typing import Any, Dict, List

from ._library import lib, log, set_options, written


def platforms() -> List[str]:
    """The names of the clusters that come with the library."""
    names: List[str] = []
    while True:
        name = lib.tutti_plan_platform(len(names))
        if name is None:
            return names
        names.append(name.decode())


def _ask(options: Any, show: Any, given: Dict[str, Any]) -> Any:
    keep: List[Any] = []
    set_options(options, given, keep)
    options.json = True

    def write(stream: ctypes.c_void_p) -> int:
        options.show = stream
        return show(ctypes.byref(options))

    return json.loads(written(write))


def plan(net: str, *, nodes: Any = "1", platform: str = "here", **options: Any) -> Any:
    """What 'tutti plan --json' says: predicted steps, speedup and the plan for numbers of nodes ("64",
    "1,2,4", "1..1024"). Other options as there, with _ for -."""
    o = lib.tutti_planner_defaults()
    o.log = log()
    return _ask(o, lib.tutti_plan_show,
                {"net": net, "nodes": str(nodes), "platform": platform, **options})


def simulate(net: str, *, nodes: Any = "1", platform: str = "cori-knl", **options: Any) -> Any:
    """What 'tutti simulate --json' says, where Tutti was built with SimGrid."""
    return _ask(lib.tutti_simulate_defaults(), lib.tutti_simulate_show,
                {"net": net, "nodes": str(nodes), "platform": platform, **options})
