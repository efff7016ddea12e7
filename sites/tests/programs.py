"""Programs that tests of several files need."""

import os
import shutil

import pytest

from sites.tests.testbed.namespaces import NEEDED

needs_ssh_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None and not os.environ.get(NEEDED),
    reason="there is no ssh-keygen",
)
