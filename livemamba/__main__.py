"""`python -m livemamba` is `livemamba`."""

import sys

from livemamba.cli import main

if __name__ == "__main__":
    sys.exit(main())
