"""python -m quack_lite: the same as quack-lite, where there are no console scripts."""

from quack_lite.cli import main

raise SystemExit(main())
