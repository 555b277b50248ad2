"""A made-up `aws`, `gcloud` or `az`: notes its calls, and answers from a few files of its folder.

`full` lists words of places without capacity, from a moment on if one follows; `ends` the moment
from which the run has ended well.
`refusal` is the answer to a rule for the security group `group`.
A machine is a line of `machines`; one of `lost` is gone an hour after its start.
"""

import json
import sys
from pathlib import Path

HERE = Path(sys.argv[0]).parent
WORDS = sys.argv[1:]
STARTS = ("ec2 run-instances", "compute instances create", "vm create")
STOPS = ("ec2 terminate-instances", "compute instances delete", "vm delete")
LISTS = ("ec2 describe-instances", "compute instances list", "vm list")


def kept(name: str) -> list[str]:
    """The lines of a file of the folder."""
    path = HERE / name
    return path.read_text("utf-8").splitlines() if path.exists() else []


def start() -> None:
    """A machine, where there is capacity."""
    line = " ".join(WORDS)
    for word, *since in map(str.split, kept("full")):
        if word in line and int(*since or "0") <= CLOCK:
            sys.exit("no capacity")
    (HERE / "machines").write_text("\n".join([*kept("machines"), f"i-{CLOCK}"]), encoding="utf-8")


def listed() -> None:
    """The machines of one region, or of all."""
    home = kept("home")
    if home and home[0] not in WORDS:
        return
    for each in kept("machines"):
        if not (kept("lost") and int(each.removeprefix("i-")) + int(kept("lost")[0]) <= CLOCK):
            print(each)


CLOCK = int(kept("clock")[0])
with (HERE / "calls").open("a", encoding="utf-8") as log:
    log.write(json.dumps([Path(sys.argv[0]).name, *WORDS]) + "\n")
joined = " ".join(WORDS)
if joined.startswith(STARTS):
    start()
elif joined.startswith(STOPS):
    (HERE / "machines").unlink(missing_ok=True)
elif joined.startswith(LISTS):
    listed()
elif "describe-subnets" in joined:
    print("subnet-0a1b2c3d")
elif "describe-instance-types" in joined:  # EFA interfaces and network cards
    print((kept("cards") or ["None\t1"])[0])
elif "describe-security-groups" in joined:
    print((kept("group") or ["None"])[0])
elif "create-security-group" in joined:
    print("sg-0a1b2c3d")
elif "authorize-security-group" in joined and kept("refusal"):
    sys.exit(kept("refusal")[0])
elif "/ended-" in joined and int(kept("ends")[0]) <= CLOCK:
    print("done")
elif "/progress" in joined and kept("progress"):
    print(kept("progress")[0])
elif "machine-types list" in joined:
    print("europe-north1-b")
