"""`python -m lpsched`."""

import sys

from lpsched.cli import main

sys.exit(main())
