"""``python -m expost`` is the command line."""

from expost.cli import main

if __name__ == "__main__":
    main()
