"""statetrack inside Inspect, and Inspect's model providers inside `statetrack ask`.

    inspect eval statetrack/track_the_stat -T variant=mode --model openai/gpt-4o
    statetrack ask track_the_stat.mode --model openai/gpt-4o

tasks, solvers and scorer are what `inspect eval` finds (by `registry`, the entry point); `engine` is what
`statetrack ask` calls. All of them play the episode of `statetrack.asking`.
"""

from statetrack.errors import need

need("inspect_ai", "inspect", "statetrack.integrations.inspect")
