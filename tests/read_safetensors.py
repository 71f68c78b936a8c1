#!/usr/bin/env python3
"""An independent reader of safetensors files, without packages: lists tensors and their values."""
import array, json, sys

def read(path):
    data = open(path, "rb").read()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:8 + length]), data[8 + length:]
    header.pop("__metadata__", None)
    types = {"F32": "f", "I64": "q"}
    return {name: (t["shape"], array.array(types[t["dtype"]], body[slice(*t["data_offsets"])]))
            for name, t in header.items() if t["dtype"] in types}

if __name__ == "__main__":
    for name, (shape, values) in read(sys.argv[1]).items():
        print(name, "x".join(map(str, shape)), *("%.9g" % v for v in values))
