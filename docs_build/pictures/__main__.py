"""Write each picture into docs/images, or into a folder that is named."""

import sys
from pathlib import Path

from docs_build.building import ROOT
from docs_build.pictures.gallery import PICTURES

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
for name, draw in PICTURES.items():
    (folder / f"{name}.svg").write_text(draw().svg())
