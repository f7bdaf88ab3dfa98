"""`python -m statetrack` is the command `statetrack`."""

import sys

from statetrack.cli import main

sys.exit(main())
