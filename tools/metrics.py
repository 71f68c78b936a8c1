"""rows(RUN): the rows of a run's metrics.jsonl, each checked against its sum."""
import json
import pathlib
import zlib


def rows(run):
    path = pathlib.Path(run) / "metrics.jsonl"
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        body, mark, crc = line.rpartition(b',"crc":')
        if not mark or crc != b'"%08x"}' % zlib.crc32(body):
            raise AssertionError(f"{path}:{number}: the row is damaged: {line[:200]}")
        row = json.loads(line)
        del row["crc"]
        yield row
