"""A plugin of pytest: the folders beside this file are devices of weft."""

from pathlib import Path

import weft.devices

weft.devices.__path__.append(str(Path(__file__).parent))
