"""Loads managed jobs with SkyPilot's own loader and prints what it understood, as JSON.

Runs in an environment that has SkyPilot: python load_skypilot.py FILE.yaml ...
"""

import json
import sys

import sky
import yaml
from sky.clouds import CloudImplementationFeatures


def understood(path: str) -> dict[str, object]:
    """The job as SkyPilot has read it; raises what it does not read, or not do on that cloud."""
    with open(path, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    given = [(name, "ours") for name, value in config["envs"].items() if value is None]
    task = sky.Task.from_yaml_config(config, env_overrides=given)
    resources = task.resources if isinstance(task.resources, list) else list(task.resources)
    for each in resources:
        used = each.get_required_cloud_features()
        if task.num_nodes > 1:
            used.add(CloudImplementationFeatures.MULTI_NODE)
        each.cloud.check_features_are_supported(each, used)
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
