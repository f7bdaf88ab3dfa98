"""Speed, as ratios measured in one run: `python -m benchmarks` runs all that fit the machine."""
