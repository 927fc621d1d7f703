"""What holds for all tests of this folder."""

import pytest

pytestmark = pytest.mark.slow
