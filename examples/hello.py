"""The cheapest machines that finish ResNet-50 on ImageNet within a day."""

from recommender import recommend

# One of the jobs that come with the tool.
answer = recommend("resnet50-imagenet", deadline="24h")

for rank, plan in enumerate(answer.plans, start=1):
    machines = " + ".join(f"{m.count}x {m.instance_type} {m.market}" for m in plan.machines)
    cost, time = plan.estimate.cost, plan.estimate.time
    print(
        f"{rank}  {machines:45}"
        f"{cost.mean:6.0f} USD ({cost.p05:.0f}-{cost.p95:.0f})"
        f"{time.p50 / 3600:6.1f} h"
        f"{plan.estimate.chance:7.1%}"
    )
