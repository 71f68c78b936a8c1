#!/usr/bin/env python3
"""check_pil.py TEST_PICTURES: the pictures of tests/test_pictures.c, pixel for pixel as PIL has them.

The test itself holds Tutti to PIL's rules as it states them; here PIL is the judge of both."""
import pathlib
import subprocess
import sys
import tempfile

from PIL import Image, __version__

MODES = {".rgb": "RGB", ".grey": "L"}

wrong = compared = 0
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder], check=True, capture_output=True)
    for picture in sorted(pathlib.Path(folder).iterdir()):
        for ending, mode in MODES.items():
            pixels = picture.with_name(picture.name + ending)
            if picture.suffix in MODES or not pixels.exists():
                continue
            compared += 1
            if Image.open(picture).convert(mode).tobytes() != pixels.read_bytes():
                wrong += 1
                print(f"FAIL {picture.name}: not what PIL's convert('{mode}') gives")
print(f"{compared} pictures compared with PIL {__version__}, {wrong} differ")
sys.exit(wrong > 0 or compared < 100)
