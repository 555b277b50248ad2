"""No test reads or writes the catalogs that the person at this machine has refreshed."""

import os
import tempfile

for _name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
    os.environ[_name] = os.path.join(tempfile.gettempdir(), "recommend-tests-nobody-writes-here")
