"""Loads managed jobs with SkyPilot's own loader and prints what it understood, as JSON.

Runs in an environment that has SkyPilot: python load_skypilot.py FILE.yaml ...
"""

import json
import sys

import sky
import yaml


def understood(path: str) -> dict[str, object]:
    """The job as SkyPilot has read it; raises what its loader raises."""
    with open(path, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    task = sky.Task.from_yaml_config(config, env_overrides=[("CHECKPOINT_BUCKET", "our-bucket")])
    resources = task.resources if isinstance(task.resources, list) else list(task.resources)
    return {
        "name": task.name,
        "nodes": task.num_nodes,
        "ordered": isinstance(task.resources, list),
        "places": [
            [str(r.cloud).lower(), r.region, r.zone, r.instance_type, r.use_spot] for r in resources
        ],
        "recovery": [r.job_recovery for r in resources],
        "mounts": sorted(task.storage_mounts),
        "envs": task.envs,
    }


print(json.dumps([understood(path) for path in sys.argv[1:]]))
