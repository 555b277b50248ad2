"""A made-up `aws`, `gcloud` or `az`: notes its calls, and answers from a few files of its folder.

`full` lists words of places without capacity, from a moment on if one follows; `ends` the moment
from which the run has ended well.
`refusal` is the answer to a rule for the security group `group`.
A machine is a line of `machines`; one of `lost` is gone an hour after its start.
A script starts it hundreds of times, so it imports nothing that takes longer than Python itself.
"""

import os
import sys

HERE = os.path.dirname(sys.argv[0])
WORDS = sys.argv[1:]
STARTS = ("ec2 run-instances", "compute instances create", "vm create")
STOPS = ("ec2 terminate-instances", "compute instances delete", "vm delete")
LISTS = ("ec2 describe-instances", "compute instances list", "vm list")


def kept(name: str) -> list[str]:
    """The lines of a file of the folder."""
    path = os.path.join(HERE, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def note_file(name: str) -> None:
    """Keep the file that a word names, as the cloud would."""
    for word in WORDS:
        path = word.removeprefix("file://").removeprefix("startup-script=").rpartition("=")[2]
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file, open(os.path.join(HERE, name), "w") as copy:
                copy.write(file.read())


def start() -> None:
    """A machine, where there is capacity."""
    line = " ".join(WORDS)
    note_file("boot")
    for word, *since in map(str.split, kept("full")):
        if word in line and int(*since or "0") <= CLOCK:
            sys.exit("no capacity")
    held = [*kept("machines"), f"i-{CLOCK}"]
    with open(os.path.join(HERE, "machines"), "w", encoding="utf-8") as file:
        file.write("\n".join(held))


def listed() -> None:
    """The machines of one region, or of all."""
    home = kept("home")
    if home and home[0] not in WORDS:
        return
    for each in kept("machines"):
        if not (kept("lost") and int(each.removeprefix("i-")) + int(kept("lost")[0]) <= CLOCK):
            print(each)


CLOCK = int(kept("clock")[0])
with open(os.path.join(HERE, "calls"), "a", encoding="utf-8") as log:
    log.write(repr([os.path.basename(sys.argv[0]), *WORDS]) + "\n")
joined = " ".join(WORDS)
if joined.startswith(STARTS):
    start()
elif joined.startswith(STOPS):
    if kept("machines"):
        os.remove(os.path.join(HERE, "machines"))
elif joined.startswith(LISTS):
    listed()
elif "describe-subnets" in joined:
    print(*kept("subnets") or ["subnet-0a1b2c3d"], sep="\t")
elif "describe-instance-types" in joined:  # EFA interfaces and network cards
    print((kept("cards") or ["None\t1"])[0])
elif "describe-security-groups" in joined:
    print((kept("group") or ["None"])[0])
elif "create-security-group" in joined:
    print("sg-0a1b2c3d")
elif "authorize-security-group" in joined and kept("refusal"):
    sys.exit(kept("refusal")[0])
elif "/secrets" in joined:
    note_file("passed")
elif "/ended-" in joined and int(kept("ends")[0]) <= CLOCK:
    print((kept("as") or ["done"])[0])
elif "/progress" in joined and kept("progress"):
    print(kept("progress")[0])
elif "machine-types list" in joined:
    print("europe-north1-b")
