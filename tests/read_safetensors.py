#!/usr/bin/env python3
"""An independent reader of safetensors files, without packages: lists tensors and their values."""
import array, json, sys

def read(path):
    types, tensors = {"F32": "f", "I64": "q"}, {}
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        for name, t in header.items():
            if t["dtype"] not in types:
                continue
            begin, end = t["data_offsets"]
            values = array.array(types[t["dtype"]])
            file.seek(8 + length + begin)
            values.frombytes(file.read(end - begin))
            tensors[name] = (t["shape"], values)
    return tensors

if __name__ == "__main__":
    for name, (shape, values) in read(sys.argv[1]).items():
        print(name, "x".join(map(str, shape)), *("%.9g" % v for v in values))
